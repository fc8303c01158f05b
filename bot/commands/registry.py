"""Commands by name: one definition for text, console and HTTP. They answer without a model, also during a run.

A command must be the whole message; where a platform keeps the slash for itself, `!` does as well. Text that names no
command and is like none goes to the model as it is, and so does one that only owners have when somebody else types it.
"""

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from agent.tools.base import Verdict
from bot.persistence.settings import Change
from channels.base import CommandInfo, CommandOption
from channels.message import InboundKind, InboundMessage
from channels.outgoing import Button, Planned
from channels.sources import Source

COMMAND_SIGNS = ("/", "!")
# Letters that are the beginning of a name; how alike a word must be that was certainly meant to be one.
_BEGINNING, NEAR = 3, 0.65
_FORM = re.compile(r"[/!]([A-Za-z][\w-]*):?(?:\s+(.*))?", re.DOTALL)


class Arguments(BaseModel):
    """Base of a command's arguments; fields are filled word by word, the last one takes the rest."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Call:
    """A command that is carried out. seq: its row in the inbox."""

    seq: int
    session_key: str
    message: InboundMessage
    by_owner: bool

    @property
    def is_words(self) -> bool:
        """A press of a button that the model made: no command, but what the person says."""
        return self.message.kind is InboundKind.BUTTON and not self.message.text.startswith(COMMAND_SIGNS)


@dataclass(frozen=True, slots=True)
class Say:
    """The effect of a command that says something. change: a setting of the session that it changes.

    choices: offered below it as buttons, each a command; the text names those commands, for they can be typed as well.
    mistake: the command was not understood, and nothing was done. source: of the message, where another than the
    command's own name matters.
    """

    text: str
    choices: tuple[Button, ...] = ()
    mistake: bool = False
    change: Change | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The session's run ends, and what waits is dropped. text: made of (was running, dropped).

    renew: a new transcript begins as well.
    """

    text: Callable[[bool, int], str]
    renew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """A request is settled. text: what is said, made of whether it was this command that settled it; may be empty.
    passed_on: the message whose words are the reason, by its place in the inbox."""

    approval_id: str
    verdict: Verdict
    reason: str = ""
    text: Callable[[bool], str]
    passed_on: int = 0


@dataclass(frozen=True, slots=True)
class AskAgain:
    """What nobody decided in time is asked once more. said: by whoever wants that. edits: what becomes of the message
    that offered it; their names let that happen once."""

    approval_id: str
    said: str
    edits: tuple[Planned, ...]


# What a command does, decided before anything is written; `answers` makes one transaction of it.
Effect = Say | Stop | Decide | AskAgain


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. run: takes the call and its arguments. lenient: words behind it are ignored.

    owner_only: for others it is as if it did not exist. listed: in menus and by /help; else it is for buttons.
    """

    name: str
    help: str
    run: Callable[[Call, Arguments], Awaitable[Effect]]
    aliases: tuple[str, ...] = ()
    arguments: type[Arguments] = Arguments
    lenient: bool = False
    owner_only: bool = False
    listed: bool = True

    @property
    def usage(self) -> str:
        """The command with its arguments, as one types it."""
        words = (
            f"<{name}>" if field.is_required() else f"[{name}]" for name, field in self.arguments.model_fields.items()
        )
        return " ".join((f"/{self.name}", *words))


class Registry:
    """All commands."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = tuple(commands)
        self._by_name = {name: command for command in commands for name in (command.name, *command.aliases)}

    def find(self, text: str, by_owner: bool) -> tuple[Command, str] | None:
        """The command that a text is, and the words behind its name; None when it is none for whoever wrote it."""
        matched = _FORM.fullmatch(text.strip())
        command = self.get(matched[1], by_owner) if matched else None
        return (command, (matched[2] or "").strip()) if matched and command else None

    def get(self, name: str, by_owner: bool) -> Command | None:
        """A command by name or alias, with or without the slash; None when it is none for whoever asks."""
        command = self._by_name.get(name.removeprefix("/").lower())
        return command if command and (by_owner or not command.owner_only) else None

    def nearest(self, text: str, by_owner: bool, likeness: float = 0.8) -> str | None:
        """The name that was probably meant by one that is none; None for what is like no command: a path, a word."""
        matched = _FORM.fullmatch(text.strip())
        if matched is None or matched[1].lower() in self._by_name:
            return None
        known = (name for name, command in self._by_name.items() if by_owner or not command.owner_only)
        return nearest(matched[1], [*known], likeness)

    def infos(self) -> Sequence[CommandInfo]:
        """Those for everybody, for menus of platforms."""
        return [
            CommandInfo(one.name, one.help, tuple(map(_option, one.arguments.model_fields.items())))
            for one in self.commands
            if one.listed and not one.owner_only
        ]

    async def effect(self, call: Call) -> Effect:
        """Of the command that a message is; wrong arguments and missing rights are answered in plain words."""
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
    """Of names the one that a word begins, or else the one that is most like it; None where it is like none. likeness:
    from 0 to 1."""
    word = word.lower()
    begun = [name for name in names if len(word) >= _BEGINNING and name.startswith(word)]
    return next(iter((*begun, *difflib.get_close_matches(word, names, 1, likeness))), None)


def _option(item: tuple[str, FieldInfo]) -> CommandOption:
    name, field = item
    return CommandOption(name, field.description or "", field.is_required())
