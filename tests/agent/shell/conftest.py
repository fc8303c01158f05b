"""A workspace, and a folder of commands that are found and never run."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.shell import Judge, Judgement, Rule

_RULED = (
    "ls cat head tail wc sort uniq grep rg git date hostname tree file du diff stat touch mkdir echo which ps jq tee "
    "find sed awk xargs env nice timeout nohup stdbuf setsid python3 node npm curl make pip watch parallel perl xxd "
    "pytest time"
)
_UNRULED = "rm bash sh sudo busybox git-evil printf"
RULES = tuple(Rule(name) for name in _RULED.split())


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in (*_RULED.split(), *_UNRULED.split()):
        (folder / name).touch(0o755)
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "src" / "deep").mkdir(parents=True)
    for name in ("README.md", "src/a.py", "ls"):
        (folder / name).touch(0o755)
    (folder / "link").symlink_to("/")
    (folder / "out").symlink_to(tmp_path / "elsewhere")
    return folder


class Asker:
    """A judge with what it is asked about in these tests."""

    def __init__(self, workspace: Path, binaries: Path) -> None:
        self.workspace, self.binaries = workspace, binaries

    def __call__(
        self, command: str, *granted: Rule, folder: str = "", allowlist: Sequence[Rule] = RULES, home: str = "/home/ann"
    ) -> Judgement:
        """allowlist: any words of most programs, on the host."""
        path = f"{self.workspace}/node_modules/.bin:{self.binaries}"
        judge = Judge(workspace=self.workspace, path=path, allowlist=allowlist)
        return judge.judge(command, self.workspace / folder, granted, {"HOME": home, "RANDOM": "1", "x": "y"})


@pytest.fixture
def ask(workspace: Path, binaries: Path) -> Asker:
    return Asker(workspace, binaries)
