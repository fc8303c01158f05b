"""The channels there are: the only list of them. A further one is a folder and a line here."""

from importlib import import_module

from channels.settings import ChannelSection

# Each channel's module of settings, which is imported when the configuration is read.
FOLDERS = {
    "telegram": "channels.telegram.settings",
    "discord": "channels.discord.settings",
    "slack": "channels.slack.settings",
    "console": "channels.console.settings",
}


def sections() -> dict[str, type[ChannelSection]]:
    """The section of each channel."""
    return {name: import_module(module).SECTION for name, module in FOLDERS.items()}
