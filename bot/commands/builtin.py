"""The commands of this version, those for owners among them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from bot import wording
from bot.commands.registry import Arguments, Call, Command, Effect, Registry, Say, Stop
from bot.persistence.settings import SessionSettings
from channels.message import SEVERAL, ChatKind


class HelpArguments(Arguments):
    """Of /help."""

    command: str | None = Field(default=None, description="A command to explain.")


class VerboseArguments(Arguments):
    """Of /verbose."""

    setting: ClassVar[Literal["verbose"]] = "verbose"
    mode: Literal["on", "off"] | None = Field(default=None, description="on or off; without it I say what is set.")


class ReasoningArguments(Arguments):
    """Of /reasoning."""

    setting: ClassVar[Literal["reasoning"]] = "reasoning"
    mode: Literal["on", "off", "stream"] | None = Field(
        default=None, description="on: before the answer; stream: as it comes; off."
    )


class ActivationArguments(Arguments):
    """Of /activation."""

    setting: ClassVar[Literal["activation"]] = "activation"
    mode: Literal["mention", "always", "off"] | None = Field(
        default=None, description="mention: only what names me; always: everything; off: only commands."
    )


class PairingArguments(Arguments):
    """Of /pairing."""

    action: Literal["list", "approve", "deny"] = Field(description="list, approve or deny.")
    code: str = Field(default="", description="The code that somebody was given.")


class PeopleArguments(Arguments):
    """Of /people."""

    action: Literal["list", "revoke", "block", "owner"] = Field(
        default="list", description="list; revoke what was said of somebody, block them, make them an owner."
    )
    who: str = Field(default="", description="Who, as channel:id.")


def build(
    status: Callable[[Call], Awaitable[str]],
    pair: Callable[[str, str, str], Awaitable[str]],
    settings: Callable[[str], Awaitable[SessionSettings]],
    name: str,
    besides: Sequence[Command] = (),
) -> Registry:
    """The registry. status: makes the text of /status. pair: carries out action and code of /pairing, or action and
    person of /people, in the name of "channel:id", and says it.

    settings: what is set for a session. name: of the bot. besides: further commands.
    """

    async def say_hello(call: Call, _: Arguments) -> Effect:
        return Say(wording.hello(name))

    async def show_help(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, HelpArguments)
        if arguments.command is None:
            shown = (one for one in registry.commands if one.listed and (call.by_owner or not one.owner_only))
            # without marks of code, so that platforms make them links to tap
            lines = [f"{command.usage.replace('<', chr(92) + '<')} – {command.help}" for command in shown]
            if call.message.origin.place.kind is ChatKind.CONSOLE:
                lines.append(wording.TERMINAL_KEYS)
            return Say("\n".join(f"- {line}" for line in lines))
        command = registry.get(arguments.command, call.by_owner)
        if command is None:
            return Say(f"There is no command {arguments.command!r}. /help lists all.")
        also = f" Also: {', '.join(f'/{alias}' for alias in command.aliases)}." if command.aliases else ""
        return Say(f"`{command.usage}` {command.help}{also}")

    async def show_status(call: Call, _: Arguments) -> Effect:
        return Say(await status(call))

    async def stop(call: Call, _: Arguments) -> Effect:
        return Stop(wording.stopped)

    async def reset(call: Call, _: Arguments) -> Effect:
        return Stop(wording.fresh_start, renew=True)

    listed = "What you can type."
    begin = "Begin a new conversation; the old one is kept."
    registry = Registry(
        (
            Command(name="help", help=listed, run=show_help, aliases=("commands",), arguments=HelpArguments),
            Command(name="start", help="Says hello.", run=say_hello, lenient=True),
            Command(name="status", help="What is running, and which model answers.", run=show_status),
            Command(name="stop", help="Stop the run, and drop what waits.", run=stop, aliases=("abort",), lenient=True),
            Command(name="new", help=begin, run=reset),
            Command(name="reset", help="The same as /new.", run=reset),
            *_settings(settings),
            *_people(pair),
            *besides,
        )
    )
    return registry


def _settings(settings: Callable[[str], Awaitable[SessionSettings]]) -> tuple[Command, ...]:
    """The commands that say what is set for a session, and set it."""

    async def set_or_say(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, VerboseArguments | ReasoningArguments | ActivationArguments)
        setting, mode = arguments.setting, arguments.mode
        others_read = call.message.origin.place.kind in SEVERAL
        if mode and setting == "reasoning" and others_read and not call.by_owner:
            return Say("What the model thinks may be private: only an owner can change this here.", mistake=True)
        if setting == "activation" and not others_read:
            return Say("Directly I always answer; write this in a group, a channel or a thread.", mistake=True)
        shown = mode or getattr(await settings(call.session_key), setting) or "as in the configuration"
        return Say(f"{setting.capitalize()} is {shown}.", change=(setting, mode) if mode else None)

    heard = "What I answer in this group, channel or thread: what names me, everything, or only commands."
    return (
        Command(name="verbose", help="Whether I show what I use.", run=set_or_say, arguments=VerboseArguments),
        Command(name="reasoning", help="Whether I show what I think.", run=set_or_say, arguments=ReasoningArguments),
        Command(name="activation", help=heard, run=set_or_say, arguments=ActivationArguments, owner_only=True),
    )


def _people(pair: Callable[[str, str, str], Awaitable[str]]) -> tuple[Command, ...]:
    """The commands about who may write."""

    async def carry_out(call: Call, arguments: Arguments) -> Effect:
        origin = call.message.origin
        by = f"{origin.place.channel}:{origin.sender}"
        if isinstance(arguments, PairingArguments):
            return Say(await pair(arguments.action, arguments.code, by))
        assert isinstance(arguments, PeopleArguments)
        return Say(await pair("people" if arguments.action == "list" else arguments.action, arguments.who, by))

    asks = "Who asks to write to me, and the codes that they were given."
    known = "Who may write to me and who may not, and what is to change: revoke, block or owner, and who."
    return (
        Command(name="pairing", help=asks, run=carry_out, arguments=PairingArguments, owner_only=True),
        Command(name="people", help=known, run=carry_out, arguments=PeopleArguments, owner_only=True),
    )
