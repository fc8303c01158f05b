"""The commands about the commands themselves, /help and /start, and the registry of all commands."""

from collections.abc import Sequence

from pydantic import Field

from bot import wording
from bot.commands.registry import Arguments, Call, Command, Effect, Registry, Say
from channels.message import ChatKind


class HelpArguments(Arguments):
    """The arguments of /help."""

    command: str | None = Field(default=None, description="A command to explain.")


def build(name: str, others: Sequence[Command], stop_words: Sequence[str] = ()) -> Registry:
    """Make the registry. name: the name of the bot. others: the commands of the features, in the order of /help."""

    async def say_hello(call: Call, _: Arguments) -> Effect:
        return Say(wording.hello(name))

    async def show_help(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, HelpArguments)
        if arguments.command is None:
            shown = (one for one in registry.commands if one.listed and one.is_for(call.asker))
            # without marks of code, so that platforms make them links to tap
            lines = [f"{command.usage.replace('<', chr(92) + '<')} – {command.help}" for command in shown]
            if call.message.origin.place.kind is ChatKind.CONSOLE:
                lines.append(wording.TERMINAL_KEYS)
            return Say("\n".join(f"- {line}" for line in lines))
        command = registry.get(arguments.command, call.asker)
        if command is None:
            return Say(f"There is no command {arguments.command!r}. /help lists all.")
        also = f" Also: {', '.join(f'/{alias}' for alias in command.aliases)}." if command.aliases else ""
        return Say(f"`{command.usage}` {command.help}{also}")

    listed = "What you can type."
    registry = Registry(
        (
            Command(
                name="help",
                help=listed,
                run=show_help,
                aliases=("commands",),
                arguments=HelpArguments,
                guests="everywhere",
            ),
            Command(name="start", help="Says hello.", run=say_hello, lenient=True, guests="everywhere"),
            *others,
        ),
        stop_words,
    )
    return registry
