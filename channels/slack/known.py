"""The bot itself, names of people and kinds of conversations, as far as known: read at once, filled in the background.

Nothing that is accepted waits for a name; who writes for the first time may have none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from channels.failures import ApiError
from channels.fields import string
from channels.message import ChatKind, Place
from channels.slack.api import NEVER, Api

_MOST = 4096
_MOST_WANTED = 256
_KINDS = {"im": ChatKind.DIRECT, "mpim": ChatKind.GROUP, "channel": ChatKind.CHANNEL, "group": ChatKind.CHANNEL}


class Known:
    """What is known of one workspace; bounded. me, bot_id: the bot's ids as a user and as a bot; empty until `meet`."""

    def __init__(self) -> None:
        self.me = self.bot_id = self._called = ""
        self._people: dict[str, str] = {}  # also, without a name, those who are asked about
        self._rooms: dict[str, tuple[ChatKind, str]] = {}  # the name is empty where there is none
        self._wanted: asyncio.Queue[str] = asyncio.Queue(_MOST_WANTED)

    def name(self, ident: str) -> str:
        """The name of a person or a conversation; empty while it is not known. People are asked about then."""
        if ident == self.me:
            return self._called
        if ident in self._rooms:
            return self._rooms[ident][1]
        if ident[:1] in "UW" and ident not in self._people and not self._wanted.full():
            _keep(self._people, ident, "")
            self._wanted.put_nowait(ident)
        return self._people.get(ident, "")

    def kind(self, chat: str, channel_type: str = "") -> ChatKind:
        """What sort of conversation it is, by what an event says of it, by what is known, or by its id."""
        told = _KINDS.get(channel_type)
        if told is None:
            usual = ChatKind.DIRECT if chat.startswith("D") else ChatKind.CHANNEL
            return self._rooms[chat][0] if chat in self._rooms else usual
        if chat not in self._rooms:
            self.keep_room(chat, told)
        return told

    def is_in(self, chat: str) -> bool:
        """Whether the bot is known to be in a conversation."""
        return chat in self._rooms

    def keep_room(self, chat: str, kind: ChatKind, name: str = "") -> None:
        """Remember a conversation."""
        _keep(self._rooms, chat, (kind, name))

    def place(self, chat: str, channel_type: str = "", thread: str = "") -> Place:
        """The place of a conversation or thread; channel_type as of `kind`."""
        return Place(channel="slack", account=self.me, chat=chat, kind=self.kind(chat, channel_type), thread=thread)

    def meet(self, answer: Any) -> None:
        """Learn who the bot is, by the answer of auth.test. Raises Unreadable."""
        called, me = string(answer, "user"), string(answer, "user_id")
        self._called, self.bot_id, self.me = called, str(answer.get("bot_id")), me

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
