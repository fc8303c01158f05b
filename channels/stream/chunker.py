"""Cuts the text of a model, as it streams, into the blocks of a reply. `bot/replies` feeds it.

Breaks, by preference: paragraph, line, sentence, word, hard cut. The first paragraph end past `min_chars` is taken at
once; the others only when `max_chars` forces it, and then the last one that fits. What should stay in one message
(code, a table, a formula, a collapsible section) may fill a message of the platform; a style, link or item that has to
be cut is closed and opened again. A cut is decided by the characters alone: how the stream was sliced does not matter.

What is looked at is looked at by the parser of the renderer, and not at each delta: a few times for each block, when it
could end. Sizes are UTF-16 units.
"""

import re
from collections.abc import Callable
from dataclasses import replace

import regex  # type: ignore[import-untyped]

from channels.markdown.parse import is_plain
from channels.outgoing import ReplyBlock
from channels.stream.outline import STARTS_BLOCK, Cut, Leaf, Outline, Rank
from channels.stream.spans import closings
from channels.utf16 import index_at, units

SMALLEST_LIMIT = 16

_STEP = 1024
_MOST_OF_CODE = 3  # messages; longer code is better a file
_SHORTEST = 128  # no block is made shorter than this because it does not fit
_ENDERS = "。！？"
_CLOSERS = "」』）"
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*\S")
_GAP = re.compile(rf"[^\S\n]*\n[\s>]*|[^\S\n]+|(?<=[{_ENDERS}{_CLOSERS}])(?=[^\s{_ENDERS}{_CLOSERS}])")
_SENTENCE_END = re.compile(rf"(?:(?<!\d)[.!?…]|[!?…{_ENDERS}])[\"'”’»)\]*_`~{_CLOSERS}]*\Z")
_GRAPHEME = regex.compile(r"\X")


class Chunker:
    """Text in by `feed`, blocks out; `end` gives what is left. One answer each.

    min_chars: no block but the last is cut from fewer units of the model's text, unless what follows has to begin a
    message to fit into one; at most two thirds of max_chars.
    max_chars: no block is longer, the lines that close and open again what is cut included, except for
    whole_chars: the most of one that is kept whole, what fits into a message of the platform; max_chars without.
    after: what stands before this text (a cut answer that is continued); what is open there is opened again.
    joined: behind the first block they are as long as whole_chars allow, unless `pause` ends one earlier.
    messages: how many a text needs on the platform, as it writes it; a block that needs several is cut shorter.
    file_bytes: the most of fenced code that can be sent as a file; of that, what needs more than three messages is one
    block. It waits until it is known which it is.

    The `said` slices joined are what was fed. Blank pieces are never blocks: white space belongs to the block before
    it, at the very start to the first; indentation to its line. What follows the last visible character and was not yet
    part of a block when `end` comes is dropped: white space of an answer that has nothing else, and the closing line of
    a fence that the last block has already closed.
    """

    def __init__(
        self,
        min_chars: int,
        max_chars: int,
        whole_chars: int = 0,
        after: str = "",
        *,
        joined: bool = False,
        messages: Callable[[str], int] = lambda text: 1,
        file_bytes: int = 0,
    ) -> None:
        if max_chars < SMALLEST_LIMIT:
            raise ValueError(f"max_chars must be at least {SMALLEST_LIMIT}, not {max_chars}")
        self._limits = (min_chars, max_chars, max(whole_chars, max_chars))
        self._joined = joined
        self._messages = messages
        self._file_bytes = file_bytes
        self._unseen: list[str] = []  # what the next block says besides what it shows
        self._spoken: int | None = None  # how much of the body was delivered before
        self._begin("", "")
        if after:
            self.feed(after)
            self._spoken = len(self._body) or None
            self._unseen.clear()

    def feed(self, delta: str) -> list[ReplyBlock]:
        """The next piece of text; returns the blocks that are certain now."""
        within = 0 < self._searched == len(self._body) and self._spoken is None  # a line of which all was looked at
        size = len(delta) if delta.isascii() else units(delta)
        if within and len(delta) <= _STEP and "\n" not in delta and self._units + size <= self._due:
            self._body += delta
            self._units += size
            self._searched += len(delta.rstrip())
            return []
        blocks = []
        for at in range(0, len(delta), _STEP):
            self._take(delta[at : at + _STEP])
            blocks += self._scan()
        return blocks

    def pause(self, min_chars: int) -> list[ReplyBlock]:
        """The model writes nothing for a while: what is whole by now is a block, from so many units on."""
        text, begin = self._head + self._body, len(self._head)
        if self._spoken is not None or self._units < min_chars:
            return []
        outline = Outline(text, ended=False)
        best = self._best(outline, begin + index_at(self._body, min_chars - 1) + 1, index_at(text, self._max))
        return self._cut(outline.cut(best[0])) + self._scan() if best else []

    def end(self) -> list[ReplyBlock]:
        """No more text comes: returns the rest."""
        blocks = self._scan()
        while self._body and (cut := self._decide(self._head + self._body, ended=True)):
            blocks += self._cut(cut) + self._scan()
        return blocks

    def rest(self) -> str:
        """What is not yet part of a block, as Markdown that stands alone. Costs as much as a cut."""
        text = self._head + self._body
        if self._spoken is not None:
            cut = Outline(text, ended=False).cut(len(self._head) + self._spoken)
            text = cut.head + text[max(cut.resume, len(self._head) + self._spoken) :]
        text = text.rstrip()
        return text + Outline(text, ended=False).cut(len(text)).closing if self._body else ""

    def _begin(self, head: str, body: str, most: int = 0) -> None:
        """A block. head: what opens again what was cut; body: the model's text, from its first visible line on.

        most: where it was begun before and had to become shorter.
        """
        least, self._max, self._whole = (most, most, most) if most else self._limits
        self._min = min(max(least, 1), self._max * 2 // 3)
        self._ahead = self._max // 4  # what is known behind a place before it is cut there
        self._head, self._body = head, ""
        self._units = size = units(head) if head else 0
        self._searched = 0
        self._due = self._max + self._ahead  # above it the block has to end, if nothing keeps it together
        full = self._joined and self._max == self._whole
        self._soon = self._due if full else size + self._min  # from this size on a paragraph end is looked at
        if body:
            self._take(body)

    def _take(self, piece: str) -> None:
        if not self._body:
            visible = piece.lstrip()
            self._unseen.append(piece[: len(piece) - len(visible)])
            if not visible:
                return
            blank = "".join(self._unseen)
            line = max(blank.rfind("\n") + 1, len(blank.rstrip()))
            if len(blank) - line > self._ahead:  # absurd for an indentation
                line = len(blank)
            self._unseen, piece = [blank[:line]], blank[line:] + visible
        self._body += piece
        self._units += units(piece)

    def _scan(self) -> list[ReplyBlock]:
        blocks = []
        while window := self._window():
            cut = self._decide(window, ended=False)
            if cut:
                blocks += self._cut(cut)
        return blocks

    def _window(self) -> str:
        """The text up to the next place where the block could end, if that is known already; decided by the text."""
        if self._spoken is not None:
            size = self._spoken + self._ahead
            return self._head + self._body[:size] if len(self._body) >= size else ""
        while found := _PARAGRAPH.search(self._body, self._searched):
            window = self._head + self._body[: found.end()]
            size = units(window)
            if size > self._due:
                break
            self._searched = found.end() - 1
            if size >= self._soon:
                return window
        else:
            self._searched = max(self._searched, len(self._body.rstrip()))
        if self._units <= self._due:
            return ""
        text = self._head + self._body
        return text[: index_at(text, self._due) + 1]

    def _decide(self, text: str, ended: bool, sections: bool = True) -> Cut | None:
        """Where the block ends, seen from the end of `text`; None to wait for more, unless it has ended."""
        if ended and self._spoken is None and units(text) <= self._max and is_plain(text.rstrip()):
            return Cut(len(text.rstrip()), len(text), "", "")
        outline, begin = Outline(text, ended, sections), len(self._head)
        if self._spoken is not None:
            return outline.cut(begin + self._spoken)
        visible = len(text.rstrip())
        closing = self._room_for(outline.cut(visible).closing) if ended or units(text) > self._due else 0
        room, low = index_at(text, self._max - closing), begin + index_at(text[begin:], self._min - 1) + 1
        if visible <= room and ended:
            return outline.rest()
        best = self._best(outline, low, room)
        if best and (visible > room or best[1] is Rank.PARAGRAPH):
            return outline.cut(best[0])
        if visible <= room:
            if units(text) > self._due:
                return outline.cut(visible)
            self._wait(text)
            return None
        leaf = outline.leaves[outline.line(room)]
        if leaf is None or not leaf.kept:
            return self._tear(outline, leaf, low, self._max)
        return self._keep(outline, leaf, low, ended, closing)

    def _best(self, outline: Outline, low: int, room: int) -> tuple[int, Rank] | None:
        """The best place from `low` on, the last of several, where what is seen before it ends within `room`."""
        places = outline.places(len(self._head))
        found = (one for one in places if one[0] >= low and len(outline.text[: one[0]].rstrip()) <= room)
        return min(found, key=lambda one: (one[1], -one[0]), default=None)

    def _wait(self, text: str, *, for_file: bool = False) -> None:
        """The block cannot end yet. To look again costs as much, so the text must have become longer by a part."""
        size, longer = units(text), self._due * 3 // 2
        self._soon = size * 5 // 4
        if size > self._due:
            self._due = longer if for_file else min(longer, self._whole + self._ahead)

    def _keep(self, outline: Outline, leaf: Leaf, low: int, ended: bool, closing: int) -> Cut | None:
        """What is better not cut goes past the most of a block: it stays whole, begins the next block, or is cut."""
        text, begin = outline.text, len(self._head)
        end = outline.end(leaf)
        if leaf.closed and len(text[:end].rstrip()) <= index_at(text, self._whole - closing):
            return outline.rest() if ended and end >= len(text.rstrip()) else outline.cut(end)
        start, code = outline.starts[leaf.first], outline.code(leaf)
        if code is not None and 0 < len(code.content.encode(errors="replace")) <= self._file_bytes:
            if not (leaf.closed or ended):
                self._wait(text, for_file=True)
                return None
            if self._messages(code.showing(code.content)) > _MOST_OF_CODE:
                if text[begin:start].strip():
                    return outline.cut(start)
                rest = ended and end >= len(text.rstrip())
                return replace(outline.rest() if rest else outline.cut(end), code=code)
        if not (leaf.closed or ended or self._due >= self._whole + self._ahead):
            self._wait(text)
            return None
        before = self._best(outline, begin if units(text[start:end].rstrip()) <= self._whole else low, start)
        if before:
            return outline.cut(before[0])
        if leaf.kind in ("section", "blockquote_open"):
            return self._decide(text.replace("</", "<|"), ended, sections=False)
        most = self._whole - self._room_for("\n" + outline.fence(leaf)[1] if leaf.kind == "fence" else "")
        limit = index_at(text, most)
        lines = [
            (apart and place > limit * 3 // 4, place)
            for place, apart in outline.lines_of(leaf)
            if text[begin:place].strip() and len(text[:place].rstrip()) <= limit
        ]
        return outline.cut(max(lines)[1]) if lines else self._tear(outline, None, begin, most)

    def _room_for(self, closing: str) -> int:
        """The units that something needs to be closed; what would take too many is left open."""
        return units(closing) if units(closing) <= self._max // 3 else 0

    def _tear(self, outline: Outline, leaf: Leaf | None, low: int, most: int) -> Cut:
        """A cut within a paragraph, or a line of what is usually kept, so that at most `most` units are before it."""
        text = outline.text
        room, absurd = index_at(text, most), self._max // 3
        base = first = outline.starts[leaf.first] if leaf else 0
        costs = closings(outline.spans(leaf) if leaf else (), len(text) - base, absurd)
        if not len(self._head) < first < room:
            first = len(self._head)

        def cost(index: int) -> int:
            return costs[index - base] if index > base else 0

        def fits(index: int) -> bool:
            return cost(index) <= absurd and units(text[:index]) + cost(index) <= most

        gaps = []
        for found in _GAP.finditer(text, first):
            index, resume = found.span()
            if index > room:
                break
            if resume >= low and text[first:index].strip() and not STARTS_BLOCK.match(text, resume) and fits(index):
                gaps.append((cost(index) > 0, _rank(text, index, found[0]), -index))
        if gaps:
            return outline.cut(-min(gaps)[2])
        ends = [one.end() for one in _GRAPHEME.finditer(text, first, room + 64) if one.end() <= room]
        return outline.cut(next(filter(fits, reversed(ends)), ends[-1] if ends else max(room, first + 1)))

    def _cut(self, cut: Cut) -> list[ReplyBlock]:
        """End the block and begin the next one; no block when nothing of it would be seen."""
        text, begin = self._head + self._body, len(self._head)
        opening, closing = cut.head, cut.closing
        most = self._whole * 2 // 3 if cut.header else self._max // 3
        stuck = cut.resume <= begin and self._spoken is None
        if stuck or units(opening) > most or units(closing) > self._max // 3:  # absurd
            cut, opening, closing = replace(cut, resume=max(cut.resume, cut.index)), "", ""
        if stuck and cut.resume <= begin:  # each cut takes something away, else there would be no end of them
            place = max(begin + 1, index_at(text, self._max))
            cut = replace(cut, index=place, resume=place)
        seen = text[begin : cut.index].strip()
        if self._spoken is not None:
            spoken = begin + self._spoken
            self._spoken, self._unseen = None, [text[spoken : cut.resume]]
            self._begin(opening + text[cut.resume : spoken], text[max(cut.resume, spoken) :])
            return []
        shown = text[: cut.index].rstrip() + closing
        size = min(units(shown), self._max)
        if seen and not cut.code and size > _SHORTEST and (many := self._messages(shown)) > 1:
            self._begin(self._head, self._body, min(size * 7 // 8, size // (many - 1)))
            return []
        said = "".join([*self._unseen, text[begin : cut.resume]])
        self._unseen = [] if seen else [said]
        if seen and self._joined:
            self._limits = (self._limits[-1],) * 3
        self._begin(opening, text[cut.resume :] if seen else "")
        if not seen:  # white space that is cut off is no indentation of what follows
            self._body = text[cut.resume :].lstrip()
            self._unseen.append(text[cut.resume : len(text) - len(self._body)])
            self._units += units(self._body)
        return [ReplyBlock(shown, said, cut.code)] if seen else []


def _rank(text: str, index: int, gap: str) -> Rank:
    """How good a gap between two words of a paragraph is."""
    if "\n" in gap:
        return Rank.LINE
    return Rank.SENTENCE if _SENTENCE_END.search(text, max(0, index - 8), index) else Rank.WORD
