"""The commands /verbose, /reasoning, /activation and /voice, which show a setting of the session or change it."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from bot.commands.registry import Answer, Arguments, Call, Command, Effect, Say
from bot.persistence.settings import Change
from bot.persistence.turns import CommandKept
from bot.store.store import Store
from channels.message import SEVERAL


class VerboseArguments(Arguments):
    """The arguments of /verbose."""

    setting: ClassVar[Literal["verbose"]] = "verbose"
    mode: Literal["on", "off"] | None = Field(default=None, description="on or off; without it I say what is set.")


class ReasoningArguments(Arguments):
    """The arguments of /reasoning."""

    setting: ClassVar[Literal["reasoning"]] = "reasoning"
    mode: Literal["on", "off", "stream"] | None = Field(
        default=None, description="on: before the answer; stream: as it comes; off."
    )


class ActivationArguments(Arguments):
    """The arguments of /activation."""

    setting: ClassVar[Literal["activation"]] = "activation"
    mode: Literal["mention", "always", "off"] | None = Field(
        default=None, description="mention: only what names me; always: everything; off: only commands."
    )


class VoiceArguments(Arguments):
    """The arguments of /voice."""

    setting: ClassVar[Literal["voice"]] = "voice"
    mode: Literal["on", "off"] | None = Field(default=None, description="on or off; without it I say what is set.")


@dataclass(frozen=True, slots=True)
class ChangeSetting(Effect):
    """A change of a setting of the session."""

    store: Store
    change: Change
    # The answer to the command.
    text: str

    async def persist(self, answer: Answer) -> CommandKept:
        """Change the setting."""
        call = answer.call
        return await self.store.settings.change(call.seq, call.session_key, self.change, answer.blocks(self.text))


def build(store: Store, *, speaks: bool) -> tuple[Command, ...]:
    """Make the commands. store: holds the settings of sessions. speaks: whether answers can be said aloud."""

    async def set_or_say(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, VerboseArguments | ReasoningArguments | ActivationArguments | VoiceArguments)
        setting, mode = arguments.setting, arguments.mode
        others_read = call.message.origin.place.kind in SEVERAL
        if setting == "activation" and not others_read:
            return Say("Directly I always answer; write this in a group, a channel or a thread.", mistake=True)
        if setting == "voice" and mode == "on" and not speaks:
            return Say("I have no voice: whoever runs me has not set `speech` in the configuration.", mistake=True)
        shown = mode or getattr(await store.settings.of(call.session_key), setting) or "as in the configuration"
        text = f"{setting.capitalize()} is {shown}."
        return ChangeSetting(store, (setting, mode), text) if mode else Say(text)

    heard = "What I answer in this group, channel or thread: what names me, everything, or only commands."
    aloud = "Whether I say my answers aloud, too."
    used, thought = "Whether I show what I use.", "Whether I show what I think."
    return (
        Command(name="verbose", help=used, run=set_or_say, arguments=VerboseArguments, guests="direct"),
        Command(name="reasoning", help=thought, run=set_or_say, arguments=ReasoningArguments, guests="direct"),
        Command(name="activation", help=heard, run=set_or_say, arguments=ActivationArguments, guests="direct"),
        Command(name="voice", help=aloud, run=set_or_say, arguments=VoiceArguments, guests="direct"),
    )
