"""What must not be torn within a paragraph: links, addresses, code, emphasis, and where each begins and ends.

Read by the rules of the parser that renders it afterwards, so both see the same. Positions are indices of the text.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from channels.markdown.parse import inline_state, parser
from channels.utf16 import units

_PAIRS = {"||": "||", "<u>": "</u>"}
_SPOILER = re.compile(r"(?<!\S)\|\|(?=[^\s|])")
# At the end of what is known: a link that is still being written.
_UNFINISHED = re.compile(r"!?\[[^\[\]]*(?:\](?:\([^()\s]*)?)?\Z|<[^<>\s]*\Z")


@dataclass(frozen=True, slots=True)
class Span:
    """A style from behind its opening mark to before its closing one; an atom, which has no marks, as a whole.

    The end of a style that is open where the text ends is one behind that.
    """

    start: int
    end: int
    opening: str = ""
    closing: str = ""

    def holds(self, index: int) -> bool:
        """Whether a cut here would have to close the style."""
        return bool(self.opening) and self.start < index < self.end


def closings(found: Iterable[Span], size: int, most: int) -> Sequence[int]:
    """Of each index of a text of this size, the units that close what a cut there would be within.

    More than most where none may be: within an atom or a mark, or where nothing would stand between two marks.
    """
    steps = [0] * (size + 2)
    for span in found:
        length = units(span.closing)
        for first, last, cost in (
            (span.start + 1, span.end, length if span.opening else most + 1),
            (span.start - len(span.opening) + 1, span.start + 1, most + 1 if span.opening else 0),
            (span.end, span.end + len(span.closing), most + 1 if span.opening else 0),
        ):
            if first < last <= size + 1:
                steps[first] += cost
                steps[last] -= cost
    return list(accumulate(steps))


def spans(text: str, ended: bool) -> list[Span]:
    """All spans of some lines of a paragraph, their quote marks and indentation included, outer ones first.

    ended: whether the paragraph ends with this text; if not, a style that is open at its end is closed further on.
    """
    state = inline_state(text)
    plain, *rules = parser().inline.ruler.getRules("")
    found: list[Span] = []
    marks: list[int] = []  # where each delimiter of the state stands
    while (start := state.pos) < len(text):
        tokens = len(state.tokens)
        if plain(state, False):
            continue
        if not any(rule(state, False) for rule in rules):
            state.pos += 1
            opened = None if ended else _SPOILER.match(text, start)
            if opened:
                found.append(Span(opened.end(), len(text) + 1, "||", "||"))
            continue
        size = 2 if text[start] == "~" else 1
        delimiters = len(state.delimiters) - len(marks)
        if delimiters:
            first = state.pos - size * delimiters
            marks += range(first, state.pos, size)
        elif text[start] != "\n":
            found += _read(text, start, state.pos, len(state.tokens) > tokens, ended)
    parser().inline.ruler2.getRules("")[0](state)
    closing = {delimiter.end for delimiter in state.delimiters}
    for number, delimiter in enumerate(state.delimiters):
        mark = chr(delimiter.marker) * (2 if delimiter.marker == ord("~") else 1)
        if delimiter.end >= 0:
            found.append(Span(marks[number] + len(mark), marks[delimiter.end], mark, mark))
        elif delimiter.open and number not in closing and not ended:
            found.append(Span(marks[number] + len(mark), len(text) + 1, mark, mark))
    unfinished = None if ended else _UNFINISHED.search(text)
    if unfinished:
        found.append(Span(unfinished.start(), len(text)))
    return sorted(found, key=lambda span: span.start)


def _read(text: str, start: int, end: int, formatted: bool, ended: bool) -> Iterable[Span]:
    """What a rule has read: a style with all that is in it, or an atom."""
    run = end - start - len(text[start:end].lstrip("`"))
    if run and not formatted:
        return () if ended else [Span(end, len(text) + 1, "`" * run, "`" * run)]
    if run:
        return [Span(start + run, end - run, "`" * run, "`" * run)]
    for opening, closing in _PAIRS.items():
        if text.startswith(opening, start) and end - start > len(opening):
            first, last = start + len(opening), end - len(closing)
            inner = (
                replace(span, start=span.start + first, end=span.end + first) for span in spans(text[first:last], True)
            )
            return [Span(first, last, opening, closing), *inner]
    if text[start] == "[":
        label = parser().helpers.parseLinkLabel(inline_state(text), start)
        return [Span(start + 1, label, "[", text[label:end])]
    return [Span(start, end)]
