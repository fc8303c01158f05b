"""The registry of commands: their names, their arguments, who may use them, and what each does as a typed value.

A command is the whole message: a slash, its name, and its arguments. `!` stands for the slash, because some platforms
keep the slash for commands of their own. Commands are answered without a model, also while a turn runs. Text that names
no command and is like none goes to the model as it is, and so does a command for owners that somebody else types.

Each feature makes its commands in a module of its own and carries their effects out there. `bot/inbound/commands.py`
brings the two together.
"""

import difflib
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from bot.persistence.turns import CommandKept
from channels.base import CommandInfo, CommandOption
from channels.message import SEVERAL, InboundKind, InboundMessage
from channels.outgoing import Button, Planned
from channels.sources import Source, sentence

COMMAND_SIGNS = ("/", "!")
# How many letters of a name are recognised as its beginning.
_BEGINNING = 3
# How alike (0 to 1) a word must be to the name of a command where it was certainly meant to be one.
NEAR = 0.65
# What may stand behind a word that is a command by itself, and how long such a text is at most.
_ENDS, _LONGEST_WORD = " .!?…。！？，،؟¡", 40
_FORM = re.compile(r"[/!]([A-Za-z][\w-]*):?(?:\s+(.*))?", re.DOTALL)


class Arguments(BaseModel):
    """Base of the arguments of a command.

    Each word behind the name of the command fills a field, in their order; the last field takes the rest of the text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who writes, and where, as far as it decides which commands there are for them."""

    is_owner: bool
    # Whether the configuration lets them decide requests.
    is_approver: bool = False
    # Whether nobody else reads and writes there.
    direct: bool = True
    # Whether they have pressed a button that the bot has shown, instead of typing.
    presses: bool = False


@dataclass(eq=False, slots=True)
class Askers:
    """Tells who an asker is. approvers: "channel:id" of each, as configured."""

    is_owner: Callable[[InboundMessage], bool]
    approvers: Collection[str]

    def of(self, message: InboundMessage) -> Asker:
        """Return who has written a message."""
        place = message.origin.place
        return Asker(
            is_owner=self.is_owner(message),
            is_approver=f"{place.channel}:{message.origin.sender}" in self.approvers,
            direct=place.kind not in SEVERAL,
            presses=message.kind is InboundKind.BUTTON,
        )


@dataclass(frozen=True, slots=True)
class Call:
    """A command that somebody has given."""

    # The place of its message in the inbox.
    seq: int
    session_key: str
    message: InboundMessage
    asker: Asker

    @property
    def by_owner(self) -> bool:
        """Whether an owner has given it."""
        return self.asker.is_owner

    @property
    def is_words(self) -> bool:
        """Whether it is no command but words: somebody has pressed a button that the model offered."""
        return self.message.kind is InboundKind.BUTTON and not self.message.text.startswith(COMMAND_SIGNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an effect is carried out with: its call, and the means to answer it."""

    call: Call
    # Finds the edit that puts what was pressed in the place of the buttons; empty if no button was pressed.
    chosen: Callable[[], Awaitable[tuple[Planned, ...]]]
    # Whether the platform keeps native commands apart from what is said, so that they do not reach threads.
    apart: bool
    # Makes the deliveries of a text of the service, of source, text, name of the channel and buttons.
    notice: Callable[[Source, str, str, tuple[Button, ...]], tuple[Planned, ...]]
    # Transactions of `Commands` of the store that need nothing else: answer with blocks; become a message.
    say: Callable[[int, Sequence[Planned], Sequence[Planned]], Awaitable[CommandKept]]
    take_up: Callable[[int, InboundMessage, Sequence[Planned]], Awaitable[CommandKept]]

    def blocks(
        self, text: str, choices: tuple[Button, ...] = (), *, private: bool = False, source: Source | None = None
    ) -> tuple[Planned, ...]:
        """Make the deliveries of an answer; none for an empty text.

        A native command is answered to its sender alone where the platform can do that. private: so is the press of a
        button. choices, source: see `Say`.
        """
        if not text:
            return ()
        message = self.call.message
        blocks = self.notice(source or sentence("cmd", self.call.seq), text, message.origin.place.channel, choices)
        if message.respond and (private or message.kind is InboundKind.COMMAND):
            alone = len(blocks) if self.apart else 1
            blocks = (*(replace(one, respond=message.respond) for one in blocks[:alone]), *blocks[alone:])
        return blocks


class Effect(ABC):
    """Base of what a command does: a value that is decided before anything is written.

    Each feature defines its effects beside its commands, as frozen values that hold what they write with.
    """

    __slots__ = ()

    @abstractmethod
    async def persist(self, answer: Answer) -> CommandKept:
        """Persist the effect, the answer and the end of the command in one transaction. May raise StoreUnavailable.

        After it the runs that were stopped are cancelled, sessions that go on are woken, and the answer is sent.
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

    async def persist(self, answer: Answer) -> CommandKept:
        """Answer."""
        blocks = answer.blocks(self.text, self.choices, private=self.mistake, source=self.source)
        return await answer.say(answer.call.seq, blocks, () if self.mistake else await answer.chosen())


@dataclass(frozen=True, slots=True)
class TakeUp(Effect):
    """The effect of a command that becomes a message, which a turn answers."""

    message: InboundMessage

    async def persist(self, answer: Answer) -> CommandKept:
        """Make the command the message."""
        return await answer.take_up(answer.call.seq, self.message, await answer.chosen())


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
    # Where it exists for people who are no owners: direct is in their own direct chat. Owners have it everywhere.
    guests: Literal["nowhere", "direct", "everywhere"] = "nowhere"
    # Whether it also exists for those who may decide requests, and on buttons.
    approvers: bool = False
    # Whether menus and /help name it; a command that is not listed is for buttons.
    listed: bool = True
    # Whether it decides a request, what somebody may, or what is spent: only a person may give it then, see
    # `InboundMessage.by_hand`.
    decides: bool = False

    @property
    def usage(self) -> str:
        """How the command is typed, with its arguments: `/name <required> [optional]`."""
        words = (
            f"<{name}>" if field.is_required() else f"[{name}]" for name, field in self.arguments.model_fields.items()
        )
        return " ".join((f"/{self.name}", *words))

    def is_for(self, asker: Asker) -> bool:
        """Return whether the command exists for who asks."""
        return (
            asker.is_owner
            or self.guests == "everywhere"
            or (self.guests == "direct" and asker.direct)
            or (self.approvers and (asker.is_approver or asker.presses))
        )


class Registry:
    """All commands of a service, by name."""

    def __init__(self, commands: Sequence[Command], stop_words: Sequence[str] = ()) -> None:
        """stop_words: see `stop_by`."""
        self.commands = tuple(commands)
        self.stop_by(stop_words)
        self._by_name = {name: command for command in commands for name in (command.name, *command.aliases)}

    def stop_by(self, words: Iterable[str]) -> None:
        """Let these words, and no others, be /stop where they are the whole message."""
        self._stop_words = frozenset(unicodedata.normalize("NFC", word).casefold() for word in words)

    def find(self, text: str, asker: Asker) -> tuple[Command, str] | None:
        """Return the command that a text is, and the words behind its name; None if it is no command for its sender."""
        text = text.strip()
        if matched := _FORM.fullmatch(text):
            command = self.get(matched[1], asker)
            return (command, (matched[2] or "").strip()) if command else None
        word = unicodedata.normalize("NFC", text).strip(_ENDS).casefold() if len(text) <= _LONGEST_WORD else ""
        command = self.get("stop", asker) if word in self._stop_words else None
        return (command, "") if command else None

    def get(self, name: str, asker: Asker) -> Command | None:
        """Return a command by name or alias, with or without the slash; None if there is none for who asks."""
        command = self._by_name.get(name.removeprefix("/").lower())
        return command if command and command.is_for(asker) else None

    def nearest(self, text: str, asker: Asker, likeness: float = 0.8) -> str | None:
        """Return the name of the command that a text was probably meant to be.

        Return None for a command, and for a text that is like none, such as a path. likeness: see `nearest`.
        """
        matched = _FORM.fullmatch(text.strip())
        if matched is None or matched[1].lower() in self._by_name:
            return None
        known = (name for name, command in self._by_name.items() if command.is_for(asker))
        return nearest(matched[1], [*known], likeness)

    def infos(self) -> Sequence[CommandInfo]:
        """Return the commands for everybody, for the menus of the platforms."""
        return [
            CommandInfo(one.name, one.help, tuple(map(_option, one.arguments.model_fields.items())))
            for one in self.commands
            if one.listed and (one.guests != "nowhere" or one.approvers)
        ]

    async def effect(self, call: Call) -> Effect:
        """Return the effect of the command that a message is.

        Where there is no such command, or its arguments are wrong, the effect is an answer that says so. May raise
        StoreUnavailable.
        """
        found = self.find(call.message.text, call.asker)
        if found is None:
            name = matched[1] if (matched := _FORM.fullmatch(call.message.text.strip())) else "there"
            if call.asker.presses and name.lower() in self._by_name:  # a button for others: nobody need read of it
                return Say("", mistake=True)
            near = self.nearest(call.message.text, call.asker, NEAR)
            meant = f"the nearest is `/{near}`, and /help lists all" if near else "/help lists what there is"
            return Say(f"There is no command `{name}`; {meant}.", mistake=True)
        command, words = found
        if command.decides and not call.message.by_hand:
            return Say(
                f"Only a person can give `/{command.name}`: on a platform, or typed in the terminal.", mistake=True
            )
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
