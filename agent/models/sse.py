"""Server-sent events, decoded as the bytes arrive: https://html.spec.whatwg.org/multipage/server-sent-events.html

Plain (name, data) pairs instead of SDK objects, because an answer is thousands of them. Linear in the number of bytes
however they are sliced. Unlike the standard, `end` also gives an event that the end of the stream left without its
blank line: some servers do not send the last one.
"""

Event = tuple[str, bytes]  # its name ("" when it has none) and its data


class Decoder:
    """One stream; comments and fields other than event and data are left out."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of a line that has not ended
        self._held = b""  # a CR at the end of a chunk: the LF that belongs to it may be the next byte
        self._mark = b"\xef\xbb\xbf"  # of the byte order, which may stand before the first line
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Take in some bytes; returns the events that they complete."""
        data, self._held = self._held + chunk, b""
        if data.endswith(b"\r"):
            data, self._held = data[:-1], b"\r"
        if b"\n" not in data and b"\r" not in data:
            self._pieces.append(data)
            return []
        self._pieces.append(data)
        lines = b"".join(self._pieces).splitlines(keepends=True)
        self._pieces = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        found: list[Event] = []
        for line in lines:
            self._line(line.rstrip(b"\r\n"), found)
        return found

    def end(self) -> list[Event]:
        """The stream is over; returns the event that was not ended by a blank line, if there is one."""
        found: list[Event] = []
        self._line(b"".join(self._pieces), found)
        self._line(b"", found)
        return found

    def _line(self, line: bytes, found: list[Event]) -> None:
        line, self._mark = line.removeprefix(self._mark), b""
        if not line:
            if self._data:
                found.append((self._name, b"\n".join(self._data)))
            self._name, self._data = "", []
            return
        key, _, value = line.partition(b":")
        if key == b"data":
            self._data.append(value.removeprefix(b" "))
        elif key == b"event":
            self._name = value.removeprefix(b" ").decode(errors="replace")
