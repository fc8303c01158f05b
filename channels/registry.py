"""The channels there are: the only list of them. A further one is a folder and a line here."""

from importlib import import_module

from channels.base import Surface, Times
from channels.settings import ChannelSection

# The folder of each channel. Its `settings` are imported when the configuration is read, its `adapter`, and with that
# the platform's library, when an account is built.
FOLDERS = {
    "telegram": "channels.telegram",
    "discord": "channels.discord",
    "slack": "channels.slack",
    "console": "channels.console",
}


def sections() -> dict[str, type[ChannelSection]]:
    """The section of each channel in the configuration."""
    found: dict[str, type[ChannelSection]] = {}
    for name, folder in FOLDERS.items():
        found[name] = import_module(f"{folder}.settings").SECTION
    return found


def build(name: str, account: ChannelSection, times: Times) -> Surface:
    """The adapter of an account. name: of its channel. account: what the configuration says of it."""
    adapter: Surface = import_module(f"{FOLDERS[name]}.adapter").build(account, times)
    return adapter
