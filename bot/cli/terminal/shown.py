"""How far this machine's terminals have shown their conversation, in a small file that they share."""

import contextlib
import os
from pathlib import Path

_ROW = "%018d %018d\n"
"""Always of one length, so that one write replaces another whole."""


class Shown:
    """Position of the last event that was shown, and how many characters of the answer under way behind it.

    file: None remembers nothing. A file that cannot be written costs the next terminal a repetition, and nothing else;
    so do two terminals that write at the same instant, for nobody waits for a lock here.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def read(self) -> tuple[int, int]:
        """What was shown; nothing where nothing was noted."""
        try:
            position, characters = map(int, self._file.read_bytes().split() if self._file else ())
        except (OSError, ValueError):
            return 0, 0
        return position, characters

    def note(self, position: int, characters: int, *, anew: bool = False) -> None:
        """More was shown. What another terminal has shown beyond it stays, unless the store is another one: anew."""
        if self._file is None or (not anew and (position, characters) <= self.read()):
            return
        with contextlib.suppress(OSError):
            descriptor = os.open(self._file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, (_ROW % (position, characters)).encode(), 0)
            finally:
                os.close(descriptor)
