"""Words that begin with a slash, as a person types them: which there are, and which one was meant."""

import re
from typing import NoReturn

from bot.commands import builtin, registry

# They close the terminal, and never reach the service.
LEAVE = ("/quit", "/exit")
# Those of parts of the service that are not imported for their names.
_OTHERS = ("approve", "answer", "approvals", "heartbeat", "schedule")
_WORD = re.compile(r"\s*/([A-Za-z][\w-]*)(?: [^\n]*)?")


async def _elsewhere(*call: object) -> NoReturn:
    raise NotImplementedError("commands are carried out by the service")


_COMMANDS = builtin.build(_elsewhere, _elsewhere, _elsewhere, "")


def words() -> tuple[str, ...]:
    """Everything that can be typed, in alphabetical order."""
    own = (name for command in _COMMANDS.commands for name in (command.name, *command.aliases))
    names = (*own, *_OTHERS)
    return tuple(sorted((*(f"/{name}" for name in names), *LEAVE)))


def nearest(text: str) -> str | None:
    """The command that a text was probably meant to be; None for a command, and for what is like none: a path."""
    found = _WORD.fullmatch(text)
    names = [word.removeprefix("/") for word in words()]
    if found is None or found[1].lower() in names:
        return None
    near = registry.nearest(found[1], names)
    return f"/{near}" if near else None
