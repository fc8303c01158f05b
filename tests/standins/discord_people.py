"""What people, other bots and webhooks do on the Discord stand-in, and how messages are stored and shown."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.standins import discord_objects as objects
from tests.standins.discord_files import File, Files
from tests.standins.discord_ledger import NOBODY, Json, Pings
from tests.standins.discord_objects import ALICE, CODE, EVERYONE, ROLE_MENTION, USER_MENTION, Permission, Person
from tests.standins.discord_world import Place, World, id_of, is_thread

WEBHOOK_NAME = "deploy hook"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a message may ping: kinds that are read from its text, and single users and roles."""

    parse: frozenset[str] = frozenset({"users", "roles", "everyone"})
    replied_user: bool = True


PING_ALL = Allowed()


@dataclass(slots=True)
class Draft:
    """A message before it stands in a channel; `more` is put into it as it is."""

    author: Json
    text: str = ""
    reply_to: Json | None = None
    allowed: Allowed = PING_ALL
    files: Iterable[File] = ()
    more: Json = field(default_factory=dict)
    nonce: str | int | None = None


class People(World):
    """The world with its people. All methods return what was made, as it stands in the channel."""

    def __init__(self, **world: Any) -> None:
        super().__init__(**world)
        self.files = Files(self.wall)

    # Saying

    def say(
        self,
        channel: Place,
        person: Person = ALICE,
        text: str = "",
        *,
        reply_to: Place | None = None,
        ping: bool = True,
        files: Iterable[File] = (),
        **more: Any,
    ) -> Json:
        """Somebody writes; `more` (embeds, poll, sticker_items, flags, type …) is put into the message as it is.

        A reply pings its author unless `ping` is false. ValueError when a person could not write this there.
        """
        place = self.channels[id_of(channel)]
        speak = Permission.SEND_MESSAGES_IN_THREADS if is_thread(place) else Permission.SEND_MESSAGES
        if not self.permissions(self.meet(person), place) & speak:
            raise ValueError(f"{person.username} may not write in {place.get('name', 'these direct messages')}")
        if len(text) > 4000:
            raise ValueError("a person's client allows 2000 characters, with Nitro 4000")
        replied = self.stored[place["id"]][id_of(reply_to)] if reply_to is not None else None
        draft = Draft(objects.user(person), text, replied, Allowed(replied_user=ping), files, more)
        return self.post(place, draft, by=person)

    def dm(self, person: Person = ALICE, text: str = "", **more: Any) -> Json:
        """A person writes to the bot directly."""
        return self.say(self.open_dm(person), person, text, **more)

    def webhook_says(self, channel: Place, text: str, *, name: str = WEBHOOK_NAME, **more: Any) -> Json:
        """A webhook of a channel posts."""
        number = "223704706495545344"
        author = {"id": number, "username": name, "avatar": None, "discriminator": "0000", "bot": True}
        place = self.channels[id_of(channel)]
        return self.post(place, Draft(author | {"global_name": None}, text, more={"webhook_id": number} | more))

    def post(self, place: Json, draft: Draft, *, by: Person | None = None) -> Json:
        """Put a message into a channel and tell of it."""
        built = objects.message(self.snowflakes.next(), place["id"], draft.author, draft.text)
        if draft.reply_to is not None:
            built["type"] = objects.REPLY
            reference = {"type": 0, "channel_id": place["id"], "message_id": draft.reply_to["id"]}
            built["message_reference"] = reference | ({"guild_id": place["guild_id"]} if "guild_id" in place else {})
        self.read_mentions(built, place, draft.allowed, by)
        for one in draft.files:
            built["attachments"].append(self.files.keep(one, place["id"], self.snowflakes.next()))
        built |= draft.more
        self.stored[place["id"]][built["id"]] = built
        place["last_message_id"] = built["id"]
        if is_thread(place):
            self._into_thread(place, built, by)
        mine = built["author"]["id"] == str(self.bot.id)
        self.ledger.timeline.append((place["id"], "out" if mine else "in"))
        nonce = {} if draft.nonce is None else {"nonce": draft.nonce}
        self.emit("MESSAGE_CREATE", built | nonce, channel_id=place["id"])
        return built

    def _into_thread(self, place: Json, built: Json, by: Person | None) -> None:
        """Who writes in a thread joins it and opens it again; the opening post does not count."""
        if place["thread_metadata"]["archived"]:
            self.archive(place, archived=False)
        if by is not None:
            self.join_thread(place, by)
        if built["id"] != place["id"]:
            place["message_count"] += 1
            place["total_message_sent"] += 1

    # Mentions

    def pings(self, place: Json, text: str, allowed: Allowed, by: Person | None, replied: Json | None = None) -> Pings:
        """Who would be notified. Mentions in code are none; by nobody in particular means a webhook."""
        text = CODE.sub("", text)
        loud = by is None or bool(self.permissions(by, place) & Permission.MENTION_EVERYONE)
        guild = self.guild_of(place)
        known = self.members[guild["id"]] if guild else {int(one["id"]) for one in place["recipients"]} | {self.bot.id}
        users = {int(one) for one in USER_MENTION.findall(text) if "users" in allowed.parse and int(one) in known}
        if replied is not None and allowed.replied_user and int(replied["author"]["id"]) in self.people:
            users.add(int(replied["author"]["id"]))
        roles = {
            int(one["id"])
            for one in (guild["roles"] if guild else ())
            if one["id"] in ROLE_MENTION.findall(text) and "roles" in allowed.parse and (one["mentionable"] or loud)
        }
        everyone = bool(guild and loud and "everyone" in allowed.parse and EVERYONE.search(text))
        return Pings(frozenset(users), frozenset(roles), everyone)

    def read_mentions(self, built: Json, place: Json, allowed: Allowed, by: Person | None) -> None:
        """Set the fields of a message that its text and the message it replies to bring about."""
        reference = built.get("message_reference")
        replied = self.stored[place["id"]].get(reference["message_id"]) if reference else None
        found = self.pings(place, built["content"], allowed, by, replied)
        built["mentions"] = [objects.user(self.people[one]) for one in sorted(found.users)]
        built["mention_roles"] = [str(one) for one in sorted(found.roles)]
        built["mention_everyone"] = found.everyone

    def pings_of(self, built: Json) -> Pings:
        """Who was notified by a message that stands; nobody of its own author."""
        users = {int(one["id"]) for one in built["mentions"]} - {int(built["author"]["id"])}
        roles = frozenset(int(one) for one in built["mention_roles"])
        return Pings(frozenset(users), roles, built["mention_everyone"]) or NOBODY

    # Changing what was said

    def edit(self, message: Json, text: str, **more: Any) -> Json:
        """The author edits a message."""
        known = self.stored[message["channel_id"]][message["id"]]
        known.update({"content": text, "edited_timestamp": objects.iso(self.wall())} | more)
        place = self.channels[known["channel_id"]]
        self.read_mentions(known, place, PING_ALL, self.people.get(int(known["author"]["id"])))
        self.emit("MESSAGE_UPDATE", known, channel_id=place["id"])
        return known

    def preview(self, message: Json, url: str = "https://example.org/", title: str = "Example") -> Json:
        """Discord adds the preview of a link: an update in which nobody has edited anything."""
        known = self.stored[message["channel_id"]][message["id"]]
        known["embeds"] = [{"type": "link", "url": url, "title": title, "description": "A page."}]
        self.emit("MESSAGE_UPDATE", known, channel_id=known["channel_id"])
        return known

    def delete(self, *messages: Json) -> None:
        """Messages of one channel are deleted; several at once are a bulk deletion."""
        place = self.channels[messages[0]["channel_id"]]
        ids = [one["id"] for one in messages]
        for one in ids:
            del self.stored[place["id"]][one]
            self.pins.get(place["id"], {}).pop(one, None)
        where = {"channel_id": place["id"]} | ({"guild_id": place["guild_id"]} if "guild_id" in place else {})
        if len(ids) == 1:
            self.emit("MESSAGE_DELETE", {"id": ids[0], **where}, channel_id=place["id"])
        else:
            self.emit("MESSAGE_DELETE_BULK", {"ids": ids, **where}, channel_id=place["id"])

    def react(self, message: Json, emoji: str = "👍", person: Person = ALICE, *, remove: bool = False) -> None:
        """Somebody adds or removes a reaction; `emoji` is a character or "name:id"."""
        place = self.channels[message["channel_id"]]
        who = self.reactions.setdefault((message["id"], emoji), [])
        if (person.id in who) != remove:
            return
        (who.remove if remove else who.append)(person.id)
        name, _, number = emoji.partition(":")
        data: Json = {
            "user_id": str(person.id),
            "channel_id": place["id"],
            "message_id": message["id"],
            "emoji": {"id": number or None, "name": name},
            "burst": False,
            "type": 0,
        }
        if not remove:
            data["message_author_id"] = message["author"]["id"]
        member = self.member_of(place, person.id)
        if member is not None:
            data |= {"guild_id": place["guild_id"]} | ({} if remove else {"member": member})
        self.emit(f"MESSAGE_REACTION_{'REMOVE' if remove else 'ADD'}", data, channel_id=place["id"])

    def set_pinned(self, message: Json, person: Person = ALICE, *, pinned: bool = True) -> None:
        """Somebody pins a message, of which a system message tells, or takes it down."""
        place = self.channels[message["channel_id"]]
        message = self.stored[place["id"]][message["id"]]
        now = objects.iso(self.wall())
        message["pinned"] = pinned
        self.pins.setdefault(place["id"], {}).pop(message["id"], None)
        if pinned:
            self.pins[place["id"]][message["id"]] = now
        where = {"channel_id": place["id"]} | ({"guild_id": place["guild_id"]} if "guild_id" in place else {})
        self.emit("CHANNEL_PINS_UPDATE", where | {"last_pin_timestamp": now}, channel_id=place["id"])
        self.emit("MESSAGE_UPDATE", message, channel_id=place["id"])
        if pinned:
            reference = {"message_reference": {"type": 0, **where, "message_id": message["id"]}}
            self.post(place, Draft(objects.user(person), more={"type": objects.PINNED, **reference}))

    def typing(self, channel: Place, person: Person = ALICE) -> None:
        """Somebody begins to type."""
        place = self.channels[id_of(channel)]
        data: Json = {"channel_id": place["id"], "user_id": str(person.id), "timestamp": int(self.wall())}
        member = self.member_of(place, person.id)
        if member is not None:
            data |= {"guild_id": place["guild_id"], "member": member}
        self.emit("TYPING_START", data, channel_id=place["id"])

    def add_thread(
        self,
        channel: Place,
        name: str = "thread",
        person: Person = ALICE,
        *,
        text: str = "",
        message: Json | None = None,
        private: bool = False,
    ) -> Json:
        """Somebody opens a thread, from a message or with a first text; in a forum that is a post."""
        parent = self.channels[id_of(channel)]
        message = message and self.stored[parent["id"]][message["id"]]
        kind = objects.PRIVATE_THREAD if private else objects.PUBLIC_THREAD
        thread = self.make_thread(parent, name, kind, self.meet(person), thread_id=message["id"] if message else None)
        self.announce_thread(thread, parent, person, message)
        if text:
            more = {"id": thread["id"]} if parent["type"] == objects.FORUM else {}
            self.post(thread, Draft(objects.user(person), text, more=more), by=person)
        return thread

    def announce_thread(self, thread: Json, parent: Json, person: Person, message: Json | None) -> None:
        """The messages that Discord itself writes when a thread begins."""
        reference = {"type": 0, "guild_id": parent["guild_id"], "channel_id": parent["id"]}
        author = objects.user(person)
        if message is not None:
            message["flags"] |= objects.HAS_THREAD
            message["thread"] = thread
            self.emit("MESSAGE_UPDATE", message, channel_id=parent["id"])
            more = {"type": objects.THREAD_STARTER, "message_reference": reference | {"message_id": message["id"]}}
            self.post(thread, Draft(author, more=more))
        elif thread["type"] == objects.PUBLIC_THREAD and parent["type"] != objects.FORUM:
            more = {"type": objects.THREAD_CREATED, "message_reference": reference | {"channel_id": thread["id"]}}
            self.post(parent, Draft(author, thread["name"], more=more))

    # Showing

    def show(self, message: Json, *, nested: bool = False) -> Json:
        """A message as the API gives it out: fresh links, reactions, what it replies to (null when that is gone)."""
        shown = copy.deepcopy(message)
        for one in shown["attachments"]:
            one |= self.files.links(one, message["channel_id"])
        reactions = self._reactions(message["id"])
        if reactions:
            shown["reactions"] = reactions
        if message["type"] in (objects.REPLY, objects.THREAD_STARTER) and not nested:
            reference = message["message_reference"]
            original = self.stored.get(reference["channel_id"], {}).get(reference["message_id"])
            shown["referenced_message"] = None if original is None else self.show(original, nested=True)
        return shown

    def _reactions(self, message_id: str) -> list[Json]:
        found: list[Json] = []
        for (where, emoji), who in self.reactions.items():
            if where == message_id and who:
                name, _, number = emoji.partition(":")
                counts = {"count": len(who), "count_details": {"burst": 0, "normal": len(who)}, "burst_colors": []}
                mine = {"me": self.bot.id in who, "me_burst": False}
                found.append({"emoji": {"id": number or None, "name": name}} | counts | mine)
        return found

    def messages(self, channel: Place) -> list[Json]:
        """What stands in a channel, oldest first, as everybody sees it."""
        return [self.show(one) for one in self.stored[id_of(channel)].values()]
