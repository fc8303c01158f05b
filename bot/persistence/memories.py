"""Values of what the tool `memory_write` was given."""

from dataclasses import dataclass
from typing import Literal

from agent.message import Provenance

# pending: it waits for a person. keeping, taking: its file is about to get it, or to lose it. kept: it is in its file.
MemoryState = Literal["pending", "keeping", "kept", "taking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What is to be remembered, or is to wait for a person (`pending`)."""

    pending: bool
    # The folder of its session below the workspace, and its file in there.
    room: str
    path: str
    # The lines of the file that it is, with the end of the last one.
    entry: str
    # What it was made from.
    origins: tuple[Provenance, ...]
    session_key: str
    turn_id: str
    # Whether a beat or a job wrote it.
    by_itself: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory as it is stored; see NewMemory."""

    memory_id: int
    state: MemoryState
    room: str
    path: str
    entry: str
    origins: tuple[Provenance, ...]
    session_key: str
    by_itself: bool
    # In milliseconds.
    written_at: int

    @property
    def stays(self) -> bool:
        """Whether its file has it, or is to have it."""
        return self.state in ("keeping", "kept")
