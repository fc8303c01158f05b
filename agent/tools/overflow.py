"""Long results keep their head and their tail; the whole of them goes to a file that the model can read.

Promises: memory and disk are bounded (8 MB of a result, the newest 50 of a week), no secret of the service is written,
and a file that cannot be written fails no call: then the result says so. Git, `glob` and `grep` pass the folder over.
Called by the pipeline for results that are there, by `exec` for output while it comes.
"""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress

from agent.tools.output import HEAD_BYTES, TAIL_BYTES, HeadAndTail
from agent.tools.workspace import Workspace, WorkspaceError

FOLDER = "tool-results"
MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_FILES = 50
MAX_AGE_SECONDS = 7 * 24 * 3600.0

_UNCUT = HEAD_BYTES + TAIL_BYTES
_OWN_WORDS = 2048  # of a tool, around what it has cut itself: that is not cut again
_PIECE = 64 * 1024  # written at once


class Overflow:
    """Keeps what is too long for the model in `tool-results/` of the workspace.

    clean: a text without secrets. withheld: how many characters at its end may be the beginning of one.
    """

    def __init__(
        self,
        workspace: Workspace,
        clean: Callable[[str], str] = lambda text: text,
        withheld: Callable[[str], int] = lambda text: 0,
    ) -> None:
        self._workspace = workspace
        self.clean, self.withheld = clean, withheld

    async def keep(self, call_name: str, text: str) -> str:
        """What the model gets of a result: all of it up to 32 KB, else head, tail, and where the whole is.

        call_name: unique, such as a turn and its call; the file is named after it.
        """
        data = text.encode(errors="replace")
        if len(data) <= _UNCUT + _OWN_WORDS:
            return text

        def spill() -> str:
            output = self.spill(call_name)
            output.add(data)
            return output.text()

        return await asyncio.to_thread(spill)

    def spill(self, call_name: str) -> "Spill":
        """The same for output that comes in pieces and may never end."""
        readable = re.sub(r"[^A-Za-z0-9_-]", "-", call_name)[:60]
        digest = hashlib.sha256(call_name.encode(errors="replace")).hexdigest()[:8]
        return Spill(self._workspace, f"{FOLDER}/{readable}-{digest}.txt")

    def mask(self) -> "Mask":
        """What takes secrets out of output that comes in pieces, before any of it is kept or told."""
        return Mask(self.clean, self.withheld)


class Mask:
    """Pieces of output without secrets; what may be the beginning of one waits for more."""

    def __init__(self, clean: Callable[[str], str], withheld: Callable[[str], int]) -> None:
        self._clean, self._withheld = clean, withheld
        self._held = b""

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Of a further piece, and of what waited, what may be passed on; last: nothing follows."""
        text = (self._held + data).decode(errors="surrogateescape")
        whole = len(text) - (0 if last else self._withheld(text))
        self._held = text[whole:].encode(errors="surrogateescape")
        return self._clean(text[:whole]).encode(errors="surrogateescape")


class Spill(HeadAndTail):
    """Head and tail of what it is given; once something is left out, the file has all of it, up to its bound."""

    def __init__(self, workspace: Workspace, path: str) -> None:
        super().__init__()
        self._workspace, self._path = workspace, path
        self._pending = bytearray()
        self._written = 0
        self._problem = ""

    def add(self, data: bytes) -> bytes:
        """As HeadAndTail. Writes 64 KB at a time, as a rule only into memory of the system."""
        if self._seen + len(data) > _UNCUT and not self._problem:
            if self._seen <= _UNCUT:
                self._pending += self._head + self._tail  # nothing of them is gone yet
            self._pending += data[: MAX_FILE_BYTES - self._written - len(self._pending)]
            if len(self._pending) >= _PIECE:
                self._write()
        return super().add(data)

    def text(self, where: str = "") -> str:
        """What the model gets; may be asked for while more is to come. `where` is known here."""
        if self._pending:
            self._write()
        if self._problem:
            return super().text(f"; they could not be kept ({self._problem})")
        kept = "all of it is" if self._written == self._seen else f"the first {self._written:,} are"
        line = self._head.count(b"\n") + 1
        return super().text(f"; {kept} in {self._path}: read it with offset {line}")

    def _write(self) -> None:
        try:
            if not self._written:
                _make_room(self._workspace)
            self._workspace.extend(self._path, bytes(self._pending))
        except (WorkspaceError, OSError) as error:
            self._problem = str(error).rstrip(".")
        self._written += len(self._pending)
        self._pending.clear()


def _make_room(workspace: Workspace) -> None:
    """Make the folder, and take away the oldest results. Raises WorkspaceError or OSError."""
    with workspace.descend((FOLDER,), create=True) as folder:
        with os.scandir(folder) as entries:
            found = {entry.name: entry.stat(follow_symlinks=False).st_mtime for entry in entries}
        results = sorted((name for name in found if name.endswith(".txt")), key=found.__getitem__, reverse=True)
        for number, name in enumerate(results, 1):
            if number >= MAX_FILES or time.time() - found[name] > MAX_AGE_SECONDS:
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)
    if ".gitignore" not in found:
        workspace.extend(f"{FOLDER}/.gitignore", b"*\n")
