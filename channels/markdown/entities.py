"""Formatted text as chat platforms take it: plain text, and entities that say which part of it looks how.

Positions are code points. Entities here lie inside the text, either contain each other or have nothing in common, are
not empty and neither begin nor end with white space (code keeps its indentation, also where a quote begins with it).
`pre` and `code` share text with nothing but a quote around them, links and quotes do not nest.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class EntityType(StrEnum):
    """How a part of a text looks; the names are Telegram's, which has no headings.

    A platform that shows URL wants to be told where bare addresses are; they come as TEXT_LINK.
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
    """One use of a style. url: of a text_link. language: of a pre, empty when not told. level: of a heading, 1 to 6.

    mark: tells two uses apart that may touch, such as links or quotes.
    """

    type: EntityType
    url: str = ""
    language: str = ""
    level: int = 0
    mark: int = 0


class Entity(NamedTuple):
    """A part of a text. end: behind its last character."""

    start: int
    end: int
    style: Style


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text with its entities, outer before inner."""

    text: str
    entities: tuple[Entity, ...] = ()
