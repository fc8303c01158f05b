"""Cuts the text of a model, as it streams, into the blocks of a reply. `bot/replies` feeds it.

Breaks, by preference: paragraph, line, sentence, word, hard cut; outside fenced code before inside. The first
paragraph end past `min_chars` is taken at once; the others only when `max_chars` forces it, and then the last one that
fits. A cut is decided by the characters alone, so it does not matter how the stream was sliced, and each character is
looked at a bounded number of times. Sizes are UTF-16 units.
"""

import re
from dataclasses import dataclass
from enum import IntEnum

import regex  # type: ignore[import-untyped]

from channels.outgoing import ReplyBlock
from channels.stream.fences import Fence, fence_after, may_open
from channels.utf16 import index_at, units

SMALLEST_LIMIT = 16

_MARKERS = "`~"
_ENDERS = "。！？"
_CLOSERS = "」』）"
_TOKEN = re.compile(rf"\n|[^\S\n]+|[{_ENDERS}]+|[{_CLOSERS}]+|[^\s{_ENDERS}{_CLOSERS}]+")
_SENTENCE_END = re.compile(rf"(?:(?<!\d)[.!?…]|[!?…{_ENDERS}])[\"'”’»)\]*_`~{_CLOSERS}]*\Z")
_GRAPHEME = regex.compile(r"\X")
_LEADING_BLANK_LINES = re.compile(r"(?:[ \t\r]*\n)+")
# What would begin a block of its own at the start of a line, but stood inside one.
_BLOCK_START = re.compile(
    r"(?:#{1,6}(?=\s|\Z)|>|[-+*](?=\s|\Z)|`{3}|~{3}|\[[^\]\n]*\]:|([-*_])(?:[ \t]*\1){2,}[ \t]*(?:\n|\Z))"
)
_NUMBER_START = re.compile(r"\d{1,9}(?=[.)](?:\s|\Z))")


class _Rank(IntEnum):
    """How good a place is to break, best first."""

    PARAGRAPH = 0
    LINE = 1
    SENTENCE = 2
    WORD = 3
    FENCE_LINE = 4
    FENCE_WORD = 5


@dataclass(frozen=True, slots=True)
class _Cut:
    """A place to break: index in the buffer, the fence open there, and what stands before it on its line."""

    index: int
    fence: Fence | None
    line: str


class Chunker:
    """Text in by `feed`, blocks out; `end` gives what is left. One answer each.

    min_chars: no block but the last is cut from fewer units of the model's text; at most two thirds of max_chars.
    max_chars: no block's text is longer, the lines that close and reopen a fence included; at least 16, and
    below 64 too short for fences to be minded.
    after: what stands before this text (a cut answer that is continued); if a fence is open there, the first block
    reopens it.

    The `said` slices joined are what was fed. Blank pieces are never blocks: white space belongs to the block before
    it, at the very start to the first. What follows the last visible character and was not yet part of a block when
    `end` comes is dropped: white space of an answer that has nothing else, and the closing line of a fence that the
    last block has already closed.
    """

    def __init__(self, min_chars: int, max_chars: int, after: str = "") -> None:
        if max_chars < SMALLEST_LIMIT:
            raise ValueError(f"max_chars must be at least {SMALLEST_LIMIT}, not {max_chars}")
        self._max = max_chars
        self._min = min(max(min_chars, 1), max_chars * 2 // 3)
        # A line that might be a fence is decided within this many characters. A shorter one is never cut: it either
        # begins past `_min`, and then the cut is before it, or it fits.
        self._decisive = max_chars // 12
        self._buffer = ""
        self._unseen = ""
        self._begin(self._read(after))

    def feed(self, delta: str) -> list[ReplyBlock]:
        """The next piece of text; returns the blocks that are certain now."""
        self._buffer += delta
        return self._scan()

    def end(self) -> list[ReplyBlock]:
        """No more text comes: returns the rest."""
        blocks = self._scan()
        while True:
            fence = self._fence if self._decided else fence_after(self._fence, self._line, self._decisive)
            if self._head + self._visible + self._tail(fence) <= self._max:
                break
            blocks += self._cut(self._best())
            blocks += self._scan()
        blocks += self._cut(_Cut(len(self._buffer), fence, ""))
        self._unseen = ""
        return blocks

    def _read(self, text: str) -> _Cut:
        """What is open at the end of a text."""
        *lines, line = text.split("\n")
        fence = None
        for whole_line in lines:
            fence = fence_after(fence, whole_line, self._decisive)
        return _Cut(0, self._decide(fence, line), line)

    def _decide(self, fence: Fence | None, line: str) -> Fence | None:
        return fence_after(fence, line, self._decisive) if len(line) > self._decisive else fence

    def _begin(self, cut: _Cut) -> None:
        """A new block begins at `cut`; what stood before it has left the buffer."""
        self._opened = self._fence = cut.fence
        self._line_before = self._line = cut.line[: self._decisive + 1]
        self._decided = len(cut.line) > self._decisive
        self._inside_line = bool(cut.line.strip())
        self._indent = 0
        self._head = self._overhead()
        self._at = 0
        self._start = 0
        self._units = 0  # of buffer[start:at]
        self._visible = 0  # the same without the white space at its end
        self._visible_at = 0
        self._candidates: dict[_Rank, _Cut] = {}

    def _overhead(self) -> int:
        """What `_text` may put before the body: a fence opened again with its quote marks, or one backslash."""
        if self._opened is None:
            return int(self._inside_line)
        quote = self._opened.prefix if self._opened.quoted and self._inside_line else ""
        return units(self._opened.opening) + 1 + units(quote)

    def _scan(self) -> list[ReplyBlock]:
        blocks: list[ReplyBlock] = []
        while token := _TOKEN.match(self._buffer, self._at):
            piece = token[0]
            if piece == "\n":
                if not self._decided:
                    self._fence = fence_after(self._fence, self._line, self._decisive)
                self._line, self._decided = "", False
            elif not piece.isspace():
                cut = self._consider()
                if cut is not None:
                    blocks += self._cut(cut)
                    continue
            self._take(piece)
            if self._head + self._visible > self._max:
                blocks += self._cut(self._best())
        return blocks

    def _take(self, piece: str) -> None:
        self._at += len(piece)
        self._units += units(piece)
        if not piece.isspace():
            self._visible, self._visible_at = self._units, self._at
        if piece != "\n" and not self._decided:
            self._line += piece[: self._decisive + 1 - len(self._line)]
            if len(self._line) > self._decisive:
                self._fence, self._decided = fence_after(self._fence, self._line, self._decisive), True

    def _consider(self) -> _Cut | None:
        """A word begins here: note the place as a candidate, or return it when the block ends here."""
        if not self._visible:
            self._start = self._first_visible()
            self._units = self._at - self._start
            self._indent = 0 if self._inside_line else len(self._line)
            return None
        rank = self._rank()
        if rank is None:
            return None
        index, line = self._at, self._line
        if rank is _Rank.FENCE_LINE:
            index, line = self._buffer.rindex("\n", 0, self._at) + 1, ""
        if self._units - (self._at - index) < self._min:
            return None
        cut = _Cut(index, self._fence, line)
        if rank is _Rank.PARAGRAPH:
            return cut
        if self._head + self._visible + self._tail(cut.fence) <= self._max:
            self._candidates[rank] = cut
        return None

    def _first_visible(self) -> int:
        """Where the body of the block begins: in code with the indentation of its first line, unless that is absurd."""
        if self._opened is None:
            return self._at
        line = self._buffer.rfind("\n", 0, self._at) + 1
        return line if self._at - line <= self._decisive else self._at

    def _rank(self) -> _Rank | None:
        """How good a place to break the beginning of this word is; None when it is none."""
        gap = self._buffer[self._visible_at : self._at]
        newlines = gap.count("\n")
        if newlines:
            if self._fence is not None:
                return _Rank.FENCE_LINE
            return _Rank.PARAGRAPH if newlines > 1 else _Rank.LINE
        if not self._decided and may_open(self._line):
            return None
        before, here = self._buffer[self._at - 1], self._buffer[self._at]
        if here >= "\u0300" and len(_GRAPHEME.match(before + here)[0]) > 1:
            return None
        ended = _SENTENCE_END.search(self._buffer, max(self._start, self._visible_at - 8), self._visible_at)
        if not gap and (ended is None or before not in _ENDERS + _CLOSERS or here in _ENDERS + _CLOSERS):
            return None
        if self._fence is not None:
            return None if here in _MARKERS else _Rank.FENCE_WORD
        return _Rank.SENTENCE if ended else _Rank.WORD

    def _tail(self, fence: Fence | None) -> int:
        return units(fence.closing) + 1 if fence else 0

    def _best(self) -> _Cut:
        """The best candidate, else a cut between two graphemes, else within one that alone is too long."""
        if self._candidates:
            return self._candidates[min(self._candidates)]
        room = self._max - self._head - self._tail(self._fence)
        last = self._start + index_at(self._buffer[self._start : self._at], room)
        index = self._start
        for grapheme in _GRAPHEME.finditer(self._buffer, self._start, min(last + 1, self._at)):
            if grapheme.end() > last:
                break
            if self._buffer[grapheme.end()] not in _MARKERS:
                index = grapheme.end()
        if index == self._start:
            index = last
        newline = self._buffer.rfind("\n", 0, index)
        line = self._buffer[newline + 1 : index] if newline >= 0 else self._line_before + self._buffer[:index]
        return _Cut(index, self._fence, line)

    def _cut(self, cut: _Cut) -> list[ReplyBlock]:
        """End the block at `cut` and begin the next one there; no block when nothing of it would be seen."""
        said = self._unseen + self._buffer[: cut.index]
        text = self._text(self._buffer[self._start : cut.index], cut.fence)
        self._buffer = self._buffer[cut.index :]
        self._unseen = "" if text else said
        self._begin(cut)
        return [ReplyBlock(text, said)] if text else []

    def _text(self, body: str, open_at_end: Fence | None) -> str:
        """The block as Markdown that stands alone: fences closed and reopened, no indentation of a list left behind."""
        opened = self._opened
        body = body.rstrip()
        if opened is not None:
            blank = _LEADING_BLANK_LINES.match(body)
            body = body[blank.end() :] if blank else body
            first, _, rest = body.partition("\n")
            if opened.closed_by(first) and not self._inside_line:
                # The block before has closed it.
                opened, body = None, rest.strip()
        if not body.strip():
            return ""
        if opened is None and self._inside_line:
            body = _escape_start(body)
        if open_at_end is not None:
            body += "\n" + open_at_end.closing
        if self._opened is not None and not self._opened.quoted:
            body = _dedent(body, len(self._opened.prefix), opened)
        elif self._opened is None:
            body = _dedent(body, self._indent, None)
        if opened is None:
            return body
        if not opened.quoted:
            return f"{opened.opening.lstrip()}\n{body}"
        return f"{opened.opening}\n{opened.prefix if self._inside_line else ''}{body}"


def _escape_start(text: str) -> str:
    """Text from within a line, so that it does not read as the beginning of a list, quote, heading or fence."""
    number = _NUMBER_START.match(text)
    if number:
        return f"{number[0]}\\{text[number.end() :]}"
    return f"\\{text}" if _BLOCK_START.match(text) else text


def _dedent(text: str, width: int, fence: Fence | None) -> str:
    """Take the indentation of the list item that a block began in from its lines, as far as the item goes.

    Without the item's own first line the indentation would mean code. Where a fence is open at the start the
    indentation is the fence's, and all of its lines lose it; else the first line has lost it already.
    """
    if not width:
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        lead = len(line) - len(line.lstrip(" \t"))
        if fence is None:
            if number and line and lead < width:
                break
            lines[number] = line[min(lead, width) :]
        else:
            lines[number] = line[min(lead, width) :]
            if fence.closed_by(line):
                fence = None
    return "\n".join(lines)
