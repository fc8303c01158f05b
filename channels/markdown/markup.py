"""Formatted text to text with marks in it, for platforms that take no entities: one walk, the marks are a parameter."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from channels.markdown.entities import QUOTES, Entity, EntityType, Formatted, Style
from channels.markdown.writer import outer_first

# A space without width, which keeps a mark from what it must not touch.
NOTHING = "\u200b"

_EDGES = re.compile(r"(\A\s+|\s+\Z|\s*\n\s*)")
_FIRST_OF_LINE = re.compile(r"^", re.MULTILINE)

Run = tuple[str, Sequence[Style]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """How a platform writes it. A quote is `> ` before each line everywhere.

    around: the mark on both sides of a style. escape: a text, and whether its line begins with it. link: words as they
    are written, none where they are the address itself, and the address. code, pre: as they were; pre also gets its
    language. heading: what a line of this level begins with, empty for bold. fragile: marks that are none beside what
    `apart` matches on their outer side.
    """

    around: Mapping[EntityType, str]
    escape: Callable[[str, bool], str]
    link: Callable[[str, str], str]
    code: Callable[[str], str]
    pre: Callable[[str, str], str]
    heading: Callable[[int], str] = lambda level: ""
    fragile: str
    apart: re.Pattern[str]


def written(whole: Formatted, marks: Marks) -> str:
    """The text with its marks."""
    parts = []
    for quote, inside in groupby(parts_of(whole), key=lambda part: part[0]):
        text = ""
        for _, pre, runs in inside:
            text += marks.pre("".join(run[0] for run in runs), pre.language) if pre else _Line(marks).write(runs)
        parts.append(_FIRST_OF_LINE.sub("> ", text) if quote else text)
    return "".join(parts)


def parts_of(whole: Formatted) -> Iterator[tuple[Style | None, Style | None, list[Run]]]:
    """The text in parts that are in the same quote and in the same preformatted block, or in none.

    A quote has whole lines, with the indentation that formatted text leaves out of it.
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


class _Line:
    """Writes runs. No mark has white space on its inner side, and none goes on over the end of a line."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._text = self._space = ""
        self._open: tuple[EntityType, ...] = ()
        self._is_heading = False
        self._closed = False  # whether the last thing written is a fragile mark

    def write(self, runs: Sequence[Run]) -> str:
        """The runs with their marks."""
        for text, styles in runs:
            for part in _EDGES.split(text):
                if part.isspace():
                    self._space += part
                elif part:
                    self._put(part, styles)
        self._close(0)
        return self._text + self._space

    def _put(self, text: str, styles: Sequence[Style]) -> None:
        begins = not self._text or "\n" in self._space
        heading = next((style for style in styles if style.type is EntityType.HEADING), None)
        sign = self._marks.heading(heading.level) if heading and begins else ""
        self._is_heading = bool(sign) if begins else self._is_heading
        kinds = [style.type for style in styles if style.type in self._marks.around]
        if heading and not self._is_heading:
            kinds.insert(0, EntityType.BOLD)
        url = next((style.url for style in styles if style.url), "")
        if url:  # nothing in an address can be escaped, so marks in it would end those around it
            kinds = [kind for kind in kinds if self._marks.around[kind][0] not in url]
        wanted = tuple(dict.fromkeys(kinds))
        same = 0
        while not begins and self._open[same : same + 1] == wanted[same : same + 1] != ():
            same += 1
        self._close(same)
        self._add((self._space[: self._space.rfind("\n") + 1] if sign else self._space) + sign)
        self._space = ""
        opening = "".join(self._marks.around[kind] for kind in wanted[same:])
        self._open = wanted
        code = any(style.type is EntityType.CODE for style in styles)
        words = self._marks.code(text) if code else self._marks.escape(text, begins or bool(opening))
        first = opening or (words if code else "")
        if self._touches(first):
            self._closed = False
            self._add(NOTHING)
        if url:
            words = self._marks.link("", text) if "://" in text else self._marks.link(words, url)
        self._add(opening + words)
        self._closed = code and words[-1] in self._marks.fragile

    def _touches(self, mark: str) -> bool:
        """Whether a mark would not be seen as one, directly behind what is there."""
        if not self._text or not mark:
            return False
        fragile = mark[0] in self._marks.fragile and self._marks.apart.match(self._text[-1])
        return bool(fragile) or (mark[0] == "`" == self._text[-1])

    def _close(self, keep: int) -> None:
        marks = "".join(self._marks.around[kind] for kind in reversed(self._open[keep:]))
        if marks:
            self._text += (NOTHING if self._text[-1] == marks[0] else "") + marks
            self._closed = marks[-1] in self._marks.fragile
        self._open = self._open[:keep]

    def _add(self, text: str) -> None:
        if text:
            self._text += (NOTHING if self._closed and self._marks.apart.match(text) else "") + text
            self._closed = False
