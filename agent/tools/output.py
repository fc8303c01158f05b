"""What a process writes, kept within a bound: its head and its tail, and how much was between them."""

import codecs

HEAD_BYTES = 12 * 1024
TAIL_BYTES = 20 * 1024

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

    def text(self) -> str:
        """The whole, or head and tail with a line between them that counts what is left out. Never fails to decode."""
        if self._seen <= self._head_size + self._tail_size:
            return _decoded(bytes(self._head + self._tail))
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))  # drops a cut character
        tail = bytes(self._tail[-self._tail_size :])
        left_out = self._seen - self._head_size - self._tail_size
        cut = f"\n[… {left_out:,} bytes left out …]\n"
        return head.replace("\x00", "�") + cut + _decoded(tail.lstrip(_CONTINUATION))


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace").replace("\x00", "�")
