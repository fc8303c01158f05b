"""What the files of the workspace were made from, as the store knows it, and what commands have written in them.

A program in the sandbox can set every time of a file but that of its last change in the kernel (ctime), by which the
files are found that a command may have written.
"""

import asyncio
import hashlib
import os
import stat
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import structlog

from agent.message import Provenance, merged
from agent.sandbox.kept import KEPT_FOLDERS, ROOMS
from agent.tools.files import unknown
from agent.tools.lineage import FileState, Lineage, Origins
from agent.tools.workspace import MAX_FILE_BYTES, Workspace, WorkspaceError
from bot.persistence.errors import StoreUnavailable
from bot.store.file_origins import FileOrigins, FileWriter

log = structlog.get_logger()

# Bounds of one walk: entries, files that get rows, and bytes that are hashed.
ENTRIES, ROWS, BYTES = 20_000, 1000, 256 * 1024 * 1024
# The clock by which Linux tells when a file was changed (CLOCK_REALTIME_COARSE), and elsewhere by how much that one is
# behind the clock that programs read, at most.
_COARSE, _BEHIND = 5, 20_000_000


class _TooMuchError(Exception):
    """The bounds of a walk are reached, or some of it cannot be read."""


class KnownFiles(Lineage):
    """Knows the files of one workspace. It must be made in the thread of the event loop."""

    def __init__(self, store: FileOrigins, root: Path) -> None:
        self._store = store
        self._root = root
        self._loop = asyncio.get_running_loop()
        # What files hold, by inode, size and time of the last change in the kernel.
        self._digests: dict[str, tuple[tuple[int, ...], str]] = {}

    async def of(self, states: Sequence[FileState]) -> Sequence[Origins | None]:
        """See Lineage. Raises StoreUnavailable."""
        return await self._store.of(states)

    def rewritten(
        self, path: str, before: bytes | None, after: bytes, origins: Origins, *, keeps: bool, otherwise: Origins
    ) -> Origins:
        """See Lineage. Raises StoreUnavailable."""
        old, new = (FileState.of_now(path, one or b"") for one in (before, after))
        noting = self._store.rewrite(old if before and keeps else None, new, origins, otherwise)
        return asyncio.run_coroutine_threadsafe(noting, self._loop).result()

    async def seen(self, room: Workspace) -> Origins:
        """See Lineage: of all contents with untrusted words whose files are still there, and of files from outside."""
        tainted, writers = await self._store.tainted(room.whole(()))
        gone, nothing, outside = await asyncio.to_thread(self._look, room, tainted, writers)
        if gone or nothing:
            await self._store.forget(gone, nothing)
        found = [origin for path, origins in tainted.items() if path not in gone for origin in origins]
        found += [origin for one in writers if one not in nothing for origin in one.origins]
        return merged((*((Provenance("file", f"what lies in {outside}"),) if outside else ()), *found))

    async def begin(self, room: Workspace, origins: Collection[Provenance]) -> int:
        """See Lineage. Raises StoreUnavailable."""
        return await self._store.begin(room.whole(()), now(), origins)

    async def feed(self, writer: int, origins: Collection[Provenance]) -> None:
        """See Lineage. Raises StoreUnavailable."""
        await self._store.feed(writer, origins)

    async def unknown(self, room: Workspace) -> bool:
        """See Lineage: whether a file has a content without a row, and is no file of the prompt in its place."""
        known = await self._store.contents(room.whole(()))
        return await asyncio.to_thread(self._has_unknown, room, known)

    async def over(self, writer: int, *, alone: bool = False) -> None:
        """See Lineage. What cannot be persisted now is, at the next start."""
        with suppress(StoreUnavailable):
            await asyncio.shield(self._settle_all(writer, alone=alone))

    async def recover(self) -> None:
        """Settle what commands have written that a crash has ended. Raises StoreUnavailable."""
        await self._settle_all()

    async def _settle_all(self, writer: int | None = None, *, alone: bool = False) -> None:
        for one in await self._store.writing():
            if writer in (None, one.writer_id):
                # what it could read by its end stands in what it wrote
                seen = await self.seen(Workspace(self._root, tuple(filter(None, one.room.split("/")))))
                made = replace(one, origins=merged((*one.origins, *seen)))
                states = await asyncio.to_thread(self._written, made) if made.origins or alone else ()
                if not made.origins and states:
                    inside = len(one.room.split("/")) if one.room else 0
                    states = [state for state in states if _is_own(tuple(state.path.split("/")[inside:]))]
                await self._store.settle(made, states, time.time_ns())

    def _look(
        self, room: Workspace, tainted: Collection[str], writers: Sequence[FileWriter]
    ) -> tuple[Collection[str], Collection[FileWriter], str]:
        """Return which of these files are gone, which commands have left nothing, and a folder with files from outside.

        Blocking.
        """
        gone = {path for path in tainted if not os.path.lexists(self._root / path)}
        nothing = []
        for one in writers:
            with suppress(_TooMuchError):
                if one.until is not None and next(self._changed(one), None) is None:
                    nothing.append(one)
        return gone, nothing, next(_outside(room.root), "")

    def _has_unknown(self, room: Workspace, known: Collection[tuple[str, str]]) -> bool:
        """Return whether a file holds something else than these paths and digests say. Blocking.

        What cannot be read, or is too much, is unknown.
        """
        paths = {path for path, _ in known}
        left, size = ENTRIES, BYTES
        if len(self._digests) > ENTRIES:
            self._digests = {}
        try:
            for folder, folders, names, descriptor in os.fwalk(room.root, onerror=_unread):
                above = Path(folder).relative_to(room.root).parts
                folders[:] = [name for name in folders if _is_own((*above, name, ""))]
                left -= len(folders) + len(names)
                if left < 0:
                    return True
                for name in names:
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    parts = (*above, name)
                    if not stat.S_ISREG(status.st_mode) or not unknown(parts):
                        continue
                    path, now = room.whole(parts), (status.st_ino, status.st_size, status.st_ctime_ns)
                    if path not in paths:
                        return True
                    if self._digests.get(path, ((), ""))[0] != now:
                        size -= status.st_size
                        if size < 0:
                            return True
                        self._digests[path] = now, _digest(name, descriptor)
                    if (path, self._digests[path][1]) not in known:
                        return True
        except (OSError, RecursionError, WorkspaceError):
            return True
        return False

    def _written(self, one: FileWriter) -> Sequence[FileState] | None:
        """Return what the files hold that a command may have written; None: too many. Blocking."""
        states, left = list[FileState](), BYTES
        try:
            for path in self._changed(one):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                with os.fdopen(descriptor, "rb") as file:
                    status = os.fstat(descriptor)
                    left -= status.st_size
                    if len(states) >= ROWS or status.st_size > MAX_FILE_BYTES or left < 0:
                        return None
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                states.append(FileState(str(path.relative_to(self._root)), digest, status.st_ctime_ns))
        except (_TooMuchError, OSError):
            return None
        return states

    def _changed(self, one: FileWriter) -> Iterator[Path]:
        """Yield the files that a command may have written. Blocking. Raises _TooMuchError."""
        if not (self._root / one.room).exists():
            return
        left, until = ENTRIES, time.time_ns() if one.until is None else one.until
        try:
            for folder, folders, names, descriptor in os.fwalk(self._root / one.room, onerror=_unread):
                left -= len(folders) + len(names)
                if left < 0:
                    raise _TooMuchError
                for name in names:
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    if one.since <= status.st_ctime_ns <= until and stat.S_ISREG(status.st_mode):
                        yield Path(folder, name)
        except (OSError, RecursionError) as error:
            raise _TooMuchError from error


def now() -> int:
    """Return the time that a file has which is changed now, in nanoseconds; one that is changed later has no lower."""
    return time.clock_gettime_ns(_COARSE) if sys.platform == "linux" else time.time_ns() - _BEHIND


def _unread(error: OSError) -> None:
    raise error


def _digest(name: str, folder: int) -> str:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_own(parts: tuple[str, ...]) -> bool:
    """Return whether a file of a room is nothing that people sent or tools have kept, and lies in no room of others."""
    return parts[0] not in (*KEPT_FOLDERS, *ROOMS)


def _outside(room: Path) -> Iterator[str]:
    """Yield the folders of a room, and of rooms in it, in which something lies that people sent or tools have kept."""
    rooms = [room]
    for name in ROOMS:
        with suppress(OSError):
            rooms += [room / name / one for one in os.listdir(room / name)]
    for one in rooms:
        for name in KEPT_FOLDERS:
            with suppress(OSError):
                if not {".gitignore"}.issuperset(os.listdir(one / name)):
                    yield str((one / name).relative_to(room))
