"""Names of people and kinds of conversations, as far as they are known: read at once, filled in the background.

Nothing that is accepted waits for a name; who writes for the first time may have none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from channels.failures import ApiError
from channels.message import ChatKind
from channels.slack.api import NEVER, Api

_MOST = 4096
_MOST_WANTED = 256
_KINDS = {"im": ChatKind.DIRECT, "mpim": ChatKind.GROUP, "channel": ChatKind.CHANNEL, "group": ChatKind.CHANNEL}


@dataclass(frozen=True, slots=True)
class Room:
    """A conversation. name: empty where it has none."""

    kind: ChatKind
    name: str = ""


class Known:
    """What is known of one workspace; bounded."""

    def __init__(self) -> None:
        self._people: dict[str, str] = {}  # also, without a name, those who are asked about
        self._rooms: dict[str, Room] = {}
        self._wanted: asyncio.Queue[str] = asyncio.Queue(_MOST_WANTED)

    def name(self, ident: str) -> str:
        """The name of a person or a conversation; empty while it is not known. People are asked about then."""
        room = self._rooms.get(ident)
        if room is not None:
            return room.name
        if ident[:1] in "UW" and ident not in self._people and not self._wanted.full():
            _keep(self._people, ident, "")
            self._wanted.put_nowait(ident)
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

    async def ask(self, api: Api, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Ask for the name of each person who is wanted, for ever."""
        while True:
            person = await self._wanted.get()
            try:
                user = (await api.call("users.info", {"user": person}))["user"]
                _keep(self._people, person, next(iter(names_of(user)), ""))
            except ApiError as error:
                if error.trouble not in NEVER:  # else nobody asks again
                    self._people.pop(person, None)
                await sleep(error.retry_after)


def names_of(user: dict[str, Any]) -> list[str]:
    """What somebody is called, as users.info tells it; the one that Slack shows is the first."""
    told = {**user, **(user.get("profile") or {})}
    return [told[name] for name in ("display_name", "real_name", "name") if told.get(name)]


def _keep(kept: dict[str, Any], key: str, value: object) -> None:
    kept[key] = value
    if len(kept) > _MOST:
        del kept[next(iter(kept))]
