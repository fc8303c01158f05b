"""The blocks of a text, line by line, as the parser of the renderer sees them; and what a cut between or in them needs.

A list item that goes on behind a cut is opened again by its marker with an empty comment, which the renderer does not
show: all lines keep their columns, and items their numbers.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache

from markdown_it.token import Token

from channels.markdown.parse import parser
from channels.outgoing import Code
from channels.stream.spans import Span, spans

_NOTHING = "<!---->"
_MARKER = re.compile(r"([ >]*)([-+*]|\d{1,9}[.)])( *)")
_NOT_QUOTE = re.compile(r"[^ >]")
_ROW = re.compile(r"\|(?!\|)")
_BLANK = " \t\r>"
_BLANK_LINES = re.compile(r"\s*\n")
_SECTIONS = {"<details": "</details", "$$": "$$", "\\[": "\\]", "<!--": "-->"}
# What would begin a block of its own at the start of a line, but stands within one.
STARTS_BLOCK = re.compile(
    r"#{1,6}(?=\s|\Z)|>|[-+*](?=\s|\Z)|\d{1,9}[.)](?=\s|\Z)|`{3}|~{3}|\[[^\]\n]*\]:"
    r"|([-*_])(?:[ \t]*\1){2,}[ \t]*(?:\n|\Z)"
)


class Rank(IntEnum):
    """How good a place is to break, best first."""

    PARAGRAPH = 0
    LINE = 1
    SENTENCE = 2
    WORD = 3


@dataclass(frozen=True, slots=True)
class Container:
    """A list item or a quote. first: its first line. prefix: what its lines begin with.

    again: the line that opens an item again, previous: the same for the item before it, where the numbers that are
    written do not count up.
    """

    first: int
    prefix: str
    again: str = ""
    previous: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A block that holds no other. first, last: its first line and the one behind it. token: as the parser made it.

    closed: whether it can go no further. kept: whether it should stay in one message.
    """

    kind: str
    first: int
    last: int
    stack: Sequence[Container]
    token: Token
    closed: bool = True

    @property
    def kept(self) -> bool:
        return self.kind not in ("paragraph_open", "heading_open", "hr", "definition", "comment")

    @property
    def prefix(self) -> str:
        return self.stack[-1].prefix if self.stack else ""


@dataclass(frozen=True, slots=True)
class Cut:
    """The block ends at `index` with `closing`, the next one begins with `head` and goes on at `resume`.

    header: of a table, without which its rows are none, is in the head. code: what the block is, for a file.
    """

    index: int
    resume: int
    closing: str
    head: str
    header: bool = False
    code: Code | None = None


class Outline:
    """ended: whether the text ends here. sections: whether one that has no end yet is kept in one piece."""

    def __init__(self, text: str, ended: bool, sections: bool = True) -> None:
        self.text = text
        self.lines = text.replace("\r", " ").split("\n")
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._ended = ended
        self.leaves: list[Leaf | None] = [None] * len(self.lines)
        self._read(sections)
        self.spans = cache(self._spans)

    def line(self, index: int) -> int:
        """The number of the line that a place is in."""
        return bisect_right(self.starts, index) - 1

    def end(self, leaf: Leaf) -> int:
        """The index behind a leaf."""
        return self.starts[leaf.last] if leaf.last < len(self.starts) else len(self.text)

    def places(self, behind: int) -> Iterator[tuple[int, Rank]]:
        """Where blocks begin that may begin a message, behind what is given; a heading is not left alone."""
        before: Leaf | None = None
        for number, leaf in enumerate(self.leaves):
            if leaf and leaf is not before:
                start = self.starts[number]
                if start > behind and before and before.kind != "heading_open" and self.text[behind:start].strip():
                    apart = leaf.kept or before.kept or not self.lines[number - 1].strip(_BLANK)
                    across = any(container.first < number for container in leaf.stack)
                    yield start, Rank.PARAGRAPH if apart and not across else Rank.LINE
                before = leaf

    def lines_of(self, leaf: Leaf) -> Iterator[tuple[int, bool]]:
        """Where the lines of a leaf begin that may begin a message, and whether an empty line is before each."""
        least = {"fence": 2, "table_open": 3}.get(leaf.kind, 1)
        last = leaf.last - (leaf.kind == "fence" and self._is_closed(leaf))
        for number in range(leaf.first + least, last):
            if self.lines[number].strip(_BLANK):
                yield self.starts[number], not self.lines[number - 1].strip(_BLANK)

    def cut(self, index: int) -> Cut:
        """What a cut at a place needs."""
        blank = _BLANK_LINES.match(self.text, index)
        place = blank.end() if blank else index
        number = self.line(place)
        start, leaf = self.starts[number], self.leaves[number]
        if leaf is None:
            return Cut(index, place, "", "")
        within = self.text[start:place].strip(_BLANK if ">" in leaf.prefix else None) != ""
        opened = [one for one in leaf.stack if one.first < number or within]
        head = "".join(f"{one.again}\n" for one in opened if one.again)
        if leaf.first == number and not within:
            previous = next((one.previous for one in leaf.stack if one.first == number and one.previous), "")
            return Cut(index, start, "", head + (f"{previous}\n" if previous else ""))
        if not leaf.kept:
            return self._cut_words(leaf, index, place, head)
        prefix = leaf.prefix if within else ""
        if leaf.kind == "fence":
            opening, closing = self.fence(leaf)
            if number == leaf.last - 1 and self._is_closed(leaf):
                return Cut(index, self.end(leaf), "" if within else f"\n{closing}", head)
            return Cut(index, place if within else start, f"\n{closing}", f"{head}{opening}\n{prefix}")
        header = leaf.kind == "table_open" and number > leaf.first + 1 and not within
        if header:
            head += "".join(f"{leaf.prefix}{self._words(leaf, leaf.first + row)}\n" for row in (0, 1))
        if leaf.kind == "code_block" and within:
            prefix += "    "
        return Cut(index, place if within else start, "", head + prefix, header)

    def rest(self) -> Cut:
        """A cut behind all that is seen, with nothing left."""
        end = len(self.text.rstrip())
        return Cut(end, len(self.text), self.cut(end).closing, "")

    def code(self, leaf: Leaf) -> Code | None:
        """The code of a fenced block, as far as it is seen; None for anything else."""
        fenced = leaf.token.type == "fence" and leaf.token.markup
        return Code(leaf.token.markup, leaf.token.info.strip(), leaf.token.content) if fenced else None

    def fence(self, leaf: Leaf) -> tuple[str, str]:
        """The lines that open a fence again and close it."""
        line = self.lines[leaf.first]
        indent = line[: len(line) - len(line.lstrip())] if not leaf.stack else leaf.prefix
        mark = leaf.token.markup
        if mark:
            return f"{indent}{mark}{leaf.token.info}".rstrip(), indent + mark
        sign = self._words(leaf, leaf.first)[:2]
        return indent + sign, indent + _SECTIONS.get(sign, sign)

    def _cut_words(self, leaf: Leaf, index: int, place: int, head: str) -> Cut:
        """A cut within a paragraph or heading."""
        base = self.starts[leaf.first]
        held = [span for span in self.spans(leaf) if span.holds(index - base)]
        place += len(self.text[place:]) - len(self.text[place:].lstrip(_BLANK if place != index else _BLANK[:-1]))
        mark = f"{leaf.token.markup} " if leaf.token.markup.startswith("#") else ""
        mark += "".join(span.opening for span in held)
        if not mark and STARTS_BLOCK.match(self.text, place):
            mark = _NOTHING
        return Cut(index, place, "".join(span.closing for span in reversed(held)), head + leaf.prefix + mark)

    def _spans(self, leaf: Leaf) -> Sequence[Span]:
        return spans(self.text[self.starts[leaf.first] : self.end(leaf)], self._ended or leaf.last < len(self.lines))

    def _read(self, sections: bool) -> None:
        tokens: list[Token] = []
        parser().block.parse("\n".join(self.lines), parser(), {}, tokens)
        stack: list[Container] = []
        numbers: list[int] = []
        for token in tokens:
            if token.type in ("blockquote_close", "list_item_close"):
                stack.pop()
            elif token.type.endswith("_list_close"):
                numbers.pop()
            elif token.type.endswith("_list_open"):
                numbers.append(int(token.attrs.get("start", 1)))
            elif token.type == "list_item_open":
                stack.append(self._item(token, stack, numbers[-1]))
                numbers[-1] += 1
            elif (token.map and token.type != "blockquote_open") or token.markup == "details":
                self._add(token, stack, sections)
            if token.type == "blockquote_open":
                stack.append(Container(token.map[0] if token.map else 0, (stack[-1].prefix if stack else "") + "> "))

    def _add(self, token: Token, stack: Sequence[Container], sections: bool) -> None:
        """A leaf, unless its lines are part of one already."""
        first, last = token.map or (0, 0)
        if self.leaves[first] or first == last:
            return
        closed = self._ended or any(line.strip(_BLANK) for line in self.lines[last:])  # a blank one may only begin
        leaf = Leaf(token.type, first, last, tuple(stack), token, closed)
        sign = next((sign for sign in _SECTIONS if self._words(leaf, first).startswith(sign)), "")
        if sections and token.type == "paragraph_open" and sign:
            rest = self.text[self.starts[first] :].partition(sign)[2]
            if _SECTIONS[sign] not in rest and not self._ended:
                last = len(self.lines)
                leaf = Leaf("section" if sign[0] == "<" else "fence", first, last, leaf.stack, token, False)
        rows = last  # what may be the header of a table, which the line behind it says, stays whole until then
        while token.type == "paragraph_open" and not leaf.closed and rows > max(first, last - 2):
            if not _ROW.match(self._words(leaf, rows - 1)):
                break
            rows -= 1
        if rows < last:
            self.leaves[rows:last] = [Leaf("table_open", rows, last, leaf.stack, token, False)] * (last - rows)
            leaf, last = replace(leaf, last=rows, closed=True), rows
        self.leaves[first:last] = [leaf] * (last - first)

    def _is_closed(self, fence: Leaf) -> bool:
        """Whether its last line is the one that closes it."""
        line, mark = self.lines[fence.last - 1].strip(_BLANK), fence.token.markup
        closes = line.startswith(mark) and not line.strip(mark[:1]) if mark else fence.token.type == "fence"
        return fence.last - 1 > fence.first and closes

    def _words(self, leaf: Leaf, number: int) -> str:
        """A line without what its containers put before it."""
        if any(one.first == number and one.again for one in leaf.stack):
            return self.lines[number].expandtabs(4)[len(leaf.prefix) :]
        return self.lines[number].lstrip(_BLANK)

    def _item(self, token: Token, stack: Sequence[Container], number: int) -> Container:
        first = token.map[0] if token.map else 0
        line, at, found = self.lines[first].expandtabs(4), 0, None
        for _ in range(1 + sum(one.first == first and one.again != "" for one in stack)):
            found = _MARKER.match(line, at)
            at = found.end() if found else at
        if found is None:
            return Container(first, stack[-1].prefix if stack else "")
        lead = _NOT_QUOTE.sub(" ", line[: found.start(2)])
        room = found[3] if 1 <= len(found[3]) <= 4 and at < len(line) else " "
        marker, sign = found[2], found[2][-1]
        if token.info:
            marker = f"{number}{sign}"
        previous = f"{lead}{number - 1}{sign} {_NOTHING}" if token.info and found[2] != marker else ""
        return Container(first, lead + " " * len(marker) + room, f"{lead}{marker}{room}{_NOTHING}", previous)
