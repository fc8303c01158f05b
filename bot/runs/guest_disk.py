"""Bounds of what guests may fill of the disk: each of their workspaces, and all of them while little is free.

Sizes are counted: a workspace is walked through once, and again when it seems full. Of a full one the oldest files that
people sent go first, except those that a waiting turn or delivery names; what does not fit then is not written.
"""

import os
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.tools.workspace import Workspace, WorkspaceError

MEDIA = "media"
# Files count with the blocks that they take, so that many small ones count as well.
_BLOCK = 4096
# The least part of the disk, and the most bytes, that guests leave free.
_LEAST_PART, _LEAST_BYTES = 20, 10**9
# Seconds for which a measured size is believed, so that a full workspace is not walked through for each write.
_BELIEVED = 10.0
# Seconds for which counting is enough, since commands write as well.
_COUNTED = 600.0
NEARLY_FULL = "the disk of this machine is nearly full, so no files of guests are stored"


@dataclass(eq=False, kw_only=True)
class GuestDisk:
    """What all guests may fill. limit: bytes of one workspace."""

    root: Path
    limit: int
    # Returns the files below the workspace, such as `people/…/media/…`, that something that waits names.
    named: Callable[[], Awaitable[Collection[str]]]
    # Tells the owner that files of a workspace, named by its path, were deleted; once for each.
    tell: Callable[[str], Awaitable[None]]
    # Workspaces of which files were deleted since the guest was told.
    dropped: set[str] = field(default_factory=set)

    def check_free(self, more: int) -> None:
        """Raise WorkspaceError where a file of so many bytes would leave too little of the disk free."""
        free, size = free_and_size(self.root)
        if free - more < min(size // _LEAST_PART, _LEAST_BYTES):
            raise WorkspaceError(NEARLY_FULL)


class RoomGuard:
    """The bound of one workspace."""

    def __init__(self, disk: GuestDisk, workspace: Workspace, name: str) -> None:
        """name: the path of the workspace below that of the owner."""
        self._disk, self._workspace, self._name = disk, workspace, name
        self._size = 0
        self._measured = float("-inf")

    def check(self, more: int, *, walks: bool = True) -> None:
        """See `Guard`."""
        self._disk.check_free(more)
        if (self._over(more) if walks else self._size + more - self._disk.limit) > 0:
            limit = self._disk.limit // 10**6
            raise WorkspaceError(f"this workspace is full: its files may take {limit:,} MB; delete some of them")
        self._size += -(-more // _BLOCK) * _BLOCK

    async def make_room(self, more: int, run: Callable[..., Awaitable[int]]) -> None:
        """Delete the oldest files that people sent until so many bytes fit. run: runs a function in a thread."""
        if await run(self._over, more) > 0 and await run(self._drop, more, await self._disk.named()):
            self._disk.dropped.add(self._name)
            await self._disk.tell(self._name)

    def _over(self, more: int) -> int:
        """Return by how many bytes the workspace would pass its limit."""
        age = time.monotonic() - self._measured
        if age > (_BELIEVED if self._size + more > self._disk.limit else _COUNTED):
            self._size, self._measured = size_of(self._workspace.root), time.monotonic()
        return self._size + more - self._disk.limit

    def _drop(self, more: int, kept: Collection[str]) -> int:
        """Delete files; returns how many."""
        found = []
        for folder in self._workspace.walk():
            if folder.parts[:1] == (MEDIA,):
                for name in folder.files:
                    path = (*folder.parts, name)
                    if self._workspace.whole(path) not in kept:
                        with suppress(OSError):
                            status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
                            found.append((status.st_mtime, path, _counted(status)))
            elif folder.parts:
                folder.folders.clear()
        gone = 0
        for _, path, size in sorted(found):
            if self._size + more <= self._disk.limit:
                break
            with suppress(OSError, WorkspaceError), self._workspace.descend(path[:-1]) as fd:
                os.unlink(path[-1], dir_fd=fd)
                self._size -= size
                gone += 1
        return gone


def size_of(folder: Path) -> int:
    """Return how many bytes the files below a folder take, without following links. Blocks."""
    total, left = 0, [folder]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += _counted(entry.stat(follow_symlinks=False))
                    if entry.is_dir(follow_symlinks=False):
                        left.append(Path(entry.path))
    return total


def over_limit(root: Path, limit: int) -> dict[str, int]:
    """Return the workspaces of guests that hold more than their limit, with their sizes. Blocks."""
    rooms = [room for kind in ("people", "groups") for room in sorted((root / kind).glob("*")) if not room.is_symlink()]
    sizes = {f"{room.parent.name}/{room.name}": size_of(room) for room in rooms}
    return {name: size for name, size in sizes.items() if size > limit}


def free_and_size(folder: Path) -> tuple[int, int]:
    """Return the free bytes of the disk of a folder, and all of them."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def _counted(status: os.stat_result) -> int:
    return -(-status.st_size // _BLOCK) * _BLOCK or _BLOCK
