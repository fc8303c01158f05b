"""What the files of the workspace were made from: the interface by which tools ask for it and tell it.

What is known is about a content: whoever finds the same bytes under the same path knows what they were made from. So it
can be persisted before the file is written, whatever becomes of the write, and of a file that somebody else has changed
nothing is known.
"""

import hashlib
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from io import BufferedReader

from agent.message import Provenance, merged
from agent.tools.workspace import Workspace

Origins = tuple[Provenance, ...]


@dataclass(frozen=True, slots=True)
class FileState:
    """What a file holds at a moment."""

    # Below the workspace, also of files in rooms.
    path: str
    # The SHA-256 of its content.
    digest: str
    # When the kernel saw its last change, in nanoseconds. Programs cannot set this time.
    changed: int

    @classmethod
    def of_now(cls, path: str, content: bytes) -> "FileState":
        """Return the state of a file that has, or is about to get, a content at this moment."""
        return cls(path, hashlib.sha256(content).hexdigest(), time.time_ns())


def state_of(workspace: Workspace, parts: Sequence[str], file: BufferedReader, content: bytes) -> FileState:
    """Return the state of an open file, of which all was read."""
    changed = os.fstat(file.fileno()).st_ctime_ns
    return FileState(workspace.whole(parts), hashlib.sha256(content).hexdigest(), changed)


class Lineage:
    """Knows what files were made from. This one remembers nothing, so that every file is unknown."""

    async def of(self, states: Sequence[FileState]) -> Sequence[Origins | None]:
        """Return the origins of each file, none if it is trusted; None: nothing is known of it."""
        return [None] * len(states)

    def rewritten(
        self, path: str, before: bytes | None, after: bytes, origins: Origins, *, keeps: bool, otherwise: Origins
    ) -> Origins:
        """Persist what a file is made from that is about to be written; return what its old content was made from.

        path: as in `FileState`. before: None where there is no file. origins: of what is written. keeps: whether some
        of the old content stays. otherwise: the origins of an old content of which nothing is known. It blocks, and
        must not be called in the thread of the event loop. What it raises keeps the file from being written.
        """
        return otherwise if before else ()

    async def seen(self, room: Workspace) -> Origins:
        """Return the origins of everything in a room that a command could have read."""
        return ()

    async def unknown(self, room: Workspace) -> bool:
        """Return whether a command in a room can read a file that neither the operator nor Hark vouches for."""
        return False

    async def begin(self, room: Workspace, origins: Collection[Provenance]) -> int:
        """Persist that a command may write in a room from now on; what it writes bears these origins."""
        return 0

    async def feed(self, writer: int, origins: Collection[Provenance]) -> None:
        """Add the origins of what such a command was given."""

    async def over(self, writer: int, *, alone: bool = False) -> None:
        """Persist what such a command, which has ended, has written.

        alone: whether what changed meanwhile is its own, so that it is known also where it bears nothing.
        """


class Traced:
    """A command from its start to its end, as a context manager: what it writes and says bears what it could read."""

    def __init__(
        self, lineage: Lineage, room: Workspace, origins: Origins, *, writes: bool, alone: bool = False
    ) -> None:
        """origins: of what it was given, and of what it could read before. writes: whether it may change files.

        alone: see `Lineage.over`.
        """
        self._lineage, self._room, self._writes, self._alone = lineage, room, writes, alone
        self.origins = origins
        self._writer: int | None = None

    async def __aenter__(self) -> "Traced":
        if self._writes:
            self._writer = await self._lineage.begin(self._room, self.origins)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._writer is not None:
            await self._lineage.over(self._writer, alone=self._alone)

    async def feed(self, origins: Origins) -> None:
        """Note the origins of what it is given later."""
        self.origins = merged((*self.origins, *origins))
        if self._writer is not None:
            await self._lineage.feed(self._writer, origins)

    async def bears(self) -> Origins:
        """Return the origins of what it says."""
        return merged((*self.origins, *await self._lineage.seen(self._room)))
