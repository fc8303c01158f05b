"""A cache of the names of people and the names and kinds of conversations, filled in the background.

No event waits for a name, so a person who writes for the first time may have none.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from channels.failures import ApiError
from channels.message import ChatKind, Place
from channels.receiver import string
from channels.slack.api import NEVER, Api

_MOST = 4096
_MOST_WANTED = 256
_KINDS = {"im": ChatKind.DIRECT, "mpim": ChatKind.GROUP, "channel": ChatKind.CHANNEL, "group": ChatKind.CHANNEL}


class Known:
    """What is known of one workspace; bounded."""

    def __init__(self) -> None:
        # The bot's ids as a user and as a bot, and its name; empty until `meet`.
        self.me = self.bot_id = self._called = ""
        # Names of people by id; empty while a name is being requested.
        self._people: dict[str, str] = {}
        # Kind and name of conversations by id; the name may be empty.
        self._rooms: dict[str, tuple[ChatKind, str]] = {}
        self._wanted: asyncio.Queue[str] = asyncio.Queue(_MOST_WANTED)

    def name(self, ident: str) -> str:
        """The name of a person or a conversation; empty while unknown. The name of an unknown person is requested."""
        if ident == self.me:
            return self._called
        if ident in self._rooms:
            return self._rooms[ident][1]
        if ident[:1] in "UW" and ident not in self._people and not self._wanted.full():
            _keep(self._people, ident, "")
            self._wanted.put_nowait(ident)
        return self._people.get(ident, "")

    def kind(self, chat: str, channel_type: str = "") -> ChatKind:
        """The kind of a conversation: by the channel_type of an event, else as cached, else by its id."""
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
        """Cache the kind and name of a conversation."""
        _keep(self._rooms, chat, (kind, name))

    def place(self, chat: str, channel_type: str = "", thread: str = "") -> Place:
        """The place of a conversation or thread; channel_type as of `kind`."""
        return Place(channel="slack", account=self.me, chat=chat, kind=self.kind(chat, channel_type), thread=thread)

    def meet(self, answer: Any) -> None:
        """Learn the bot's ids from the answer of auth.test. Raises Unreadable."""
        called, me = string(answer, "user"), string(answer, "user_id")
        self._called, self.bot_id, self.me = called, str(answer.get("bot_id")), me

    async def ask(self, api: Api, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Request the names of unknown people, until cancelled."""
        while True:
            person = await self._wanted.get()
            try:
                user = (await api.call("users.info", {"user": person}))["user"]
                _keep(self._people, person, next(iter(names_of(user)), ""))
            except ApiError as error:
                if error.trouble not in NEVER:  # so that the name is requested again
                    self._people.pop(person, None)
                await sleep(error.retry_after)


def names_of(user: dict[str, Any]) -> list[str]:
    """The names of a person as users.info returns them; Slack shows the first one."""
    told = {**user, **(user.get("profile") or {})}
    return [told[name] for name in ("display_name", "real_name", "name") if told.get(name)]


def _keep(kept: dict[str, Any], key: str, value: object) -> None:
    kept[key] = value
    if len(kept) > _MOST:
        del kept[next(iter(kept))]
