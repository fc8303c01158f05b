"""Splits formatted text into messages that a platform takes, entities carried over. Channels' renderers call it."""

import unicodedata
from collections.abc import Callable, Sequence

import regex  # type: ignore[import-untyped]

from channels.markdown.entities import Entity, Formatted
from channels.markdown.writer import formatted
from channels.utf16 import index_at, units

_GRAPHEME = regex.compile(r"\X")
# What separates two pieces, best first, and which part of the room a piece must then fill at least.
_SEPARATORS = (("\n\n", 0.5), ("\n", 0.5), (" ", 0.25))


def split(
    whole: Formatted, limit: int, most: int, fits: Callable[[Formatted], bool] = lambda piece: True
) -> list[Formatted]:
    """The pieces, in order: each at most `limit` UTF-16 units with at most `most` entities, none of them blank.

    Cut between paragraphs, lines, words or graphemes; white space at a cut is dropped. Entities that lie across a cut
    continue in the next piece. fits: whether a piece can be sent; one that cannot is made shorter, as long as it has
    two characters.
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
            if cut - start < 2 or fits(piece):
                break
            room = units(text[start:cut]) * 7 // 8
        pieces += [piece] if piece.text.strip() else []
        start = cut
    return pieces


def shows(text: str) -> bool:
    """Whether there is a character to see: a message of spaces, marks and format characters is refused."""
    return any(unicodedata.category(char)[0] not in "ZCM" for char in text)


def _blank(text: str, inside: Sequence[Entity]) -> int:
    """How much white space a piece must not begin with: code keeps the indentation of its first line."""
    lead = len(text) - len(text.lstrip())
    if any(style.type == "pre" for _, _, style in inside):
        return text.rfind("\n", 0, lead) + 1
    return lead


def _fit(text: str, limit: int) -> int:
    """How much of the text makes one piece."""
    room = max(index_at(text, limit), 1)
    if room == len(text):
        return room
    for separator, least in _SEPARATORS:
        found = text.rfind(separator, 0, room + len(separator))
        if found >= max(room * least, 1):
            return found
    ends = [grapheme.end() for grapheme in _GRAPHEME.finditer(text, 0, room + 1)]
    return max((end for end in ends if end <= room), default=room)
