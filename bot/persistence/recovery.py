"""What the start of the service finds of earlier runs: a damaged file, cut turns and processes that still run."""

from dataclasses import dataclass
from pathlib import Path

from agent.message import Provenance


@dataclass(frozen=True, slots=True)
class Salvage:
    """The report about a damaged store file, of which the readable rows were copied into a new one."""

    # What is wrong with the file, in SQLite's words or ours.
    problem: str
    # Where the damaged file is kept.
    kept_as: Path
    # The number of recovered rows of each table.
    rows: dict[str, int]
    # When the damage was found, in milliseconds.
    at: int
    # The tables of which some rows could not be read.
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CutTurn:
    """A turn that was running when the process died. channel: where it answers."""

    turn_id: str
    channel: str


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process of a tool call that may still run after a crash. It is ended only if both pid and start time match."""

    pid: int
    # The start time of the process, as the operating system tells it.
    started: str
    session_key: str = ""
    # The call that started the process: "<turn id>:<call id>".
    key: str = ""
    # The arguments of the call if it has ended and left the process in the background; else empty.
    background: str = ""
    # What the next turn of the session is told of the process; empty if nothing.
    told: str = ""
    # Where those words came from.
    origins: tuple[Provenance, ...] = ()
