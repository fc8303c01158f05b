"""A workspace, and a folder of commands that are found and never run."""

from pathlib import Path

import pytest

from agent.shell import Judge, Rule

_COMMANDS = (
    "ls cat head tail wc rm sort uniq grep rg xargs git sed awk jq env nice timeout nohup stdbuf "
    "setsid bash find sh sudo python3 node npm date hostname xxd tree file du diff make curl tee echo pytest watch "
    "parallel busybox perl ps which stat touch mkdir pip git-evil time"
)


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in _COMMANDS.split():
        (folder / name).touch(0o755)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name in ("README.md", "src/a.py", "ls"):
        (folder / name).touch(0o755)
    (folder / "link").symlink_to("/")
    (folder / "out").symlink_to(tmp_path / "elsewhere")
    return folder


class Asker:
    """A judge with what it is asked about in these tests."""

    def __init__(self, workspace: Path, binaries: Path) -> None:
        self.workspace, self.binaries = workspace, binaries

    def __call__(self, command: str, *granted: Rule, folder: str = "", allowlist: tuple[Rule, ...] = ()):  # type: ignore[no-untyped-def]
        judge = Judge(
            workspace=self.workspace,
            path=f"{self.workspace}/node_modules/.bin:{self.binaries}",
            allowlist=allowlist,
            private=[self.workspace.parent],
        )
        return judge.judge(command, self.workspace / folder, granted, {"HOME": "/home/somebody"})


@pytest.fixture
def ask(workspace: Path, binaries: Path) -> Asker:
    return Asker(workspace, binaries)
