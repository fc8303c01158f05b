"""Knows in which folders commands in a sandbox may write now, so that what these keep is changed in place.

What a room keeps is mounted over its files. When another file takes the place of one of them, the kernel takes the
mount away, and a command that runs could write into the new file, or into the temporary one before.
"""

import os
import threading
from collections import Counter
from pathlib import Path

# Held while a command is noted, and while a file takes the place of another.
STEP = threading.Lock()
_folders = Counter[tuple[int, int]]()


def begin(room: Path) -> tuple[int, int]:
    """Note that a command that may write in a room is about to start; returns what `over` takes. Raises OSError."""
    one = _identity(os.stat(room))
    with STEP:
        _folders[one] += 1
    return one


def over(one: tuple[int, int]) -> None:
    """Note that such a command has ended."""
    _folders[one] -= 1


def is_written(folder: int) -> bool:
    """Return whether a command may write now in the folder of a descriptor. To be called with STEP."""
    return _folders[_identity(os.fstat(folder))] > 0


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
