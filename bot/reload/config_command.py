"""The command /config: shows what is configured, and changes it in the file."""

import asyncio
import re
from typing import Literal

from pydantic import Field

from bot.commands.registry import Arguments, Call, Command, Effect, Say
from bot.config.errors import ConfigError, dotted
from bot.config.explain import is_secret
from bot.config.file import ConfigFile
from bot.config.shown import differing, value_at
from bot.reload.reload import Reload

# What stands for something else, which whoever reads the chat could have shown to them or run.
_ELSEWHERE = re.compile(r"\$\{|\b(?:file|command):")
_FENCE = "```"
_NAMES = re.compile(r"(?<![\w-])([\w-]++)[\"']?\s*:")
_NOT_SAID = (
    "Secrets, and values that stand elsewhere (file:, command:, ${{…}}), are not set in a chat, which keeps what is "
    "written: change {} in the file."
)


class ConfigArguments(Arguments):
    """The arguments of /config."""

    action: Literal["get", "set"] | None = Field(
        default=None, description="get or set; without it I list what is no default."
    )
    key: str = Field(default="", description="The key, as `queue.debounce_ms`.")
    value: str = Field(default="", description="The value, as in the file.")


def build(reload: Reload) -> Command:
    """Make the command. reload: knows the configuration, and takes over what is changed."""

    async def config(call: Call, arguments: Arguments) -> Effect:
        assert isinstance(arguments, ConfigArguments)
        try:
            if arguments.action == "set":
                return await _set(reload, arguments.key, arguments.value)
            if arguments.action == "get":
                return Say(_block(reload, value_at(reload.config, arguments.key or None)))
        except ConfigError as error:
            told = "\n".join(f"- {dotted(one.key)}: {one.text}" for one in error.problems)
            return Say(reload.known.redactor.clean(f"Nothing was changed:\n{told}"), mistake=True)
        listed = "\n".join(differing(reload.config)) or "Everything is as by default."
        waits = ", ".join(f"`{one}`" for one in reload.waiting)
        return Say(_block(reload, listed) + (f"\n\nNeed a restart: {waits}." if waits else ""))

    return Command(
        name="config", help="What is configured, and its change.", run=config, arguments=ConfigArguments, decides=True
    )


async def _set(reload: Reload, key: str, value: str) -> Effect:
    """Change a key in the file, and say whether that took effect. Raises ConfigError where it would not load."""
    if reload.file is None:
        return Say("Only a service that `hark run` has started changes its configuration.", mistake=True)
    if not key or not value:
        return Say("Usage: /config set KEY VALUE", mistake=True)
    hidden = is_secret(tuple(key.split("."))) or any(is_secret((name,)) for name in _NAMES.findall(value))
    if hidden or _ELSEWHERE.search(value):
        return Say(_NOT_SAID.format(f"`{key}`"), mistake=True)
    return await _changed(reload, reload.file, key, value)


async def _changed(reload: Reload, file: ConfigFile, key: str, value: str) -> Effect:
    try:
        name = dotted(await asyncio.to_thread(file.change, key, value))
    except OSError as error:
        return Say(f"The file cannot be written: {error.strerror or error}.", mistake=True)
    done = await reload.again()
    if done.mistakes:
        return Say(reload.known.redactor.clean("\n- ".join(("It is written, but not used:", *done.mistakes))))
    if any(_is_about(name, one) for one in done.waiting):
        return await reload.restart.asked(f"`{name}` is written, and needs a restart.")
    took = any(_is_about(name, one) for one in done.applied)
    return Say(f"`{name}` took effect." if took else f"`{name}` was that already.")


def _is_about(name: str, key: str) -> bool:
    """Whether one of two keys is the other, or above it."""
    return f"{key}.".startswith(f"{name}.") or f"{name}.".startswith(f"{key}.")


def _block(reload: Reload, text: str) -> str:
    shown = reload.known.redactor.clean(text).replace(_FENCE, "'''")
    return f"{_FENCE}\n{shown}\n{_FENCE}"
