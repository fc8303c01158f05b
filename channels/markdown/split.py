"""Splits formatted text into messages that a platform takes, entities carried over. Channels' renderers call it."""

from collections.abc import Iterator

import regex  # type: ignore[import-untyped]

from channels.markdown.entities import Formatted
from channels.markdown.writer import Style, formatted
from channels.utf16 import index_at, units

_GRAPHEME = regex.compile(r"\X")
# What separates two pieces, best first, and which part of the room a piece must then fill at least.
_SEPARATORS = (("\n\n", 0.5), ("\n", 0.5), (" ", 0.25))

Span = tuple[int, int, Style]


def split(whole: Formatted, limit: int, most: int) -> list[Formatted]:
    """The pieces, in order: each at most `limit` UTF-16 units with at most `most` entities, none of them blank.

    Cut between paragraphs, lines, words or graphemes; white space at a cut is dropped. Entities that lie across a cut
    continue in the next piece.
    """
    if units(whole.text) <= limit and len(whole.entities) <= most and whole.text == whole.text.strip():
        return [whole] if whole.text else []
    return list(_pieces(whole.text, _spans(whole), limit, most))


def _spans(whole: Formatted) -> list[Span]:
    """The entities by code points."""
    encoded = whole.text.encode("utf-16-le")

    def index(offset: int) -> int:
        return len(encoded[: 2 * offset].decode("utf-16-le"))

    return [
        (index(entity.offset), index(entity.end), Style(entity.type, entity.url, entity.language, number))
        for number, entity in enumerate(whole.entities)
    ]


def _pieces(text: str, spans: list[Span], limit: int, most: int) -> Iterator[Formatted]:
    start, end = 0, len(text.rstrip())
    while start < end:
        start += _blank(text[start:end], [span for span in spans if span[0] <= start < span[1]])
        cut = start + _fit(text[start:end], [span for span in spans if span[1] > start], start, limit, most)
        runs = {span[2]: [(max(span[0], start) - start, min(span[1], cut) - start)] for span in spans}
        piece = formatted(text[start:cut].rstrip(), {s: [r for r in found if r[0] < r[1]] for s, found in runs.items()})
        if piece.text.strip():
            yield piece
        start = cut
        spans = [span for span in spans if span[1] > cut]


def _blank(text: str, inside: list[Span]) -> int:
    """How much white space a piece must not begin with: code keeps the indentation of its first line."""
    lead = len(text) - len(text.lstrip())
    if any(style.type == "pre" for _, _, style in inside):
        return text.rfind("\n", 0, lead) + 1
    return lead


def _fit(text: str, spans: list[Span], start: int, limit: int, most: int) -> int:
    """How much of the text makes one piece."""
    room = max(index_at(text, limit), 1)
    if len(spans) > most:
        room = min(room, max(spans[most][0] - start, 1))
    if room == len(text):
        return room
    for separator, least in _SEPARATORS:
        found = text.rfind(separator, 0, room + len(separator))
        if found >= max(room * least, 1):
            return found
    ends = [grapheme.end() for grapheme in _GRAPHEME.finditer(text, 0, room + 1)]
    return max((end for end in ends if end <= room), default=room)
