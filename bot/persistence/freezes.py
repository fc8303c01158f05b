"""Values about freezes, with which owners stop what the bot does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.persistence.errors import StoreError
from channels.message import Place

# What can be frozen. all: model calls, tools, what turns say, beats and jobs. tools: calls of tools. network: calls of
# tools that reach out of this machine. beats: beats and jobs.
What = Literal["all", "tools", "network", "beats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """Something that an owner has frozen."""

    what: What
    # In milliseconds since the epoch.
    since: int
    # Who has frozen it, and where they said so, for people.
    who: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thawed:
    """What goes on when everything is thawed."""

    freezes: Sequence[Freeze]
    # Turns that were stopped, messages that wait, and deliveries that were held back.
    turns: int = 0
    messages: int = 0
    deliveries: int = 0


class Frozen(StoreError):
    """A freeze holds the next turn of a session, so nothing was claimed.

    untold: the conversations whose people wait and do not know it, by their ids.
    """

    def __init__(self, freeze: Freeze, untold: Sequence[tuple[int, Place]]) -> None:
        super().__init__(f"{freeze.what} is frozen")
        self.freeze, self.untold = freeze, untold
