"""Reading what is kept: lines, views and events as one thing."""

from bot.store.entries import Entries
from bot.store.events import Events
from bot.store.views import Views


class Reads(Entries, Views, Events):
    """Queries without side effects."""
