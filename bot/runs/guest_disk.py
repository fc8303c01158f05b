"""Bounds of what guests may fill of the disk: the files of each of them, and all of them while little is free.

Sizes are counted: workspaces are walked through once, and again when they seem full. Of a guest who holds too much the
oldest files that people sent go first, except those that a waiting turn or delivery names; what does not fit then is
not written. The owner is told, and a note for the guest is left, before anything goes, so that a crash hides nothing.
"""

import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.tools.workspace import Workspace, WorkspaceError

MEDIA = "media"
# The file in MEDIA that says that files were deleted.
NOTE = ".files-deleted"
# Files count with the blocks that they take, so that many small ones count as well.
_BLOCK = 4096
# What counts for a folder that cannot be read, such as one whose path is too long.
_UNREAD = 10**15
# The most bounds in memory.
_MOST = 4096
# The least part of the disk, and the most bytes, that guests leave free.
_LEAST_PART, _LEAST_BYTES = 20, 10**9
# Seconds for which a measured size is believed, so that full workspaces are not walked through for each write.
_BELIEVED = 10.0
# Seconds for which counting is enough, since commands write as well.
_COUNTED = 600.0
# Bytes that a command may write in a full workspace, and by which one may be over its limit while commands run there.
_TIDYING = 100_000_000
NEARLY_FULL = "the disk of this machine is nearly full, so no files of guests are stored"


@dataclass(eq=False, kw_only=True)
class GuestDisk:
    """What all guests may fill. limit: bytes of one guest or group."""

    root: Path
    limit: int
    # Returns the files below the workspace, such as `people/…/media/…`, that something that waits names.
    named: Callable[[], Awaitable[Collection[str]]]
    # Tells the owner that files of a workspace, named by its path, are deleted; once for each.
    tell: Callable[[str], Awaitable[None]]
    # The workspaces of each person with several, by each of these.
    together: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _guards: "dict[str, RoomGuard]" = field(default_factory=dict)

    def guard(self, name: str) -> "RoomGuard":
        """Return the bound of a workspace, which is one for all of a person."""
        names = self.together.get(name, (name,))
        if names[0] not in self._guards:
            if len(self._guards) >= _MOST:
                self._guards.clear()
            self._guards[names[0]] = RoomGuard(self, names)
        return self._guards[names[0]]

    def check_free(self, more: int) -> None:
        """Raise WorkspaceError where a file of so many bytes would leave too little of the disk free."""
        free, size = free_and_size(self.root)
        if free - more < min(size // _LEAST_PART, _LEAST_BYTES):
            raise WorkspaceError(NEARLY_FULL)

    def has_dropped(self, name: str) -> bool:
        """Whether files that were sent to a workspace were ever deleted. Blocks."""
        return (self.root / name / MEDIA / NOTE).exists()


class RoomGuard:
    """The bound of the workspaces of one guest or group."""

    def __init__(self, disk: GuestDisk, names: Sequence[str]) -> None:
        """names: the paths of the workspaces below that of the owner."""
        self._disk = disk
        self._rooms = {name: Workspace(disk.root, tuple(name.split("/"))) for name in names}
        self._size = 0
        self._measured = float("-inf")

    def check(self, more: int, *, walks: bool = True) -> None:
        """See `Guard`."""
        self._disk.check_free(more)
        if (self._over(more) if walks else self._size + more - self._disk.limit) > 0:
            limit = self._disk.limit // 10**6
            raise WorkspaceError(f"this workspace is full: its files may take {limit:,} MB; delete some of them")
        self._size += -(-more // _BLOCK) * _BLOCK

    def left(self) -> int:
        """See `Guard`. A full workspace leaves a command enough to tidy up."""
        self._disk.check_free(0)
        self._measured = float("-inf")
        if (over := self._over(0)) > _TIDYING:
            raise WorkspaceError("this workspace is full; an owner has to delete some of its files")
        return max(_TIDYING, -over)

    async def make_room(self, more: int, run: Callable[..., Awaitable[Any]]) -> None:
        """Delete the oldest files that people sent until so many bytes fit. run: runs a function in a thread."""
        if await run(self._over, more) > 0:
            going = await run(self._oldest, more, await self._disk.named())
            for name in dict.fromkeys(name for name, _ in going):
                await self._disk.tell(name)
            await run(self._delete, going)

    def _over(self, more: int) -> int:
        """Return by how many bytes the limit would be passed."""
        age = time.monotonic() - self._measured
        if age > (_BELIEVED if self._size + more > self._disk.limit else _COUNTED):
            self._size = sum(size_of(room.root) for room in self._rooms.values())
            self._measured = time.monotonic()
        return self._size + more - self._disk.limit

    def _oldest(self, more: int, kept: Collection[str]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the files that are to go, each with its workspace; none where that does not help."""
        found = []
        for name, room in self._rooms.items():
            with suppress(WorkspaceError):  # it does not exist
                for folder in room.walk():
                    if folder.parts[:1] != (MEDIA,):
                        folder.folders[:] = [MEDIA] if not folder.parts and MEDIA in folder.folders else []
                        continue
                    for file in folder.files:
                        with suppress(OSError):
                            status = os.stat(file, dir_fd=folder.fd, follow_symlinks=False)
                            found.append((status.st_mtime, name, (*folder.parts, file), _counted(status)))
        going, left = [], self._size
        for _, name, path, size in sorted(found):
            if left + more <= self._disk.limit:
                break
            if path[-1] != NOTE and f"{name}/{'/'.join(path)}" not in kept:
                going.append((name, path))
                left -= size
        return going if left + more <= self._disk.limit else []

    def _delete(self, going: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        for name, path in going:
            with suppress(OSError, WorkspaceError), self._rooms[name].descend((MEDIA,)) as media:
                os.close(os.open(NOTE, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=media))
            with suppress(OSError, WorkspaceError), self._rooms[name].descend(path[:-1]) as folder:
                size = _counted(os.stat(path[-1], dir_fd=folder, follow_symlinks=False))
                os.unlink(path[-1], dir_fd=folder)
                self._size -= size


def size_of(folder: Path) -> int:
    """Return how many bytes the files below a folder take, without following links. Blocks."""
    total, left = 0, [str(folder)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    total += _counted(entry.stat(follow_symlinks=False))
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
        except FileNotFoundError:
            continue  # it was deleted meanwhile
        except OSError:
            total += _UNREAD
    return total


def over_limit(root: Path, limit: int, together: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the workspaces of guests and groups that hold more than their limit, with their sizes. Blocks."""
    rooms = [room for kind in ("people", "groups") for room in sorted((root / kind).glob("*")) if not room.is_symlink()]
    sizes = Counter[str]()
    for room in rooms:
        name = f"{room.parent.name}/{room.name}"
        sizes[together.get(name, (name,))[0]] += size_of(room)
    return {name: size for name, size in sizes.items() if size > limit}


def free_and_size(folder: Path) -> tuple[int, int]:
    """Return the free bytes of the disk of a folder, and all of them."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize


def _counted(status: os.stat_result) -> int:
    return -(-status.st_size // _BLOCK) * _BLOCK or _BLOCK
