"""The channels there are: the only list of them. A further one is a folder and a line here."""

from importlib import import_module

from channels.settings import ChannelSection

FOLDERS: dict[str, str | None] = {
    "telegram": "channels.telegram.settings",
    "discord": "channels.discord.settings",
    "slack": "channels.slack.settings",
    "console": "channels.console.settings",
}
"""Each channel's module of settings, which is imported when the configuration is read; None: comes later."""


def sections() -> dict[str, type[ChannelSection]]:
    """The section of each channel."""
    return {name: import_module(module).SECTION for name, module in FOLDERS.items() if module is not None}


def later() -> str:
    """The channels that are named and not there yet."""
    return " ".join(name for name, module in FOLDERS.items() if module is None)
