"""Server-sent events, decoded as the bytes arrive: https://html.spec.whatwg.org/multipage/server-sent-events.html

Plain (name, data) pairs instead of SDK objects, because an answer is thousands of them. Linear in the number of bytes
however they are sliced. Unlike the standard, `end` also gives an event that the end of the stream left without its
blank line: some servers do not send the last one.
"""

import codecs
import io

Event = tuple[str, str]  # its name ("" when it has none) and its data


class Decoder:
    """One stream; comments and fields other than event and data are left out."""

    def __init__(self) -> None:
        characters = codecs.getincrementaldecoder("utf-8-sig")("replace")  # without the mark of the byte order
        self._decoder = io.IncrementalNewlineDecoder(characters, translate=True)
        self._pieces: list[str] = []  # of a line that has not ended
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Take in some bytes; returns the events that they complete."""
        text = self._decoder.decode(chunk)
        if "\n" not in text:
            self._pieces.append(text)
            return []
        *lines, rest = ("".join((*self._pieces, text)) if self._pieces else text).split("\n")
        self._pieces = [rest] if rest else []
        events: list[Event] = []
        for line in lines:
            if line:
                key, _, value = line.partition(":")
                if key == "data":
                    self._data.append(value.removeprefix(" "))
                elif key == "event":
                    self._name = value.removeprefix(" ")
            else:
                if self._data:
                    events.append((self._name, "\n".join(self._data)))
                self._name, self._data = "", []
        return events

    def end(self) -> list[Event]:
        """The stream is over; returns the event that was not ended by a blank line, if there is one."""
        return self.feed(b"\n\n")
