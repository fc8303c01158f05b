"""The files of the workspace that a conversation begins with: made when missing, and read for the system prompt.

A person's file is never overwritten. Links are not followed; what cannot be read is said in its place, so that the
model can tell its owner. Both functions block. `create` is called at start, `load` once per transcript.
"""

import os
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from agent.tools.workspace import NotThere, Workspace, WorkspaceError

# In the order of the prompt.
NAMES = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "MEMORY.md", "HEARTBEAT.md")

HEARTBEAT = "HEARTBEAT.md"  # read by each beat, not by the prompt
PER_FILE_CHARACTERS = 12_000
TOTAL_CHARACTERS = 40_000

_MAX_BYTES = 2 * 1024 * 1024
_HEAD, _TAIL = 0.7, 0.2  # of the room a file has, when it must be cut; the rest is for the line between
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """One file as the prompt shows it. text: whole, or head and tail with a line between that says so."""

    name: str
    text: str


def create(root: Path) -> None:
    """Make the workspace (0700) and those of its files that are missing. Raises OSError or WorkspaceError."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    workspace = Workspace(root)
    templates = resources.files("agent.prompt") / "workspace"
    for name in NAMES:
        if not os.path.lexists(root / name):
            workspace.write_now(name, (templates / name).read_bytes(), "create")


def load(root: Path, names: tuple[str, ...] = NAMES) -> tuple[WorkspaceFile, ...]:
    """The files for the prompt, within the budget. names: which of them, fewer where others listen.

    Missing files, files with nothing but headings and comments, and HEARTBEAT.md are not among them. What the limits
    do not leave room for is cut, the later files first; a note in a file's place is beyond the budget.
    """
    workspace = Workspace(root)
    room, loaded = TOTAL_CHARACTERS, []
    for name in names:
        if name == HEARTBEAT:
            continue
        try:
            text = _read(workspace, name)
        except NotThere:
            continue
        except WorkspaceError as error:
            loaded.append(WorkspaceFile(name, f"[Not loaded. {error}]"))
            continue
        if is_empty(text):
            continue
        limit = min(PER_FILE_CHARACTERS, room)
        room -= min(len(text), limit)
        loaded.append(WorkspaceFile(name, text if len(text) <= limit else _cut(name, text, limit)))
    return tuple(loaded)


def read(root: Path, name: str) -> str | None:
    """One file, None where nobody has written one. Raises WorkspaceError with a sentence when it cannot be read."""
    try:
        text = _read(Workspace(root), name)
    except NotThere:
        return None
    template = (resources.files("agent.prompt") / "workspace" / name).read_text("utf-8")
    return None if text == template.strip() else text


def is_empty(text: str) -> bool:
    """Whether there is nothing but headings, comments and blank lines."""
    lines = (line.strip() for line in _COMMENT.sub("", text).splitlines())
    return not any(line and not line.startswith("#") for line in lines)


def _read(workspace: Workspace, name: str) -> str:
    with workspace.open(name) as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise WorkspaceError(f"{name}: more than {_MAX_BYTES:,} bytes.")
    return data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\x00", "�").strip()


def _cut(name: str, text: str, limit: int) -> str:
    head, tail = int(limit * _HEAD), int(limit * _TAIL)
    left_out = len(text) - head - tail
    mark = f"[… {left_out:,} characters left out here; the whole is in {name} …]"
    return "\n".join(part for part in (text[:head], mark, text[len(text) - tail :]) if part)
