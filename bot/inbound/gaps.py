"""What is known of conversations of which something may be missing. See `catch_up`."""

from dataclasses import dataclass, field

from channels.base import History
from channels.message import ChatKind, Place, id_order
from channels.sources import Source

Key = tuple[str, str, str, str]


def key_of(place: Place) -> Key:
    """What makes it a conversation of its own."""
    return place.channel, place.account, place.chat, place.thread


@dataclass(eq=False, slots=True)
class Gap:
    """A conversation of which something may be missing.

    newest: its newest message, where the platform has told it. asked: how often something may have been missed since it
    opened. held: something of it waits in the store, for patience milliseconds at the least where it is the first in a
    thread. reading: a task has taken it on. late: nothing waits behind it any longer.
    """

    place: Place
    newest: str = ""
    cursor: str = ""
    asked: int = 0
    held: bool = False
    patience: int = 0
    reading: bool = False
    late: bool = False


@dataclass(eq=False, slots=True)
class Listened:
    """Of a channel with a history. listing: while it is not 0, every conversation counts as having a gap.

    first: when the bot was there for the first time, in milliseconds. spaces: what chats lie in, by their ids. unread:
    of conversations that are not looked at, under which name that is said there, once.
    """

    channel: History
    listing: int = 0
    first: int = 0
    gaps: dict[Key, Gap] = field(default_factory=dict)
    spaces: dict[str, str] = field(default_factory=dict)
    unread: dict[Key, Source] = field(default_factory=dict)

    def gap(self, place: Place) -> Gap:
        """That of a conversation, opened if it is not."""
        return self.gaps.setdefault(key_of(place), Gap(place))


def rank(gap: Gap) -> tuple[bool, tuple[int, str]]:
    """What is read first: direct messages, then what was used last."""
    return gap.place.kind is ChatKind.DIRECT, max(id_order(gap.newest), id_order(gap.cursor))
