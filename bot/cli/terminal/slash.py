"""The words with a slash that the terminal completes, and the one that a mistyped word was probably meant to be."""

import re

from bot.commands.registry import nearest as nearest_of
from bot.wording import LISTED, UNLISTED

# These close the terminal, and never reach the service.
LEAVE = ("/quit", "/exit")
_WORD = re.compile(r"\s*/([A-Za-z][\w-]*)(?: [^\n]*)?")


def words() -> tuple[str, ...]:
    """Return every word with a slash that can be typed, in alphabetical order."""
    return tuple(sorted((*(f"/{name}" for name in (*LISTED, *UNLISTED)), *LEAVE)))


def nearest(text: str) -> str | None:
    """Return the command that a text was probably meant to be; None for a command, and for a text like none: a path."""
    found = _WORD.fullmatch(text)
    names = [word.removeprefix("/") for word in words()]
    if found is None or found[1].lower() in names:
        return None
    near = nearest_of(found[1], names)
    return f"/{near}" if near else None
