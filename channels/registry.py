"""The list of all channels. A further one is a folder and a line here."""

from importlib import import_module

from channels.base import Surface, Times
from channels.settings import ChannelSection

# The package of each channel. Its `settings` are imported when the configuration is read; its `adapter`, and with it
# the platform's library, when an account is built.
FOLDERS = {
    "telegram": "channels.telegram",
    "discord": "channels.discord",
    "slack": "channels.slack",
    "console": "channels.console",
}


def sections() -> dict[str, type[ChannelSection]]:
    """The section of the configuration for each channel, by its name."""
    return {name: import_module(f"{folder}.settings").SECTION for name, folder in FOLDERS.items()}


def build(name: str, account: ChannelSection, times: Times) -> Surface:
    """Make the adapter of an account. name: of the channel. account: its section of the configuration."""
    adapter: Surface = import_module(f"{FOLDERS[name]}.adapter").build(account, times)
    return adapter
