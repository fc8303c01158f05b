"""Splits formatted text into messages that a platform takes, entities carried over. Channels' renderers call it."""

import unicodedata
from collections.abc import Callable, Iterator

import regex  # type: ignore[import-untyped]

from channels.markdown.entities import Formatted
from channels.markdown.writer import Style, formatted
from channels.utf16 import index_at, units

_GRAPHEME = regex.compile(r"\X")
# What separates two pieces, best first, and which part of the room a piece must then fill at least.
_SEPARATORS = (("\n\n", 0.5), ("\n", 0.5), (" ", 0.25))

Span = tuple[int, int, Style]


def split(
    whole: Formatted, limit: int, most: int, lines: int = 0, fits: Callable[[Formatted], bool] = lambda piece: True
) -> list[Formatted]:
    """The pieces, in order: each at most `limit` UTF-16 units with at most `most` entities, none of them blank.

    Cut between paragraphs, lines, words or graphemes; white space at a cut is dropped. Entities that lie across a cut
    continue in the next piece. lines: how many a piece may have, where that is limited. fits: whether a piece can be
    sent; one that cannot is made shorter, as long as it has two characters.
    """
    return list(_pieces(whole.text, spans(whole), limit, most, lines, fits))


def shows(text: str) -> bool:
    """Whether there is a character to see: a message of spaces, marks and format characters is refused."""
    return any(unicodedata.category(char)[0] not in "ZCM" for char in text)


def spans(whole: Formatted) -> list[Span]:
    """The entities by code points."""
    encoded = whole.text.encode("utf-16-le")

    def index(offset: int) -> int:
        return len(encoded[: 2 * offset].decode("utf-16-le"))

    return [
        (index(entity.offset), index(entity.end), Style(entity.type, entity.url, entity.language, entity.level, number))
        for number, entity in enumerate(whole.entities)
    ]


def _pieces(
    text: str, spans: list[Span], limit: int, most: int, lines: int, fits: Callable[[Formatted], bool]
) -> Iterator[Formatted]:
    start, end = 0, len(text.rstrip())
    while start < end:
        start += _blank(text[start:end], [span for span in spans if span[0] <= start < span[1]])
        room, spans = limit, [span for span in spans if span[1] > start]
        while True:
            cut = start + _fit(text[start:end], spans, start, room, most, lines)
            piece = _piece(text, spans, start, cut)
            if cut - start < 2 or fits(piece):
                break
            room = units(text[start:cut]) * 7 // 8
        if piece.text.strip():
            yield piece
        start = cut


def _piece(text: str, spans: list[Span], start: int, cut: int) -> Formatted:
    runs = {style: [(max(first, start) - start, min(last, cut) - start)] for first, last, style in spans if first < cut}
    return formatted(text[start:cut].rstrip(), runs)


def _blank(text: str, inside: list[Span]) -> int:
    """How much white space a piece must not begin with: code keeps the indentation of its first line."""
    lead = len(text) - len(text.lstrip())
    if any(style.type == "pre" for _, _, style in inside):
        return text.rfind("\n", 0, lead) + 1
    return lead


def _fit(text: str, spans: list[Span], start: int, limit: int, most: int, lines: int) -> int:
    """How much of the text makes one piece."""
    room = max(index_at(text, limit), 1)
    if len(spans) > most:
        room = min(room, max(spans[most][0] - start, 1))
    if lines:
        room = min(room, max(_end_of_line(text, lines), 1))
    if room == len(text):
        return room
    for separator, least in _SEPARATORS:
        found = text.rfind(separator, 0, room + len(separator))
        if found >= max(room * least, 1):
            return found
    ends = [grapheme.end() for grapheme in _GRAPHEME.finditer(text, 0, room + 1)]
    return max((end for end in ends if end <= room), default=room)


def _end_of_line(text: str, number: int) -> int:
    """Where the line of this number ends, the first being 1; the end of a text with fewer."""
    end = -1
    for _ in range(number):
        end = text.find("\n", end + 1)
        if end < 0:
            return len(text)
    return end
