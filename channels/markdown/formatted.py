"""Formatted text as chat platforms take it: plain text, and entities that say how a part of it looks.

Positions are code points. Entities lie inside the text, either contain each other or do not overlap, are not empty, and
neither begin nor end with white space (code keeps its indentation, also where a quote begins with it). `pre` and `code`
overlap with nothing but a quote around them; links and quotes do not nest.

The renderer builds formatted text with `TextWriter`. The renderers of the platforms cut it into messages with `split`;
those of platforms without entities read it as the runs of `parts_of`.
"""

import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise
from typing import NamedTuple

import regex  # type: ignore[import-untyped]

from channels.utf16 import index_at, units


class EntityType(StrEnum):
    """The style of a part of a text; the names are Telegram's, which has no headings.

    URL is never the type of an entity: a platform that lists it as supported gets bare addresses as TEXT_LINK.
    """

    BOLD = "bold"
    ITALIC = "italic"
    UNDERLINE = "underline"
    STRIKETHROUGH = "strikethrough"
    SPOILER = "spoiler"
    HEADING = "heading"
    CODE = "code"
    PRE = "pre"
    TEXT_LINK = "text_link"
    URL = "url"
    BLOCKQUOTE = "blockquote"
    EXPANDABLE_BLOCKQUOTE = "expandable_blockquote"


QUOTES = frozenset({EntityType.BLOCKQUOTE, EntityType.EXPANDABLE_BLOCKQUOTE})


@dataclass(frozen=True, slots=True)
class Style:
    """One use of a style."""

    type: EntityType
    # Of a text_link.
    url: str = ""
    # Of a pre; empty when unknown.
    language: str = ""
    # Of a heading, 1 to 6.
    level: int = 0
    # Tells apart two uses that may touch, such as links or quotes.
    mark: int = 0


class Entity(NamedTuple):
    """A styled part of a text."""

    start: int
    # The position after its last character.
    end: int
    style: Style


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text with its entities, outer before inner."""

    text: str
    entities: tuple[Entity, ...] = ()


class TextWriter:
    """Collects text; `finish` returns it with its entities. Adjacent text in the same style becomes one entity."""

    def __init__(self) -> None:
        # The bullet or number with which the next line begins; used once.
        self.marker = ""
        # What every other line begins with.
        self.indent = ""
        # The block quote that is open.
        self.quote: Style | None = None
        self._parts: list[str] = []
        self._at = 0
        self._breaks = 0
        self._written_in: Style | None = None
        self._runs: dict[Style, list[tuple[int, int]]] = {}

    def need(self, breaks: int) -> None:
        """Require at least so many line breaks before the next text; none at the very start."""
        if self._at:
            self._breaks = max(self._breaks, breaks)

    def write(self, text: str, styles: Iterable[Style] = ()) -> None:
        """Add text in these styles, after the required line breaks and the marker or indentation of its line."""
        if self._break() or self.marker:
            lead = self.marker or self.indent
            self._add(lead if text else lead.rstrip())
            self.marker = ""
        self._add(text, styles)

    def write_block(self, text: str, style: Style) -> None:
        """Add lines that keep their own indentation, below the marker of their list item."""
        if self.marker:
            self.write("")
            self._breaks = 1
        self._break()
        self._add(text, (style,))

    def line(self, styles: Iterable[Style]) -> None:
        """Add a line break within a paragraph, unless its first line is still empty."""
        if self.marker or self._breaks or not self._at:
            return
        self._add("\n" + self.indent, styles)

    def finish(self) -> Formatted:
        """Return the text with its entities."""
        found = (Entity(start, end, style) for style, runs in self._runs.items() for start, end in runs)
        return formatted("".join(self._parts), found)

    def _break(self) -> bool:
        """Write the required line breaks; returns whether a line begins."""
        begins = not self._at or self._breaks > 0
        # A break inside a quote belongs to it, one between two quotes does not.
        quote, self.quote = self.quote, self.quote if self.quote == self._written_in else None
        self._add("\n" * self._breaks)
        self.quote, self._breaks = quote, 0
        return begins

    def _add(self, text: str, styles: Iterable[Style] = ()) -> None:
        if not text:
            return
        start, self._at = self._at, self._at + len(text)
        self._parts.append(text)
        self._written_in = self.quote
        for style in (*styles, self.quote) if self.quote else styles:
            runs = self._runs.setdefault(style, [])
            if runs and runs[-1][1] == start:
                runs[-1] = (runs[-1][0], self._at)
            else:
                runs.append((start, self._at))


def formatted(text: str, entities: Iterable[Entity]) -> Formatted:
    """A text with its entities in order, without white space at their edges."""
    found = list(entities)
    code = {start for start, _, style in found if style.type is EntityType.PRE}
    trimmed = (Entity(*_trim(text, start, end, start in code), style) for start, end, style in found)
    return Formatted(text, tuple(sorted((one for one in trimmed if one.start < one.end), key=outer_first)))


def outer_first(entity: Entity) -> tuple[int, int]:
    """The sort key that puts outer entities before inner ones."""
    return entity.start, -entity.end


def _trim(text: str, start: int, end: int, begins_with_code: bool) -> tuple[int, int]:
    part = text[start:end]
    end = start + len(part.rstrip())
    if not begins_with_code:
        start += len(part) - len(part.lstrip())
    return start, end


_GRAPHEME = regex.compile(r"\X")
# Separators of two pieces, best first, each with the share of the room that a piece must then fill at least.
_SEPARATORS = (("\n\n", 0.5), ("\n", 0.5), (" ", 0.25))


def split(
    whole: Formatted, limit: int, most: int, share: Callable[[Formatted], float] = lambda piece: 1
) -> list[Formatted]:
    """Cut a text into pieces of at most `limit` UTF-16 units and at most `most` entities, none of them blank.

    It is cut between paragraphs, lines, words or graphemes; white space at a cut is dropped. Entities that reach over a
    cut continue in the next piece. share: how much of a piece can be sent, 1 or more: all; one that cannot is made
    shorter, as long as it has two characters.
    """
    text, entities, start, end = whole.text, whole.entities, 0, len(whole.text.rstrip())
    pieces = []
    while start < end:
        start += _blank(text[start:end], [one for one in entities if one.start <= start < one.end])
        rest = [one for one in entities if one.end > start]
        room = limit if len(rest) <= most else min(limit, units(text[start : rest[most].start]))
        while True:
            cut = start + _fit(text[start:end], room)
            inside = (one for one in rest if one.start < cut)
            moved = (Entity(max(first, start) - start, min(last, cut) - start, style) for first, last, style in inside)
            piece = formatted(text[start:cut].rstrip(), moved)
            if cut - start < 2 or (fits := share(piece)) >= 1:
                break
            room = int(units(text[start:cut]) * min(fits, 7 / 8))
        pieces += [piece] if piece.text.strip() else []
        start = cut
    return pieces


def shows(text: str) -> bool:
    """Whether a text has a visible character; platforms refuse a message of spaces, marks and format characters."""
    return any(unicodedata.category(char)[0] not in "ZCM" for char in text)


def _blank(text: str, inside: Sequence[Entity]) -> int:
    """The length of the white space that is dropped before a piece; code keeps the indentation of its first line."""
    lead = len(text) - len(text.lstrip())
    if any(style.type == "pre" for _, _, style in inside):
        return text.rfind("\n", 0, lead) + 1
    return lead


def _fit(text: str, limit: int) -> int:
    """The length of the piece that begins a text."""
    room = max(index_at(text, limit), 1)
    if room == len(text):
        return room
    for separator, least in _SEPARATORS:
        found = text.rfind(separator, 0, room + len(separator))
        if found >= max(room * least, 1):
            return found
    # Two letters of ASCII are always apart, so that only what follows the last two has to be looked at.
    begin = next((at for at in range(room, 0, -1) if text[at - 1 : at + 1].isascii() and text[at - 1] != "\r"), 0)
    ends = (grapheme.end() for grapheme in _GRAPHEME.finditer(text, begin, room + 1))
    return max((end for end in ends if end <= room), default=begin or room)


# A text, and the styles in which all of it is.
Run = tuple[str, Sequence[Style]]


def parts_of(whole: Formatted) -> Iterator[tuple[Style | None, Style | None, list[Run]]]:
    """Divide a text into parts, each with its quote or None, its preformatted block or None, and its runs.

    A quote consists of whole lines, including the indentation that its entity leaves out.
    """
    found = [
        one._replace(start=whole.text.rfind("\n", 0, one.start) + 1) if one.style.type in QUOTES else one
        for one in whole.entities
    ]
    cuts = sorted({0, len(whole.text), *(place for one in found for place in one[:2])})
    waiting = deque(sorted(found, key=outer_first))
    active: list[Entity] = []
    runs: list[Run] = []
    for start, end in pairwise(cuts):
        active = [one for one in active if one.end > start]
        while waiting and waiting[0].start <= start:
            active.append(waiting.popleft())
        runs.append((whole.text[start:end], [style for _, _, style in active]))

    def part(run: Run) -> tuple[Style | None, Style | None]:
        quote = next((style for style in run[1] if style.type in QUOTES), None)
        return quote, next((style for style in run[1] if style.type is EntityType.PRE), None)

    for (quote, pre), inside in groupby(runs, key=part):
        yield quote, pre, list(inside)
