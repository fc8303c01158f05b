"""Text of Telegram as people read it, and how the places below a channel's post are written. Pure."""

from typing import Any

from channels.utf16 import whole

# The beginning of the thread of a place that is the comments below a channel's post; the id of the post follows.
COMMENTS = "c"


def with_links(text: str, entities: object) -> str:
    """A text with the addresses of its linked words (`text_link`) behind them; malformed entities are skipped."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    for start, end, url in sorted(_links(entities), reverse=True):
        words = encoded[2 * start : 2 * end].decode("utf-16-le", "replace")
        if words.strip() and end <= len(encoded) // 2:
            shown = url if words in url else f"{words} ({url})"
            encoded = encoded[: 2 * start] + shown.encode("utf-16-le", "replace") + encoded[2 * end :]
    return encoded.decode("utf-16-le", "replace")


def _links(entities: object) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    entity: Any
    for entity in entities if isinstance(entities, list) else ():
        match entity:
            case {"type": "text_link", "offset": int() as start, "length": int() as length, "url": str() as url}:
                if start >= 0 and length > 0:
                    found.append((start, start + length, whole(url)))
    return found
