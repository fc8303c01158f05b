"""What a process writes, kept within a bound: head and tail, what was between them counted; and told at a pace."""

import asyncio
import codecs
from collections.abc import Callable

HEAD_BYTES = 12 * 1024
TAIL_BYTES = 20 * 1024
UPDATE_SECONDS = 0.25

_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that only continue a character


class HeadAndTail:
    """Takes bytes, however many, and holds at most the first `head` and a little over the last `tail` of them."""

    def __init__(self, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._head_size, self._tail_size = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self._seen = 0

    def add(self, data: bytes) -> bytes:
        """Take some; returns what of it belongs to the head."""
        self._seen += len(data)
        first = data[: self._head_size - len(self._head)]
        self._head += first
        self._tail += data[len(first) :]
        if len(self._tail) > 2 * self._tail_size:
            del self._tail[: -self._tail_size]
        return first

    def text(self, where: str = "") -> str:
        """The whole, or head and tail with a line between them that counts what is left out. Never fails to decode.

        where: what that line says of where the rest is.
        """
        if self._seen <= self._head_size + self._tail_size:
            return _decoded(bytes(self._head + self._tail))
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))  # drops a cut character
        tail = bytes(self._tail[-self._tail_size :])
        left_out = self._seen - self._head_size - self._tail_size
        cut = f"\n[… {left_out:,} bytes left out{where} …]\n"
        return head.replace("\x00", "�") + cut + _decoded(tail.lstrip(_CONTINUATION))


class Paced:
    """Passes text on, at most four times a second: what comes too soon is joined, and what is left at its end lost."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._waiting = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Some more."""
        self._waiting += text
        if self._timer is None:
            self._pass_on()

    def close(self) -> None:
        """Nothing is passed on any more."""
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
