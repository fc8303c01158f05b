"""Removes folders, whatever lies in them: any depth, any permissions, and never on the event loop."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import structlog

_log = structlog.get_logger()
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_FOLDERS = (IsADirectoryError, PermissionError)  # what Linux and macOS raise when a folder is unlinked


def remove(folder: Path) -> OSError | None:
    """Delete a file, or a folder with all that is in it; links are deleted, not followed. Blocks.

    Folders in it are moved up and emptied there, so that neither the stack, nor descriptors, nor paths grow with their
    depth. Returns and logs the first error; what can be deleted is deleted all the same.
    """
    first, stuck = None, set[str]()
    try:
        folder.unlink(missing_ok=True)
        return None
    except _OF_FOLDERS:
        pass
    except OSError as error:
        return _logged(folder, error)
    try:
        top = os.open(folder, _FOLDER)
    except OSError as error:
        return _logged(folder, error)
    try:
        with suppress(OSError):
            os.fchmod(top, 0o700)
        there = frozenset(os.listdir(top))
        free = (name for name in map(str, count()) if name not in there)
        while waiting := set(os.listdir(top)) - stuck:
            for name in waiting:
                try:
                    _delete(name, top, free)
                except OSError as error:
                    first = first or error
                    stuck.add(name)
        os.rmdir(folder)
    except OSError as error:
        first = first or error
    finally:
        os.close(top)
    return first and _logged(folder, first)


async def remove_apart(folder: Path) -> None:
    """Delete a folder in a thread of its own. If this is cancelled, the thread continues."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def work() -> None:
        remove(folder)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=work, name="removal", daemon=True).start()
    await done.wait()


def remove_leftovers(above: Path) -> None:
    """Delete the folders that a crash has left in a folder, in a thread that nobody waits for. Raises nothing."""
    try:
        left = [above / name for name in os.listdir(above)]
    except FileNotFoundError:
        return  # nothing was ever left there
    except OSError as error:
        _logged(above, error)
    else:
        threading.Thread(target=lambda: [*map(remove, left)], name="removal", daemon=True).start()


def _delete(name: str, top: int, free: Iterator[str]) -> None:
    """Delete a file, or a folder after its own folders have been moved up. Raises OSError."""
    try:
        os.unlink(name, dir_fd=top)
    except _OF_FOLDERS:
        inside = _opened(name, top)
    else:
        return
    try:
        for entry in os.listdir(inside):
            try:
                os.unlink(entry, dir_fd=inside)
            except _OF_FOLDERS:
                os.close(_opened(entry, inside))  # gives the right to move it
                os.rename(entry, next(free), src_dir_fd=inside, dst_dir_fd=top)
    finally:
        os.close(inside)
    os.rmdir(name, dir_fd=top)


def _opened(name: str, above: int) -> int:
    """Open a folder, and take all rights to it. Raises OSError."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=above, follow_symlinks=False)
        opened = os.open(name, _FOLDER, dir_fd=above)
    with suppress(OSError):
        os.fchmod(opened, 0o700)
    return opened


def _logged(folder: Path, error: OSError) -> OSError:
    _log.warning("not removed", folder=str(folder), error=str(error))
    return error
