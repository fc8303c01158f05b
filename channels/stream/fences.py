"""Fenced code, line by line: which fence is open after a line, and how it is closed and opened again.

The chunker asks at every line. Rules are CommonMark's, with two liberties that model text needs: list items are not
tracked, so a fence may be indented by any width, and only the first `limit` characters of a line decide about it.
"""

import re
from dataclasses import dataclass

_PREFIX = r"[ \t]*(?:(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))[ \t]*)*"
_OPENING = re.compile(rf"(?P<prefix>{_PREFIX})(?P<marker>`{{3,}}|~{{3,}})(?P<info>.*)", re.DOTALL)
_CLOSING = re.compile(r"(?P<prefix>[ \t>]*)(?P<marker>`{3,}|~{3,})[ \t\r]*")
_BULLET = re.compile(r"[^ \t>]")


@dataclass(frozen=True, slots=True)
class Fence:
    """An open fence. prefix: quote marks and indentation before the marker; info: as written, with its space."""

    prefix: str
    marker: str
    info: str

    @property
    def opening(self) -> str:
        """The line that opens it again in the block that follows."""
        return self.prefix + self.marker + self.info

    @property
    def closing(self) -> str:
        """The line that closes it at the end of a block."""
        return self.prefix + self.marker

    @property
    def quoted(self) -> bool:
        """Whether it stands in a block quote, whose marks every line of it carries."""
        return ">" in self.prefix

    def closed_by(self, line: str) -> bool:
        """Whether this line is its closing line."""
        found = _CLOSING.fullmatch(line)
        return (
            found is not None
            and found["marker"][0] == self.marker[0]
            and len(found["marker"]) >= len(self.marker)
            and (">" in found["prefix"]) == self.quoted
            and (self.quoted or len(found["prefix"]) <= len(self.prefix) + 3)
        )


def may_open(line: str) -> bool:
    """Whether a line that begins so could be a fence."""
    return _OPENING.match(line) is not None


def fence_after(fence: Fence | None, line: str, limit: int) -> Fence | None:
    """Which fence is open after this line, if `fence` was before it.

    line: without its line end, or its first `limit` characters. An opening line longer than `limit` is opened again
    without its info string; a marker that alone is longer is text.
    """
    line = line[:limit]
    if fence is not None:
        if fence.closed_by(line):
            return None
        if not fence.quoted or line.lstrip(" \t").startswith(">"):
            return fence
        # The quote ended, and its fence with it: the line is read afresh.
    found = _OPENING.fullmatch(line)
    if found is None or len(found["prefix"]) + len(found["marker"]) >= limit:
        return None
    info = found["info"].rstrip()
    if found["marker"][0] == "`" and "`" in info:
        return None
    return Fence(_BULLET.sub(" ", found["prefix"]), found["marker"], info if len(found[0]) < limit else "")
