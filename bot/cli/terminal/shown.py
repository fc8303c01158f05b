"""How far this machine's terminals have shown their conversation, in a small file that they share."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

_ROW = "%018d %018d\n"


class Shown:
    """Position of the last event that was shown, and how many characters of the answer under way behind it.

    file: None remembers nothing. A file that cannot be written costs the next terminal a repetition, and nothing else.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def read(self) -> tuple[int, int]:
        """What was shown; nothing where nothing was noted."""
        try:
            return _parse(self._file.read_bytes()) if self._file else (0, 0)
        except OSError:
            return 0, 0

    def note(self, position: int, characters: int, *, anew: bool = False) -> None:
        """More was shown. What another terminal has shown beyond it stays, unless the store is another one: anew."""
        if self._file is None:
            return
        with contextlib.suppress(OSError), _locked(self._file) as descriptor:
            if anew or (position, characters) > _parse(os.pread(descriptor, 100, 0)):
                os.pwrite(descriptor, (_ROW % (position, characters)).encode(), 0)


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _parse(row: bytes) -> tuple[int, int]:
    try:
        position, characters = map(int, row.split())
    except ValueError:
        return 0, 0
    return position, characters
