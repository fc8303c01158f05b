"""Names of people and kinds of conversations, as far as they are known: read at once, filled in the background.

Nothing that is accepted waits for a name; who writes for the first time may have none.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from channels.message import ChatKind

log = logging.getLogger(__name__)

_MOST = 4096
_MOST_WANTED = 256
_KINDS = {"im": ChatKind.DIRECT, "mpim": ChatKind.GROUP, "channel": ChatKind.CHANNEL, "group": ChatKind.CHANNEL}


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation. name: empty where it has none."""

    kind: ChatKind
    name: str = ""


class Known:
    """What is known of one workspace; bounded. `wanted` says that there is somebody to ask about."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self._people: OrderedDict[str, str] = OrderedDict()
        self._rooms: OrderedDict[str, Room] = OrderedDict()
        self._unknown: OrderedDict[str, None] = OrderedDict()

    def name(self, ident: str) -> str:
        """The name of a person or a conversation; empty while it is not known. People are asked about then."""
        room = self._rooms.get(ident)
        if room is not None:
            return room.name
        if ident[:1] in "UW" and ident not in self._people and len(self._unknown) < _MOST_WANTED:
            self._unknown[ident] = None
            self.wanted.set()
        return self._people.get(ident, "")

    def kind(self, chat: str, channel_type: str = "") -> ChatKind:
        """What sort of conversation it is, by what an event says of it, by what is known, or by its id."""
        told = _KINDS.get(channel_type)
        if told is None:
            usual = ChatKind.DIRECT if chat.startswith("D") else ChatKind.CHANNEL
            return self._rooms[chat].kind if chat in self._rooms else usual
        if chat not in self._rooms:
            self.keep_room(chat, Room(told))
        return told

    def keep_room(self, chat: str, room: Room) -> None:
        """Remember a conversation."""
        _keep(self._rooms, chat, room)

    async def ask(self, about: Callable[[str], Coroutine[Any, Any, str | None]]) -> None:
        """Ask for the name of each person who is wanted, for ever. about: None when they may be asked about again."""
        while True:
            await self.wanted.wait()
            self.wanted.clear()
            while self._unknown:
                person, _ = self._unknown.popitem(last=False)
                name = await about(person)
                if name is not None:
                    _keep(self._people, person, name)


def _keep(kept: OrderedDict[str, Any], key: str, value: object) -> None:
    kept[key] = value
    while len(kept) > _MOST:
        kept.popitem(last=False)
