"""Lengths and positions in UTF-16 code units, the unit in which chat platforms count text.

A code point beyond U+FFFF is two units; text here is Python text, so an index never falls inside such a pair.
"""


def units(text: str) -> int:
    """The number of UTF-16 units of a text."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def index_at(text: str, limit: int) -> int:
    """The largest index such that `text[:index]` has at most `limit` units; a pair that straddles it stays out."""
    if limit >= 2 * len(text):
        return len(text)
    head = text[: max(limit, 0)]
    over = units(head) - limit
    while over > 0:
        # Each step drops at least `over / 2` code points, so this takes a few rounds, not one per character.
        head = head[: len(head) - (over + 1) // 2]
        over = units(head) - limit
    return len(head)


def whole(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates replaced, so that it can be encoded."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
