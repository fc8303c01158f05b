"""What a reader of a message sees: each character with what it looks like. The readers of the platforms make these."""

import unicodedata
from collections.abc import Iterable

from channels.markdown.formatted import QUOTES, EntityType, Formatted

Seen = list[tuple[str, frozenset[str]]]


def seen(text: str, looks: Iterable[str] = ()) -> Seen:
    """The characters that show something by themselves: no spaces, controls and marks on others."""
    # A heading that does not begin its line is bold; what code in it, or a link, looks like besides does not matter.
    looks = frozenset("bold" if look.startswith("heading") else look for look in looks)
    looks -= {"bold"} if "code" in looks else set()
    looks = looks & {"link", "quote"} if "link" in looks else looks
    return [(char, looks) for char in text if unicodedata.category(char)[0] not in "ZCM"]


def text_of(characters: Seen) -> str:
    return "".join(char for char, _ in characters)


def as_meant(whole: Formatted) -> Seen:
    """What formatted text says: white space aside, which platforms move."""
    found: Seen = []
    for at, char in enumerate(whole.text):
        styles = [one.style for one in whole.entities if one.start <= at < one.end]
        found += seen(char, {_name(style.type, style.level, style.url) for style in styles})
    return found


def _name(kind: EntityType, level: int, url: str) -> str:
    if kind is EntityType.HEADING:
        return f"heading{level}" if level <= 3 else "bold"
    if kind in QUOTES:
        return "quote"
    return "link" if url else kind.value
