"""The files of the workspace that are part of the system prompt: made when missing, and read once per transcript.

A person's file is never overwritten, and links are not followed. If a file cannot be read, the prompt says why, so that
the model can tell its owner. A conversation in which others than owners write has a room, a folder below the workspace,
with two files of its own. All functions block.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from agent.tools.workspace import NotThere, Workspace, WorkspaceError

# In the order of the prompt.
NAMES = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "MEMORY.md", "HEARTBEAT.md")
# Files that every prompt has from the workspace, and files that each room has of its own.
SHARED = ("AGENTS.md", "SOUL.md", "IDENTITY.md")
OWN = ("USER.md", "MEMORY.md")

HEARTBEAT = "HEARTBEAT.md"  # read for each beat, and not part of the prompt
PER_FILE_CHARACTERS = 12_000
TOTAL_CHARACTERS = 40_000

_MAX_BYTES = 2 * 1024 * 1024
_HEAD, _TAIL = 0.7, 0.2  # fractions of the budget of a file that is cut; the rest is for the line between them
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """One file as the prompt shows it."""

    name: str
    # The whole file, or its head and tail with a line between them.
    text: str


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
    """
    workspace = Workspace(root)
    left, loaded = TOTAL_CHARACTERS, []
    for name in NAMES if room is None else (*SHARED, *OWN):
        if name == HEARTBEAT:
            continue
        is_there = room is None or name in OWN  # whether the tools of the conversation can read the file
        try:
            text = _read(room if room and is_there else workspace, name)
        except NotThere:
            continue
        except WorkspaceError as error:
            loaded.append(WorkspaceFile(name, f"[Not loaded. {error}]"))
            continue
        if is_empty(text):
            continue
        limit = min(PER_FILE_CHARACTERS, left)
        left -= min(len(text), limit)
        whole = f"; the whole is in {name}" if is_there else ""
        loaded.append(WorkspaceFile(name, text if len(text) <= limit else _cut(text, limit, whole)))
    return tuple(loaded)


def read(root: Path, name: str) -> str | None:
    """Return the text of a file; None if it is missing or still the template. Raises WorkspaceError with a sentence."""
    try:
        text = _read(Workspace(root), name)
    except NotThere:
        return None
    template = (resources.files("agent.prompt") / "workspace" / name).read_text("utf-8")
    return None if text == template.strip() else text


def is_empty(text: str) -> bool:
    """Whether a text holds nothing but headings, comments and blank lines."""
    lines = (line.strip() for line in _COMMENT.sub("", text).splitlines())
    return not any(line and not line.startswith("#") for line in lines)


def _fill(workspace: Workspace, names: tuple[str, ...]) -> None:
    templates = resources.files("agent.prompt") / "workspace"
    for name in names:
        if not os.path.lexists(workspace.root / name):
            workspace.write_now(name, (templates / name).read_bytes(), "create")


def _read(workspace: Workspace, name: str) -> str:
    with workspace.open(name) as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise WorkspaceError(f"{name}: more than {_MAX_BYTES:,} bytes.")
    return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\x00", "�").strip()


def _cut(text: str, limit: int, whole: str) -> str:
    head, tail = int(limit * _HEAD), int(limit * _TAIL)
    left_out = len(text) - head - tail
    mark = f"[… {left_out:,} characters left out here{whole} …]"
    return "\n".join(part for part in (text[:head], mark, text[len(text) - tail :]) if part)
