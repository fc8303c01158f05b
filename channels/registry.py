"""The list of all channels. A further one is a folder and a line here, or comes with an extension."""

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
# The channels of this package; others come with extensions.
OWN = frozenset(FOLDERS)
# Channels that the configuration has and that are not there, since their extension is broken.
ABSENT: set[str] = set()
# What is no channel and can be named like one: callers of the gateway.
HTTP = "http"


def section_of(folder: str) -> type[ChannelSection]:
    """The section of the configuration of the channel in a package."""
    section: type[ChannelSection] = import_module(f"{folder}.settings").SECTION
    return section


def platforms() -> tuple[str, ...]:
    """The names before the ids of people."""
    return (*FOLDERS, *sorted(ABSENT), HTTP)


def sections() -> dict[str, type[ChannelSection]]:
    """The section of the configuration for each channel, by its name."""
    return {name: section_of(folder) for name, folder in FOLDERS.items()}


def build(name: str, account: ChannelSection, times: Times) -> Surface:
    """Make the adapter of an account. name: of the channel. account: its section of the configuration."""
    adapter: Surface = import_module(f"{FOLDERS[name]}.adapter").build(account, times)
    return adapter
