"""The words with a slash that the terminal completes, and the one that a mistyped word was probably meant to be."""

import re

from bot.commands import builtin, registry

# These close the terminal, and never reach the service.
LEAVE = ("/quit", "/exit")
# The commands of features, which would take long to import for their names alone.
_OTHERS = (
    *("status", "stop", "abort", "new", "reset", "verbose", "reasoning", "activation", "pairing", "people"),
    *("approve", "answer", "approvals", "heartbeat", "schedule"),
)
_WORD = re.compile(r"\s*/([A-Za-z][\w-]*)(?: [^\n]*)?")


def words() -> tuple[str, ...]:
    """Return every word with a slash that can be typed, in alphabetical order."""
    own = (name for command in builtin.build("", ()).commands for name in (command.name, *command.aliases))
    names = (*own, *_OTHERS)
    return tuple(sorted((*(f"/{name}" for name in names), *LEAVE)))


def nearest(text: str) -> str | None:
    """Return the command that a text was probably meant to be; None for a command, and for a text like none: a path."""
    found = _WORD.fullmatch(text)
    names = [word.removeprefix("/") for word in words()]
    if found is None or found[1].lower() in names:
        return None
    near = registry.nearest(found[1], names)
    return f"/{near}" if near else None
