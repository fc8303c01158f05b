"""The files of the workspace that are part of the system prompt: made when missing, and read once per transcript.

A person's file is never overwritten, and links are not followed. If a file cannot be read, the prompt says why, so that
the model can tell its owner. A conversation in which others than owners write has a room, a folder below the workspace,
with two files of its own. All functions block.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path

from agent.file_names import AGENTS, BOOTSTRAP, CLAUDE, NAMES, ORDER, OWN, SHARED
from agent.tools.lineage import FileState, state_of
from agent.tools.workspace import NotThere, Workspace, WorkspaceError

PER_FILE_CHARACTERS = 20_000
TOTAL_CHARACTERS = 150_000

_MAX_BYTES = 2 * 1024 * 1024
_HEAD, _TAIL = 0.7, 0.2  # fractions of the budget of a file that is cut; the rest is for the line between them
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """One file as the prompt shows it."""

    name: str
    # The whole file, or its head and tail with a line between them.
    text: str
    # Whether it could be read; if not, the text says why.
    is_read: bool = True
    # What the file held when it was read; None if it could not be.
    state: FileState | None = field(default=None, compare=False)


def create(root: Path) -> None:
    """Make the workspace (0700) and the files that are missing in it. Raises OSError or WorkspaceError."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    _fill(Workspace(root), NAMES)


def create_room(room: Workspace, above: Workspace) -> None:
    """Make a room (0700), if it is missing, and the files that are missing in it.

    above: the folder that holds rooms of this kind; git, `glob` and `grep` are made to ignore it. Raises OSError, or
    WorkspaceError when the path to the room is a link or no folder.
    """
    with room.descend((), create=True):
        _fill(room, OWN)
    with suppress(WorkspaceError):  # it is there
        above.write_now(".gitignore", b"/*/\n", "create")


def load(root: Path, room: Workspace | None = None) -> tuple[WorkspaceFile, ...]:
    """Return the files for the prompt, within the budget.

    root: the workspace. room: of a conversation in which others than owners write; its prompt has only the shared files
    of the workspace and the files of the room. Missing files, files with nothing but headings and comments, and
    HEARTBEAT.md are left out. What exceeds the budget is cut, the later files first.

    AGENTS.md is read in each folder from the workspace down to the one above the room, but not in the room itself,
    where anybody who writes in the conversation can have it changed.
    """
    workspace = Workspace(root)
    left, loaded = TOTAL_CHARACTERS, []
    for name in ORDER if room is None else (*SHARED, *OWN):
        is_there = room is None or name in OWN  # whether the tools of the conversation can read the file
        home = room if room and is_there else workspace
        for file in _instructions(workspace, room) if name == AGENTS else _found(home, name):
            limit = min(PER_FILE_CHARACTERS, left)
            left -= min(len(file.text), limit)
            loaded.append(_within(file, limit, f"; the whole is in {file.name}" if is_there else ""))
    return tuple(loaded)


def load_script(root: Path) -> WorkspaceFile | None:
    """Return the script of the first meeting, cut to the budget of a file; None if the workspace has none."""
    found = _found(Workspace(root), BOOTSTRAP)
    return _within(found[0], PER_FILE_CHARACTERS, f"; the whole is in {BOOTSTRAP}") if found else None


def read(root: Path, name: str) -> WorkspaceFile | None:
    """Return a file whole; None if it is missing or still the template. Raises WorkspaceError with a sentence."""
    try:
        file = _read(Workspace(root), name)
    except NotThere:
        return None
    template = (resources.files("agent.prompt") / "workspace" / name).read_text("utf-8")
    return None if file.text == template.strip() else file


def is_empty(text: str) -> bool:
    """Whether a text holds nothing but headings, comments and blank lines."""
    end = text.rfind("-->") + 3 if "-->" in text else 0  # behind it no comment ends, so none is looked for
    lines = (line.strip() for line in (_COMMENT.sub("", text[:end]) + text[end:]).splitlines())
    return not any(line and not line.startswith("#") for line in lines)


def _fill(workspace: Workspace, names: tuple[str, ...]) -> None:
    templates = resources.files("agent.prompt") / "workspace"
    for name in names:
        instead = name == AGENTS and _found(workspace, CLAUDE)
        if not instead and not os.path.lexists(workspace.root / name):
            workspace.write_now(name, (templates / name).read_bytes(), "create")


def _instructions(workspace: Workspace, room: Workspace | None) -> tuple[WorkspaceFile, ...]:
    """Return AGENTS.md, or CLAUDE.md where that says nothing, of each folder from the workspace to above a room."""
    above = room.root.relative_to(workspace.root).parts[:-1] if room else ()
    loaded: list[WorkspaceFile] = []
    for depth in range(len(above) + 1):
        folder = "".join(f"{part}/" for part in above[:depth])
        loaded += _found(workspace, f"{folder}{AGENTS}") or _found(workspace, f"{folder}{CLAUDE}")
    return tuple(loaded)


def _found(workspace: Workspace, name: str) -> tuple[WorkspaceFile, ...]:
    """Return a file whole, or with the reason why it cannot be read; nothing if it is missing or says nothing."""
    try:
        file = _read(workspace, name)
    except NotThere:
        return ()
    except WorkspaceError as error:
        return (WorkspaceFile(name, f"[Not loaded. {error}]", is_read=False),)
    return () if is_empty(file.text) else (file,)


def _within(file: WorkspaceFile, limit: int, whole: str) -> WorkspaceFile:
    """Return a file with at most `limit` characters of its text. whole: where all of it can be read, or empty."""
    is_whole = len(file.text) <= limit or not file.is_read
    return file if is_whole else replace(file, text=_cut(file.text, limit, whole))


def _read(workspace: Workspace, name: str) -> WorkspaceFile:
    with workspace.open(name) as file:
        data = file.read(_MAX_BYTES + 1)
        state = state_of(workspace, workspace.relative(name), file, data)
    if len(data) > _MAX_BYTES:
        raise WorkspaceError(f"{name}: more than {_MAX_BYTES:,} bytes.")
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\x00", "�").strip()
    return WorkspaceFile(name, text, state=state)


def _cut(text: str, limit: int, whole: str) -> str:
    head, tail = int(limit * _HEAD), int(limit * _TAIL)
    left_out = len(text) - head - tail
    mark = f"[… {left_out:,} characters left out here{whole} …]"
    return "\n".join(part for part in (text[:head], mark, text[len(text) - tail :]) if part)
