"""How far this machine's terminals have shown their conversation, in a small file that they share."""

import contextlib
import os
from pathlib import Path

# Always of one length, so that one write replaces another whole.
_ROW = "%018d\n"


class Shown:
    """Position of the last event that was shown.

    A file that cannot be written costs the next terminal a repetition, and nothing else;
    so do two terminals that write at the same instant, for nobody waits for a lock here.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> int:
        """What was shown; 0 where nothing was noted."""
        try:
            return int(self._file.read_bytes().split()[0])
        except (OSError, ValueError, IndexError):
            return 0

    def note(self, position: int, *, anew: bool = False) -> None:
        """More was shown. What another terminal has shown beyond it stays, unless the store is another one: anew."""
        if not anew and position <= self.read():
            return
        with contextlib.suppress(OSError):
            descriptor = os.open(self._file, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, (_ROW % position).encode(), 0)
            finally:
                os.close(descriptor)
