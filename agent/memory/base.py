"""The interface between the tools for memory and what searches it.

The memory of a room is its MEMORY.md and the Markdown files directly in its folder `memory/`. Nothing else is searched
or shown here: what waits for a person's decision is in no file yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.errors import ToolError
from agent.message import Provenance
from agent.tools.workspace import Workspace

FILE, FOLDER, ENDING = "MEMORY.md", "memory", ".md"


class MemoryUnavailable(ToolError):
    """The memory cannot be searched at the moment; the text says why."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A piece of memory that a search has found."""

    # Below the room, with its first and last line.
    path: str
    first: int
    last: int
    # From 0 to 1: how much of what was asked for stands in it.
    score: float
    # The piece as it is written, and the headings and items above it on one line.
    text: str
    above: str = ""

    def line(self, most: int) -> str:
        """Return the hit on one line, with at most so many characters of the text."""
        words = " ".join(self.text.split())
        words = words if len(words) <= most else f"{words[: most - 1]}…"
        lines = f"{self.first}-{self.last}" if self.last > self.first else f"{self.first}"
        return f"{self.path}:{lines} ({self.score:.2f}) {f'{self.above}: ' if self.above else ''}{words}"


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a search has found, the best first, and where the files of it came from."""

    hits: Sequence[Hit] = ()
    origins: tuple[Provenance, ...] = ()


class Memory(Protocol):
    """Searches the memory of a room."""

    async def search(self, room: Workspace, question: str, most: int) -> Recollection:
        """Return what is remembered about a question. Raises MemoryUnavailable, or what the store raises."""

    @property
    def reaches_out(self) -> bool:
        """Whether a search asks another machine."""


@dataclass(frozen=True, slots=True)
class Cited:
    """Where a memory engine has found something: a file below the room, and its first and last line, from 1."""

    path: str
    first: int
    last: int
    # From 0 to 1. What is to be recalled beside a message has 0.3 at least.
    score: float


class MemoryEngine(Protocol):
    """Finds in the files of a memory, in place of Hark's own index. An extension brings it.

    It says where, and Hark reads there: so nothing comes from outside the room, or from what is no memory (any more).
    """

    async def search(self, room: Path, question: str, most: int) -> Sequence[Cited]:
        """Return where something about a question stands, the best first.

        room: the folder whose memory is searched, and nothing else.
        """


def is_readable(path: Sequence[str]) -> bool:
    """Whether a path, given by its parts below the room, is a file of the memory."""
    return list(path) == [FILE] or (len(path) == 2 and path[0] == FOLDER and path[1].endswith(ENDING))
