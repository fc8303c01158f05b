"""The state behind the Discord stand-in and the places in it: guilds, channels, threads, roles, who may do what.

discord_people adds what people do, the REST methods read and change the same state, discord_gateway tells of it.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.standins import discord_objects as objects
from tests.standins.discord_ledger import MISSING_ACCESS, MISSING_PERMISSIONS, Json, Ledger, Refusal, unknown
from tests.standins.discord_objects import ALL, HARK, THREADS, Intent, Permission, Person, Snowflakes

Place = Json | str  # a guild, channel or message, or its id


def id_of(place: Place | Person) -> str:
    if isinstance(place, Person):
        return str(place.id)
    return place if isinstance(place, str) else str(place["id"])


class World:
    """Everything that Discord would know. `clock` is in seconds and only measures, `wall` is Unix time.

    `granted` are the privileged intents that are switched on in the portal.
    """

    def __init__(
        self,
        *,
        token: str = objects.TOKEN,
        bot: Person = HARK,
        granted: Intent = Intent.MESSAGE_CONTENT,
        verified: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.token = token
        self.bot = bot
        self.granted = granted
        self.verified = verified
        self.clock = clock
        self.wall = wall
        self.ledger = Ledger(token=token)
        self.snowflakes = Snowflakes(wall)
        self.people: dict[int, Person] = {bot.id: bot}
        self.guilds: dict[str, Json] = {}
        self.members: dict[str, dict[int, Json]] = {}
        self.channels: dict[str, Json] = {}
        self.thread_members: dict[str, dict[int, Json]] = {}
        self.stored: dict[str, dict[str, Json]] = {}
        self.reactions: dict[tuple[str, str], list[int]] = {}
        self.pins: dict[str, dict[str, str]] = {}
        self.blocked: set[int] = set()
        self.nonces: dict[tuple[str, str], tuple[str, float]] = {}

    def emit(self, event: str, data: Json, *, channel_id: str | None = None) -> None:
        """Tell every gateway session that may know; the gateway does it."""
        raise NotImplementedError

    # Places

    def meet(self, person: Person) -> Person:
        return self.people.setdefault(person.id, person)

    def add_guild(self, name: str = "Home", *members: Person, owner: Person = objects.ALICE, bot: bool = True) -> Json:
        """A guild with its owner, these members and, unless told otherwise, the bot; returns the guild."""
        built = objects.guild(self.snowflakes.next(), name, owner)
        self.guilds[built["id"]] = built
        self.members[built["id"]] = {}
        for person in (owner, *members):
            self._enrol(built, person, [])
        if bot:
            self._enrol(built, self.bot, [])
            self.emit("GUILD_CREATE", {"id": built["id"]})
        return built

    def remove_guild(self, guild: Place) -> None:
        """The bot is removed from a guild."""
        self.members[id_of(guild)].pop(self.bot.id, None)
        self.emit("GUILD_DELETE", {"id": id_of(guild)})

    def outage(self, guild: Place, *, over: bool = False) -> None:
        """A guild is away for a while, or there again; what stands in it stays."""
        if over:
            self.emit("GUILD_CREATE", {"id": id_of(guild)})
        else:
            self.emit("GUILD_DELETE", {"id": id_of(guild), "unavailable": True})

    def add_member(self, guild: Place, person: Person, *, roles: Iterable[Json] = ()) -> Json:
        """Somebody joins (or gets other roles); returns the member. With the bot as the person it joins itself."""
        known = person.id in self.members[id_of(guild)]
        built = self._enrol(self.guilds[id_of(guild)], person, [one["id"] for one in roles])
        if person == self.bot and not known:
            self.emit("GUILD_CREATE", {"id": id_of(guild)})
        else:
            self.emit("GUILD_MEMBER_UPDATE" if known else "GUILD_MEMBER_ADD", built | {"guild_id": id_of(guild)})
        return built

    def _enrol(self, guild: Json, person: Person, roles: list[str]) -> Json:
        built = objects.member(self.meet(person), objects.iso(self.wall()), roles)
        self.members[guild["id"]][person.id] = built
        return built

    def add_role(self, guild: Place, name: str, permissions: int = 0, *, mentionable: bool = False) -> Json:
        roles: list[Json] = self.guilds[id_of(guild)]["roles"]
        built = objects.role(self.snowflakes.next(), name, permissions, mentionable=mentionable, position=len(roles))
        roles.append(built)
        self.emit("GUILD_ROLE_CREATE", {"guild_id": id_of(guild), "role": built})
        return built

    def add_channel(self, guild: Place, name: str = "general", *, kind: int = objects.TEXT, **more: Any) -> Json:
        """A channel of a guild; `more` is put into it as it is. Returns the channel."""
        position = len(self.channels_of(guild))
        built = objects.guild_channel(self.snowflakes.next(), id_of(guild), name, kind, position) | more
        self._place(built)
        self.emit("CHANNEL_CREATE", built)
        return built

    def change_channel(self, channel: Place, **changes: Any) -> Json:
        """Somebody changes a channel or a thread; returns it."""
        known = self.channels[id_of(channel)]
        known.update(changes)
        self.emit("THREAD_UPDATE" if known["type"] in THREADS else "CHANNEL_UPDATE", known)
        return known

    def delete_channel(self, channel: Place) -> None:
        """A channel or a thread is gone, with all that stood there."""
        known = self.channels.pop(id_of(channel))
        self.stored.pop(known["id"])
        if known["type"] in THREADS:
            gone = {name: known[name] for name in ("id", "guild_id", "parent_id", "type")}
            self.emit("THREAD_DELETE", gone)
        else:
            self.emit("CHANNEL_DELETE", known)

    def make_thread(
        self, parent: Json, name: str, kind: int, owner: Person, *, thread_id: str | None = None, minutes: int = 1440
    ) -> Json:
        """A thread that its owner has joined. Nothing is said in it yet."""
        built = objects.thread(thread_id or self.snowflakes.next(), parent, name, kind, owner, objects.iso(self.wall()))
        built["thread_metadata"]["auto_archive_duration"] = minutes
        self._place(built)
        self.join_thread(built, owner)
        shown = self.show_channel(built) | {"newly_created": True}
        self.emit("THREAD_CREATE", shown, channel_id=built["id"])
        return built

    def join_thread(self, thread: Json, person: Person) -> None:
        joined = {"id": thread["id"], "user_id": str(person.id), "join_timestamp": objects.iso(self.wall()), "flags": 0}
        self.thread_members.setdefault(thread["id"], {}).setdefault(person.id, joined)
        thread["member_count"] = min(50, len(self.thread_members[thread["id"]]))

    def archive(self, thread: Place, *, archived: bool = True, locked: bool = False) -> Json:
        """Somebody closes a thread, or opens it again; returns it."""
        known = self.channels[id_of(thread)]
        changes = {"archived": archived, "locked": locked, "archive_timestamp": objects.iso(self.wall())}
        return self.change_channel(thread, thread_metadata=known["thread_metadata"] | changes)

    def open_dm(self, person: Person) -> Json:
        """The direct messages of a person with the bot; made when first asked for, and no event tells of it."""
        for channel in self.channels.values():
            if channel["type"] == objects.DM and channel["recipients"][0]["id"] == str(person.id):
                return channel
        built: Json = {
            "id": self.snowflakes.next(),
            "type": objects.DM,
            "last_message_id": None,
            "recipients": [objects.user(self.meet(person))],
            "flags": 0,
        }
        self._place(built)
        return built

    def _place(self, channel: Json) -> None:
        self.channels[channel["id"]] = channel
        self.stored[channel["id"]] = {}

    def block(self, person: Person, *, blocked: bool = True) -> None:
        """A person blocks the bot, or no longer does."""
        (self.blocked.add if blocked else self.blocked.discard)(person.id)

    # What is where

    def channels_of(self, guild: Place) -> list[Json]:
        """Channels of a guild without its threads."""
        return [one for one in self.channels.values() if one.get("guild_id") == id_of(guild) and not is_thread(one)]

    def threads_of(self, guild: Place, *, archived: bool = False) -> list[Json]:
        """Threads of a guild that the bot can see, the newest first."""
        found = [
            one
            for one in self.channels.values()
            if is_thread(one)
            and one["guild_id"] == id_of(guild)
            and one["thread_metadata"]["archived"] == archived
            and self.sees(self.bot, one)
        ]
        return sorted(found, key=lambda one: int(one["id"]), reverse=True)

    def show_channel(self, channel: Json) -> Json:
        """A channel as the API gives it out; a thread with the bot's membership."""
        shown = dict(channel)
        joined = self.thread_members.get(channel["id"], {}).get(self.bot.id)
        if is_thread(channel) and joined:
            shown["member"] = joined
        return shown

    def guild_of(self, channel: Json) -> Json | None:
        return self.guilds.get(channel.get("guild_id", ""))

    def member_of(self, channel: Json, person_id: int) -> Json | None:
        return self.members.get(channel.get("guild_id", ""), {}).get(person_id)

    def shared_guild(self, person_id: int) -> bool:
        """Whether a person and the bot are in one guild."""
        return any({person_id, self.bot.id} <= members.keys() for members in self.members.values())

    # Permissions

    def overwrite(self, channel: Place, target: Person | Json, *, allow: int = 0, deny: int = 0) -> None:
        """Set what a person or a role may do in a channel; the guild itself as the target is @everyone."""
        kind = 1 if isinstance(target, Person) else 0
        built = {"id": id_of(target), "type": kind, "allow": str(int(allow)), "deny": str(int(deny))}
        known = self.channels[id_of(channel)]
        others = [one for one in known["permission_overwrites"] if one["id"] != built["id"]]
        self.change_channel(known, permission_overwrites=[*others, built])

    def permissions(self, person: Person, channel: Json) -> Permission:
        """What somebody may do in a channel, by the documented algorithm."""
        guild = self.guild_of(channel)
        if guild is None:
            is_party = person == self.bot or channel["recipients"][0]["id"] == str(person.id)
            return ALL if is_party else Permission(0)
        member = self.members[guild["id"]].get(person.id)
        if member is None:
            return Permission(0)
        if guild["owner_id"] == str(person.id):
            return ALL
        held = [one for one in guild["roles"] if one["id"] in (guild["id"], *member["roles"])]
        allowed = 0
        for one in held:
            allowed |= int(one["permissions"])
        if allowed & Permission.ADMINISTRATOR:
            return ALL
        for group in self._overwrites(channel, guild["id"], member["roles"], str(person.id)):
            for one in group:
                allowed &= ~int(one["deny"])
            for one in group:
                allowed |= int(one["allow"])
        return Permission(allowed) if allowed & Permission.VIEW_CHANNEL else Permission(0)

    def _overwrites(self, channel: Json, everyone: str, roles: list[str], person: str) -> list[list[Json]]:
        """In the order in which they count: @everyone, roles, member. A thread has those of its parent."""
        source = self.channels.get(channel["parent_id"], {}) if is_thread(channel) else channel
        given: list[Json] = source.get("permission_overwrites", [])
        return [[one for one in given if one["id"] in ids] for ids in ([everyone], roles, [person])]

    def sees(self, person: Person, channel: Json) -> bool:
        """Whether somebody sees a channel; a private thread only its members and moderators see."""
        allowed = self.permissions(person, channel)
        if channel["type"] == objects.PRIVATE_THREAD and not allowed & Permission.MANAGE_THREADS:
            return person.id in self.thread_members.get(channel["id"], {})
        return bool(allowed & Permission.VIEW_CHANNEL)

    # What the REST methods ask first

    def channel(self, channel_id: str) -> Json:
        """A channel that the bot sees: 10003 when there is none, 50001 when it is hidden."""
        known = self.channels.get(channel_id)
        if known is None:
            raise unknown("Channel")
        if not self.sees(self.bot, known):
            raise Refusal(*MISSING_ACCESS)
        return known

    def guild(self, guild_id: str) -> Json:
        if guild_id not in self.guilds or self.bot.id not in self.members[guild_id]:
            raise unknown("Guild")
        return self.guilds[guild_id]

    def message(self, channel_id: str, message_id: str) -> Json:
        """A message in a channel that the bot sees."""
        known = self.stored[self.channel(channel_id)["id"]].get(message_id)
        if known is None:
            raise unknown("Message")
        return known

    def demand(self, channel: Json, *needed: Permission) -> None:
        """50013 unless the bot has each permission."""
        has = self.permissions(self.bot, channel)
        for one in needed:
            if not has & one:
                raise Refusal(*MISSING_PERMISSIONS)


def is_thread(channel: Json) -> bool:
    return channel["type"] in THREADS
