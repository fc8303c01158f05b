"""Whatever path a model names, and whoever renames things meanwhile: nothing outside is read, listed or changed."""

import asyncio
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.tools.edit import EditTool
from agent.tools.files import ReadTool, WriteTool
from agent.tools.schema import ArgumentsError, parse_arguments
from agent.tools.search import GlobTool, GrepTool
from agent.tools.workspace import Workspace, WorkspaceError
from tests.agent.tools.calls import outcome
from tests.agent.tools.test_workspace import swapping

CANARY = "canary"


def plant(base: Path) -> Path:
    """A workspace with links of all kinds, reached by a link itself, and beside it what nobody may touch."""
    outside, real = base / "outside", base / "real"
    (outside / "folder").mkdir(parents=True)
    for file in ("file", "folder/file", "folder/nothing-else-is-called-so"):
        (outside / file).write_text(f"{CANARY} {file}\n")
    (real / "folder" / "deep").mkdir(parents=True)
    for file in ("file", "folder/file", "folder/deep/file"):
        (real / file).write_text("inside\n")
    (real / "up").symlink_to("..")
    (real / "out").symlink_to(outside)
    (real / "secret").symlink_to(outside / "file")
    (real / "loop").symlink_to("loop")
    (real / "self").symlink_to(".")
    (real / "folder" / "out").symlink_to("../../outside/folder")
    (real / "proc").symlink_to("/proc/self/root")
    os.mkfifo(real / "pipe")
    (base / "workspace").symlink_to(real)
    return base / "workspace"


def state(outside: Path) -> list[tuple[str, int, int, bytes]]:
    """All that is there, with times and contents."""
    found = []
    for path in sorted([outside, *outside.rglob("*")]):
        status = path.lstat()
        found.append((str(path), status.st_mtime_ns, status.st_ino, path.read_bytes() if path.is_file() else b""))
    return found


async def everything(root: Path, path: str, *, still: bool = True) -> str:
    """What the model is told by all tools that take a path, `exec`'s folder included."""
    workspace = Workspace(root)
    calls: list[tuple[Any, dict[str, Any]]] = [
        (ReadTool(workspace), {"path": path}),
        (WriteTool(workspace), {"path": path, "content": "mine\n", "mode": "overwrite"}),
        (WriteTool(workspace), {"path": path, "content": "mine\n", "mode": "append"}),
        (EditTool(workspace), {"path": path, "old_string": "mine\nmine", "new_string": "mine"}),
        (EditTool(workspace), {"path": path, "old_string": CANARY, "new_string": "changed"}),
        (GlobTool(workspace), {"path": path, "pattern": "**", "ignored": True}),
        (GrepTool(workspace), {"path": path, "pattern": ".", "ignored": True}),
        (GlobTool(workspace), {"pattern": path[:500] or "*"}),
        (GrepTool(workspace), {"pattern": ".", "glob": path[:500]}),
    ]
    told = []
    for tool, arguments in calls:
        with suppress(ArgumentsError):  # what no JSON can hold
            told.append((await outcome(tool, parse_arguments(tool, json.dumps(arguments)))).text)
    with suppress(WorkspaceError):
        folder = workspace.folder(path)
        if still:
            assert not folder.is_symlink()
            assert folder.resolve().is_relative_to(workspace.root)
    return "\n".join(told)


_PARTS = st.sampled_from(
    (
        *("..", ".", "", "~", "~root", "folder", "deep", "file", "out", "up", "secret", "loop", "self", "proc", "pipe"),
        *(
            "outside",
            "real",
            "workspace",
            "new",
            "…",
            "．．",
            "．．／",
            "%2e%2e",
            "..\\",
            "\x00",
            "\ud800",
            "\udcff",
            "é",
        ),
        *("e\u0301", "\u202e..", "x" * 300, ".. ", " ..", "...", "\n", "{base}", "/proc/self/root", "/proc/self/cwd"),
    )
)
PATHS = st.tuples(
    st.sampled_from(["", "", "/", "//", "{base}/", "{base}/workspace/", "~/"]), st.lists(_PARTS, max_size=6)
)


@settings(max_examples=60, deadline=None)
@given(PATHS.map(lambda drawn: drawn[0] + "/".join(drawn[1])))
@example("out/file")
@example("secret")
@example("up/outside/file")
@example("self/out/folder/file")
@example("folder/../../outside/file")
@example("proc{base}/outside/file")
@example("/proc/self/root{base}/outside/file")
@example("{base}/real/../outside/file")
@example("{base}/workspace/out/folder")
@example("folder/out/file/")
@example("x/" * 5000)
def test_no_path_leads_out(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    base = tmp_path_factory.mktemp("escape")
    root = plant(base)
    before = state(base / "outside")
    told = asyncio.run(everything(root, path.replace("{base}", str(base))))
    assert f"{CANARY} f" not in told
    assert "nothing-else-is-called-so" not in told
    assert state(base / "outside") == before


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".GIT/hooks/pre-commit",
        "a/.git",
        ".git./x",
        ".git /x",
        "a/.Git. ./x",
        ".gi\u200ct/x",
        "git~1/x",
        "x/../.git/config",
        "{root}/.git/config",
    ],
)
async def test_nothing_is_written_that_git_obeys(tmp_path: Path, path: str) -> None:
    path = path.format(root=tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[core]\n")
    write, edit = WriteTool(Workspace(tmp_path)), EditTool(Workspace(tmp_path))
    for tool, arguments in (
        (write, {"path": path, "content": "x", "mode": "overwrite"}),
        (write, {"path": path, "content": "x", "mode": "append"}),
        (edit, {"path": path, "old_string": "core", "new_string": "x"}),
    ):
        answer = await outcome(tool, parse_arguments(tool, json.dumps(arguments)))
        assert answer.is_error
        assert "git runs programs" in answer.text
    assert (os.listdir(tmp_path), os.listdir(tmp_path / ".git")) == ([".git"], ["config"])
    assert (tmp_path / ".git" / "config").read_text() == "[core]\n"


@pytest.mark.parametrize("path", [".gitignore", ".github/x", "git/x", "a.git/x", ".gitattributes"])
async def test_what_is_only_called_alike_is_written(tmp_path: Path, path: str) -> None:
    assert (await Workspace(tmp_path).write(path, b"x", "create")).created


async def test_nothing_leads_out_while_a_folder_turns_into_a_link(tmp_path: Path) -> None:
    root, outside = plant(tmp_path), tmp_path / "outside"
    before, told = state(outside), list[str]()
    folder = tmp_path / "real" / "folder"
    with swapping(folder, folder.with_name("aside"), outside / "folder") as swapped:
        assert await asyncio.to_thread(swapped.wait, 10)
        for path in ("folder", "folder/file", ".") * 12:
            told.append(await everything(root, path, still=False))
    assert CANARY + " f" not in "".join(told)
    assert "nothing-else-is-called-so" not in "".join(told)
    assert any("inside" in text for text in told), "nothing was ever found: the test showed nothing"
    assert state(outside) == before


def test_a_folder_that_became_a_link_is_not_gone_into(tmp_path: Path) -> None:
    walk = Workspace(plant(tmp_path)).walk()
    assert next(walk).folders == ["folder"]
    os.rename(tmp_path / "real" / "folder", tmp_path / "real" / "aside")
    os.symlink(tmp_path / "outside", tmp_path / "real" / "folder")
    assert list(walk) == []


def test_a_file_that_became_a_link_is_not_read(tmp_path: Path) -> None:
    walk = Workspace(plant(tmp_path)).walk()
    root = next(walk)
    os.unlink(tmp_path / "real" / "file")
    os.symlink(tmp_path / "outside" / "file", tmp_path / "real" / "file")
    with pytest.raises(WorkspaceError, match="symbolic link"):
        root.open("file")
    walk.close()
