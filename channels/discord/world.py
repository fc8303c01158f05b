"""Where things are on Discord: channels, threads and the bot's own roles, as the gateway tells them."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from channels.base import Reached
from channels.failures import ApiError, Trouble
from channels.message import ChatKind, Origin, Place
from channels.receiver import Unreadable, an_object, objects

T = TypeVar("T")
UNKNOWN_CHANNEL, UNKNOWN_MESSAGE = 10003, 10008
THREADS = (10, 11, 12)
_RECENT = 2000
# Types of channels in which messages stand; in a forum they stand in its threads.
_READABLE = (0, 2, 5, 13, *THREADS)


@dataclass(frozen=True, slots=True)
class Spot:
    """A channel or thread of a server. parent: of a thread, the channel it belongs to; else empty."""

    guild: str
    name: str
    parent: str = ""


@dataclass(slots=True)
class World:
    """What one bot knows. me: its user id. roles: names of roles by id. mine: the roles that are the bot itself.

    orders: of each command the names of its options, in their order. recent: where the last messages came from, by id.
    content: it may read what does not name it.
    """

    me: str = ""
    content: bool = True
    spots: dict[str, Spot] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    mine: set[str] = field(default_factory=set)
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    recent: dict[str, Origin] = field(default_factory=dict)

    def learn(self, event: str, data: dict[str, Any]) -> None:
        """Take in what an event says about channels, threads and roles. Raises Unreadable."""
        match event:
            case "GUILD_CREATE" | "THREAD_LIST_SYNC":
                guild = identity(data, "id" if event == "GUILD_CREATE" else "guild_id")
                for role in objects(data, "roles"):
                    self._learn_role(role)
                for channel in (*objects(data, "channels"), *objects(data, "threads")):
                    with suppress(Unreadable):  # one of many; it is then no place that is known
                        self._learn_spot(channel, guild)
            case "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" if "guild_id" in data:
                self._learn_spot(data, identity(data, "guild_id"))
            case "CHANNEL_DELETE" | "THREAD_DELETE":
                self.spots.pop(identity(data, "id"), None)
            case "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE":
                self._learn_role(an_object(data.get("role"), "role"))

    def remember(self, origin: Origin) -> None:
        """A message was said: Discord does not tell whose it was when it is deleted."""
        self.recent[origin.message_id] = origin
        if len(self.recent) > _RECENT:
            del self.recent[next(iter(self.recent))]

    def place(self, channel: str, guild: str) -> Place:
        """The place of a channel or thread. guild: empty for direct messages."""
        parent = self.spots[channel].parent if channel in self.spots else ""
        kind = ChatKind.CHANNEL if guild else ChatKind.DIRECT
        chat, thread = (parent, channel) if parent else (channel, "")
        return Place(channel="discord", account=self.me, chat=chat, kind=kind, thread=thread)

    def names(self, sign: str) -> dict[str, str]:
        """Ids by #channel or @person, the people of the last messages; sign: only of these. Where several have a name,
        the id stands behind it, so that nobody is taken for another."""
        known = {number: f"#{spot.name}" for number, spot in self.spots.items()}
        known |= {one.sender: f"@{one.sender_name}" for one in self.recent.values() if not one.by_bot}
        known = {number: name for number, name in known.items() if sign not in ("#", "@") or name[0] == sign}
        several = Counter(name[1:].casefold() for name in known.values())
        return {n if several[n[1:].casefold()] == 1 else f"{n} ({number})": number for number, n in known.items()}

    def check(self, place: Place) -> None:
        """A thread must be one of its channel, so that it is no way into another conversation. Raises ApiError."""
        spot = self.spots.get(place.thread)
        if place.thread and (place.kind is ChatKind.DIRECT or (spot is not None and spot.parent != place.chat)):
            raise ApiError(Trouble.REFUSED, f"this conversation has no thread {place.thread}")

    def reached(self, guild: dict[str, Any]) -> Iterator[Reached]:
        """The conversations of a GUILD_CREATE in which something was ever said."""
        space = identity(guild, "id")
        for channel in (*objects(guild, "channels"), *objects(guild, "threads")):
            newest = channel.get("last_message_id")
            if channel.get("type") in _READABLE and isinstance(newest, str) and channel.get("id") in self.spots:
                yield Reached(self.place(identity(channel, "id"), space), newest, space)

    def _learn_spot(self, channel: dict[str, Any], guild: str) -> None:
        parent = identity(channel, "parent_id") if channel.get("type") in THREADS else ""
        self.spots[identity(channel, "id")] = Spot(guild, str(channel.get("name", "")), parent)

    def _learn_role(self, role: dict[str, Any]) -> None:
        number = identity(role, "id")
        self.roles[number] = str(role.get("name", ""))
        tags = role.get("tags")
        if isinstance(tags, dict) and tags.get("bot_id") == self.me:
            self.mine.add(number)


def channel_of(place: Place) -> str:
    """The id of the channel or thread that a place is."""
    return place.thread or place.chat


async def where_it_stands(place: Place, target: str, call: Callable[[str], Awaitable[T]]) -> T:
    """What a call gives for the channel in which a message stands. A thread may not be opened, and the message that one
    was opened on stands in the channel, that of a forum post in the post; both have the id of the thread."""
    try:
        return await call(channel_of(place))
    except ApiError as error:
        elsewhere = error.code == UNKNOWN_CHANNEL or (error.code == UNKNOWN_MESSAGE and target == place.thread)
        if not place.thread or not elsewhere:
            raise
        return await call(place.chat)


def identity(fields: dict[str, Any], name: str) -> str:
    """An id. Raises Unreadable."""
    value = fields.get(name)
    if not isinstance(value, str) or not value.isascii() or not value.isdigit():
        raise Unreadable(f"{name} is no id")
    return value
