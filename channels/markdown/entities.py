"""Formatted text as chat platforms take it: plain text, and entities that say which part of it looks how.

Offsets and lengths are UTF-16 units. Entities here lie inside the text, never begin or end within a surrogate pair,
either contain each other or have nothing in common, are not empty and neither begin nor end with white space (code
keeps its indentation). `pre` and `code` share text with nothing but a quote around them, links and quotes do not nest.
"""

from dataclasses import dataclass
from enum import StrEnum


class EntityType(StrEnum):
    """How a part of a text looks; the names are Telegram's."""

    BOLD = "bold"
    ITALIC = "italic"
    STRIKETHROUGH = "strikethrough"
    CODE = "code"
    PRE = "pre"
    TEXT_LINK = "text_link"
    BLOCKQUOTE = "blockquote"


@dataclass(frozen=True, slots=True)
class Entity:
    """A part of a text. url: of a text_link. language: of a pre, empty when not told."""

    type: EntityType
    offset: int
    length: int
    url: str = ""
    language: str = ""

    @property
    def end(self) -> int:
        """The offset after its last unit."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Formatted:
    """A text with its entities, outer before inner."""

    text: str
    entities: tuple[Entity, ...] = ()
