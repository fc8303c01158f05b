"""The command /send: whether what is said in a session is sent, whatever `send_policy` says."""

from typing import Literal

from pydantic import Field

from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.runs.settings_commands import ChangeSetting
from bot.store.store import Store


class SendArguments(Arguments):
    """The arguments of /send."""

    mode: Literal["on", "off", "default"] | None = Field(
        default=None, description="on, off, or default: as in the configuration; without it I say what holds, and why."
    )


_SET = {
    "on": "What I say in this conversation is sent, whatever `send_policy` says.",
    "off": "From now on nothing of what I say in this conversation is sent, here or elsewhere. Commands are answered.",
    "default": "Whether what I say in this conversation is sent follows `send_policy` again.",
}


def build(store: Store) -> Command:
    """Make the command."""

    async def send(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, SendArguments)
        if mode := arguments.mode:
            return ChangeSetting(store, ("send", "" if mode == "default" else mode), _SET[mode])
        setting = (await store.settings.of(call.session_key)).send
        rule = await store.settings.denied_by(call.session_key, call.message.origin.place)
        matched = ", ".join(f"{name}: {value}" for name, value in (rule or {}).items()) or "whatever it is"
        policy = f"A rule of `send_policy` denies it ({matched})" if rule is not None else "`send_policy` allows it"
        if setting:
            return Say(f"Sending is {setting} in this conversation, because an owner said `/send {setting}`. {policy}.")
        sends = "is" if rule is None else "is not"
        return Say(f"What I say in this conversation {sends} sent. {policy}. `/send on` or `/send off` overrides it.")

    help_ = "Whether what I say in this conversation is sent."
    return Command(name="send", help=help_, run=send, arguments=SendArguments)
