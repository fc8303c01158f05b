"""What a start finds of the runs before it: damage, turns that were cut, processes that were left."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was found wrong, where the damaged file is, rows recovered per table, and when (milliseconds).

    lost: tables that could not be read to their end.
    """

    problem: str
    kept_as: Path
    rows: dict[str, int]
    at: int
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CutTurn:
    """A turn that was running when the process died."""

    turn_id: str
    channel: str


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that a crash left behind, or of the background: ended only if both pid and start time are the same.

    key: names its call. background: the arguments of that, if it is done, so that nobody knows of the end. told: what
    the session is to be told of it.
    """

    pid: int
    started: str
    session_key: str = ""
    key: str = ""
    background: str = ""
    told: str = ""
