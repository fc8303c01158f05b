"""The registry of commands: their names, their arguments, who may use them, and what each does as a typed value.

A command is the whole message: a slash, its name, and its arguments. `!` stands for the slash, because some platforms
keep the slash for commands of their own. Commands are answered without a model, also while a turn runs. Text that names
no command and is like none goes to the model as it is, and so does a command for owners that somebody else types.

Each feature makes its commands in a module of its own and carries their effects out there. `bot/inbound/commands.py`
brings the two together.
"""

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from channels.base import CommandInfo, CommandOption
from channels.message import InboundKind, InboundMessage
from channels.outgoing import Button
from channels.sources import Source

COMMAND_SIGNS = ("/", "!")
# How many letters of a name are recognised as its beginning.
_BEGINNING = 3
# How alike (0 to 1) a word must be to the name of a command where it was certainly meant to be one.
NEAR = 0.65
_FORM = re.compile(r"[/!]([A-Za-z][\w-]*):?(?:\s+(.*))?", re.DOTALL)


class Arguments(BaseModel):
    """Base of the arguments of a command.

    Each word behind the name of the command fills a field, in their order; the last field takes the rest of the text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Call:
    """A command that somebody has given."""

    # The place of its message in the inbox.
    seq: int
    session_key: str
    message: InboundMessage
    by_owner: bool

    @property
    def is_words(self) -> bool:
        """Whether it is no command but words: somebody has pressed a button that the model offered."""
        return self.message.kind is InboundKind.BUTTON and not self.message.text.startswith(COMMAND_SIGNS)


@dataclass(frozen=True, slots=True)
class Effect:
    """Base of what a command does: a value that is decided before anything is written.

    Each feature defines its effects beside its commands, with the code that carries them out.
    """


@dataclass(frozen=True, slots=True)
class Say(Effect):
    """The effect of a command that only says something."""

    text: str
    # Buttons below the text, each of which sends a command; the text names these commands, for they can be typed too.
    choices: tuple[Button, ...] = ()
    # Whether the command was not understood, or may not be given: nothing was done, and only its sender is told where
    # the platform can do that.
    mistake: bool = False
    # The source of the delivery; without it the source is made of the place of the command in the inbox.
    source: Source | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The definition of a command."""

    name: str
    help: str
    # Finds out what the command does. What a feature changes by itself, such as a list of jobs, is changed here; the
    # rest is the effect. May raise StoreUnavailable, and is called again then.
    run: Callable[[Call, Arguments], Awaitable[Effect]]
    aliases: tuple[str, ...] = ()
    arguments: type[Arguments] = Arguments
    # Whether words behind the command are ignored.
    lenient: bool = False
    # Whether only owners have it; for others it does not exist.
    owner_only: bool = False
    # Whether menus and /help name it; a command that is not listed is for buttons.
    listed: bool = True

    @property
    def usage(self) -> str:
        """How the command is typed, with its arguments: `/name <required> [optional]`."""
        words = (
            f"<{name}>" if field.is_required() else f"[{name}]" for name, field in self.arguments.model_fields.items()
        )
        return " ".join((f"/{self.name}", *words))


class Registry:
    """All commands of a service, by name."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = tuple(commands)
        self._by_name = {name: command for command in commands for name in (command.name, *command.aliases)}

    def find(self, text: str, by_owner: bool) -> tuple[Command, str] | None:
        """Return the command that a text is, and the words behind its name; None if it is no command for its sender."""
        matched = _FORM.fullmatch(text.strip())
        command = self.get(matched[1], by_owner) if matched else None
        return (command, (matched[2] or "").strip()) if matched and command else None

    def get(self, name: str, by_owner: bool) -> Command | None:
        """Return a command by name or alias, with or without the slash; None if there is none for who asks."""
        command = self._by_name.get(name.removeprefix("/").lower())
        return command if command and (by_owner or not command.owner_only) else None

    def nearest(self, text: str, by_owner: bool, likeness: float = 0.8) -> str | None:
        """Return the name of the command that a text was probably meant to be.

        Return None for a command, and for a text that is like none, such as a path. likeness: see `nearest`.
        """
        matched = _FORM.fullmatch(text.strip())
        if matched is None or matched[1].lower() in self._by_name:
            return None
        known = (name for name, command in self._by_name.items() if by_owner or not command.owner_only)
        return nearest(matched[1], [*known], likeness)

    def infos(self) -> Sequence[CommandInfo]:
        """Return the commands for everybody, for the menus of the platforms."""
        return [
            CommandInfo(one.name, one.help, tuple(map(_option, one.arguments.model_fields.items())))
            for one in self.commands
            if one.listed and not one.owner_only
        ]

    async def effect(self, call: Call) -> Effect:
        """Return the effect of the command that a message is.

        Where there is no such command, or its arguments are wrong, the effect is an answer that says so. May raise
        StoreUnavailable.
        """
        found = self.find(call.message.text, call.by_owner)
        if found is None:
            name = matched[1] if (matched := _FORM.fullmatch(call.message.text.strip())) else "there"
            near = self.nearest(call.message.text, call.by_owner, NEAR)
            meant = f"the nearest is `/{near}`, and /help lists all" if near else "/help lists what there is"
            return Say(f"There is no command `{name}`; {meant}.", mistake=True)
        command, words = found
        fields = command.arguments.model_fields
        if command.lenient:
            words = ""
        if words and not fields:
            takes = f"/{command.name} takes nothing behind it, and {words!r} was there."
            return Say(f"{takes} Usage: {command.usage}", mistake=True)
        pieces = words.split(None, max(len(fields) - 1, 0))
        try:
            arguments = command.arguments.model_validate(dict(zip(fields, pieces, strict=False)))
        except ValidationError as error:
            reason = error.errors()[0]["msg"].lower()
            mistake = f"I did not understand {words!r} ({reason})." if words else f"Something is missing ({reason})."
            return Say(f"{mistake} Usage: {command.usage}", mistake=True)
        return await command.run(call, arguments)


def nearest(word: str, names: Sequence[str], likeness: float = NEAR) -> str | None:
    """Return the name that a word is the beginning of, or else the name that is most like it.

    Return None if it is like none. likeness: how alike they must be, from 0 to 1.
    """
    word = word.lower()
    begun = [name for name in names if len(word) >= _BEGINNING and name.startswith(word)]
    return next(iter((*begun, *difflib.get_close_matches(word, names, 1, likeness))), None)


def _option(item: tuple[str, FieldInfo]) -> CommandOption:
    name, field = item
    return CommandOption(name, field.description or "", field.is_required())
