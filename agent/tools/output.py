"""The output of calls: bounded to head and tail for the model, without secrets, and kept whole in a file.

Memory and disk are bounded: 8 MB of one result, the newest 50 results of a week. A file that cannot be written fails no
call; the result says so instead. Git, `glob` and `grep` ignore the folder.
"""

import asyncio
import codecs
import hashlib
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress

from agent.tools.workspace import Workspace, WorkspaceError

HEAD_BYTES = 12 * 1024
TAIL_BYTES = 20 * 1024
UPDATE_SECONDS = 0.25

_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that only continue a character


class HeadAndTail:
    """A sink for any number of bytes that holds the first `head` bytes and at least the last `tail` bytes."""

    def __init__(self, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._head_size, self._tail_size = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self._seen = 0

    def add(self, data: bytes) -> bytes:
        """Take bytes; returns those of them that belong to the head."""
        self._seen += len(data)
        first = data[: self._head_size - len(self._head)]
        self._head += first
        self._tail += data[len(first) :]
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: -self._tail_size]
        return first

    def text(self, where: str = "") -> str:
        """Everything, or head and tail with a line between them that counts the bytes left out. Never fails to decode.

        where: appended to that line, to say where the rest can be found.
        """
        if self._seen <= self._head_size + self._tail_size:
            return _decoded(bytes(self._head + self._tail))
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))  # drops a cut character
        tail = bytes(self._tail[-self._tail_size :])
        left_out = self._seen - self._head_size - self._tail_size
        cut = f"\n[… {left_out:,} bytes left out{where} …]\n"
        return head.replace("\x00", "�") + cut + _decoded(tail.lstrip(_CONTINUATION))


class Paced:
    """Publishes text at most four times a second. Text that comes sooner is joined; at the end the rest is dropped."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._waiting = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Publish the text now, or with the next batch."""
        self._waiting += text
        if self._timer is None:
            self._pass_on()

    def close(self) -> None:
        """Publish nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _pass_on(self) -> None:
        self._timer = None
        if self._waiting:
            self._tell(self._waiting)
            self._waiting = ""
            self._timer = asyncio.get_running_loop().call_later(UPDATE_SECONDS, self._pass_on)


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace").replace("\x00", "�")


FOLDER = "tool-results"
MAX_FILE_BYTES = 8 * 1024 * 1024
MAX_FILES = 50
MAX_AGE_SECONDS = 7 * 24 * 3600.0

_UNCUT = HEAD_BYTES + TAIL_BYTES
_OWN_WORDS = 2048  # of a tool, around what it has cut itself: that is not cut again
_PIECE = 64 * 1024  # written at once


class Overflow:
    """Keeps output that is too long for the model in `tool-results/` of a workspace."""

    def __init__(
        self,
        workspace: Workspace,
        clean: Callable[[str], str] = lambda text: text,
        withheld: Callable[[str], int] = lambda text: 0,
    ) -> None:
        """clean: returns a text without secrets. withheld: how many characters at the end may begin a secret."""
        self._workspace = workspace
        self.clean, self.withheld = clean, withheld

    async def keep(self, call_name: str, text: str) -> str:
        """Return what the model reads of a result: all of it up to 32 KB, else head, tail, and where the whole is.

        call_name: unique, such as a turn id with a call id; the file is named after it.
        """
        data = text.encode(errors="replace")
        if len(data) <= _UNCUT + _OWN_WORDS:
            return text

        def spill() -> str:
            output = self.spill(call_name)
            output.add(data)
            return output.text()

        return await asyncio.to_thread(spill)

    def put(self, name: str, text: str) -> None:
        """Write a text that is not deleted with old results. Blocks. Raises WorkspaceError or OSError."""
        _make_room(self._workspace)
        self._workspace.write_now(f"{FOLDER}/{name}", text.encode(errors="replace"), "overwrite")

    def spill(self, call_name: str) -> "Spill":
        """Return a sink that does the same for output that comes in pieces and may never end."""
        readable = re.sub(r"[^A-Za-z0-9_-]", "-", call_name)[:60]
        digest = hashlib.sha256(call_name.encode(errors="replace")).hexdigest()[:8]
        return Spill(self._workspace, f"{FOLDER}/{readable}-{digest}.txt")

    def mask(self) -> "Mask":
        """Return a filter that removes secrets from output that comes in pieces, before it is kept or published."""
        return Mask(self.clean, self.withheld)


class Mask:
    """Removes secrets from output that comes in pieces; what may be the beginning of a secret waits for more."""

    def __init__(self, clean: Callable[[str], str], withheld: Callable[[str], int]) -> None:
        self._clean, self._withheld = clean, withheld
        self._held = b""

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """Take a piece; returns the clean bytes that are certain by now. last: nothing follows."""
        text = (self._held + data).decode(errors="surrogateescape")
        whole = len(text) - (0 if last else self._withheld(text))
        self._held = text[whole:].encode(errors="surrogateescape")
        return self._clean(text[:whole]).encode(errors="surrogateescape")


class Spill(HeadAndTail):
    """Head and tail of output. Once something is left out of them, a file holds everything, up to 8 MB."""

    def __init__(self, workspace: Workspace, path: str) -> None:
        super().__init__()
        self._workspace, self._path = workspace, path
        self._pending = bytearray()
        self._written = 0
        self._problem = ""

    def add(self, data: bytes) -> bytes:
        """Take bytes as `HeadAndTail` does. Blocks for a write of 64 KB now and then."""
        if self._seen + len(data) > _UNCUT and not self._problem:
            if self._seen <= _UNCUT:
                self._pending += self._head + self._tail  # nothing of them is gone yet
            self._pending += data[: MAX_FILE_BYTES - self._written - len(self._pending)]
            if len(self._pending) >= _PIECE:
                self._write()
        return super().add(data)

    def text(self, where: str = "") -> str:
        """What the model reads; it may be asked for while more is to come. `where` is not used."""
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
    """Make the folder if it is missing, and delete the oldest results. Raises WorkspaceError or OSError."""
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
