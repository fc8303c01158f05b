"""What people do in Slack: write, edit, delete, react, call commands, press buttons, come and go.

Each method returns what stands in Slack afterwards; the events go their own way. Texts are what a person types:
`&<>` are escaped, mentions are written as `<@U…>` and links as `<https://…>`, which the client makes of them.
"""

import re
from typing import Any

from tests.standins import slack_shapes as shapes
from tests.standins.slack_blocks import buttons
from tests.standins.slack_ledger import Json, Refusal
from tests.standins.slack_shapes import ALICE, BOT, HARK, Person, Room
from tests.standins.slack_world import File, World, ts_of

_BARE = re.compile(r"(<(?:[@#!]|https?://)[^>]*>)")


def as_text(typed: str) -> str:
    """What Slack keeps of a typed text."""
    return "".join(part if index % 2 else shapes.escaped(part) for index, part in enumerate(_BARE.split(typed)))


class People(World):
    """See the module. A channel is a Room or its id, a message its `ts` or what a method returned."""

    def channel(
        self, name: str, *members: Person, private: bool = False, with_app: bool = True, id: str | None = None
    ) -> Room:
        """A public or private channel with these members (Alice when none is named) and the app."""
        ids = [one.id for one in (members or (ALICE,))]
        for one in members:
            self.people.setdefault(one.id, one)
        made = id or f"C0{re.sub('[^A-Z0-9]', '', name.upper())[:8]:0<8}"
        kind = "group" if private else "channel"
        return self.add_room(Room(made, kind, name, ids + [BOT] * with_app))

    def group_dm(self, *members: Person) -> Room:
        """A conversation of several people with the app."""
        for one in members:
            self.people.setdefault(one.id, one)
        name = "mpdm-" + "--".join(one.name for one in (*members, HARK)) + "-1"
        return self.add_room(Room(f"C0MPDM{self.number():04d}", "mpim", name, [one.id for one in members] + [BOT]))

    def meet(self, person: Person) -> Person:
        """Somebody is new in the workspace; `team_join` tells of it."""
        self.people[person.id] = person
        self.tell({"type": "team_join", "user": person.user(), "event_ts": self.next_ts("")}, "team_join")
        return person

    # Messages

    def say(
        self,
        room: Room | str,
        user: Person = ALICE,
        text: str = "",
        *,
        thread_ts: str | None = None,
        broadcast: bool = False,
        files: dict[str, bytes] | None = None,
        **more: Any,
    ) -> Json:
        """A person writes; `files` are names with contents, `more` goes into the message as it is."""
        if text.startswith("/"):
            raise ValueError("Slack's client sends a text that begins with a slash as a command, see `slash`")
        if not text and not files and not more:
            raise ValueError("Slack's client sends no empty message")
        where = self._where(room)
        if user.id not in where.members or where.archived:
            raise ValueError(f"{user.name} cannot write there")
        message = shapes.typed(user, as_text(text), self.next_ts(where.id))
        if files:
            shared = [self._share(user, name, data).body for name, data in files.items()]
            message |= {"subtype": "file_share", "files": shared, "upload": False, "display_as_bot": False}
        return self.add(where, message | more, thread_ts=thread_ts, broadcast=broadcast)

    def dm(self, user: Person = ALICE, text: str = "", **more: Any) -> Json:
        """A person writes to the app directly."""
        self.people.setdefault(user.id, user)
        return self.say(self.im(user.id), user, text, **more)

    def mention(self, room: Room | str, user: Person = ALICE, text: str = "", **more: Any) -> Json:
        """A person writes `@Hark text`: a message and its twin, app_mention."""
        return self.say(room, user, f"<@{BOT}> {text}", **more)

    def post_as(self, room: Room | str, app: str, text: str, *, webhook: bool = False, **more: Any) -> Json:
        """Another app writes, by its bot or by an incoming webhook, whose messages have a name and no user."""
        where = self._where(room)
        ids = {"bot_id": f"B0{app.upper()}", "app_id": f"A0{app.upper()}"}
        message = shapes.by_bot(text, self.next_ts(where.id), **more) | ids
        if webhook:
            for name in ("user", "team", "bot_profile"):
                del message[name]
            message |= {"subtype": "bot_message", "username": app, "icons": {"emoji": ":robot_face:"}}
        else:
            message |= {"user": f"U0{app.upper()}", "bot_profile": {**shapes.bot_profile(), **ids, "name": app}}
        return self.add(where, message, thread_ts=more.get("thread_ts"))

    def edit(self, room: Room | str, message: Json | str, text: str) -> Json:
        """The author edits a message."""
        where, ts = self._where(room), ts_of(message)
        kept = self.message(where.id, ts)
        new = as_text(text)
        return self.change(where, ts, {"text": new, "blocks": [shapes.rich_text(new)]}, mark=kept["user"])

    def preview(self, room: Room | str, message: Json | str, url: str = "https://example.com/") -> Json:
        """Slack adds a link's preview: message_changed, but nobody edited anything."""
        attachment = {"from_url": url, "title": "Example", "fallback": "Example", "id": 1, "original_url": url}
        return self.change(self._where(room), ts_of(message), {"attachments": [attachment]})

    def delete(self, room: Room | str, message: Json | str) -> None:
        """The author deletes a message."""
        self.remove(self._where(room), ts_of(message))

    def react(self, room: Room | str, message: Json | str, name: str, user: Person = ALICE) -> None:
        """A person adds an emoji to a message, named without colons."""
        self.add_reaction(self._where(room), ts_of(message), name, user.id)

    def add_reaction(self, room: Room, ts: str, name: str, user: str) -> None:
        """Anybody's reaction; raises `already_reacted`."""
        kept = self.message(room.id, ts)
        found: list[Json] = kept.setdefault("reactions", [])
        one = next((one for one in found if one["name"] == name), None)
        if one is None:
            one = {"name": name, "users": [], "count": 0}
            found.append(one)
        if user in one["users"]:
            raise Refusal("already_reacted")
        one["users"].append(user)
        one["count"] = len(one["users"])
        self._tell_reaction("reaction_added", room, kept, name, user)

    def remove_reaction(self, room: Room, ts: str, name: str, user: str) -> None:
        """The opposite; raises `no_reaction`."""
        kept = self.message(room.id, ts)
        one = next((one for one in kept.get("reactions", []) if one["name"] == name and user in one["users"]), None)
        if one is None:
            raise Refusal("no_reaction")
        one["users"].remove(user)
        one["count"] = len(one["users"])
        kept["reactions"] = [other for other in kept["reactions"] if other["users"]]
        if not kept["reactions"]:
            del kept["reactions"]
        self._tell_reaction("reaction_removed", room, kept, name, user)

    def _tell_reaction(self, kind: str, room: Room, message: Json, name: str, user: str) -> None:
        item = {"type": "message", "channel": room.id, "ts": message["ts"]}
        event = {"type": kind, "user": user, "reaction": name, "item": item, "event_ts": self.next_ts("")}
        if BOT in room.members:
            self.tell(event | {"item_user": message.get("user")}, kind)

    # Coming and going

    def join(self, room: Room | str, user: Person = ALICE) -> None:
        """Somebody, or the app itself (HARK), comes into a channel."""
        where = self._where(room)
        self.people.setdefault(user.id, user)
        where.members.append(user.id)
        letter = "G" if where.kind == "group" else "C"
        self._say_by_itself(where, "channel_join", f"<@{user.id}> has joined the channel", user.id)
        if BOT in where.members:
            event = {"type": "member_joined_channel", "user": user.id, "channel": where.id, "channel_type": letter}
            at = self.next_ts(where.id)
            self.tell(event | {"team": user.team, "event_ts": at, "inviter": ALICE.id}, "member_joined_channel")

    def archive(self, room: Room | str, user: Person = ALICE) -> None:
        where = self._where(room)
        where.archived = True
        event = {"type": "channel_archive", "channel": where.id, "user": user.id, "is_moved": 0}
        self.tell(event | {"event_ts": self.next_ts(where.id)}, "channel_archive")

    def _say_by_itself(self, room: Room, subtype: str, text: str, user: str, **more: Any) -> None:
        message = {"subtype": subtype, "user": user, "text": text, "type": "message", "ts": self.next_ts(room.id)}
        self.add(room, message | more)

    # The app's own surfaces

    def buttons_of(self, message: Json) -> list[Json]:
        """The buttons below a message."""
        return buttons(message.get("blocks", []))

    # Files

    def _share(self, user: Person, name: str, data: bytes) -> File:
        file = self.new_file(user.id, name, len(data))
        file.data, file.shared = data, True
        return file

    def new_file(self, user: str, name: str, size: int) -> File:
        """A file that Slack knows; its `url_private` is this server's."""
        file_id = f"F0FILE{self.number():05d}"
        kind = name.rpartition(".")[2] if "." in name else "binary"
        mime = {"txt": "text/plain", "png": "image/png", "pdf": "application/pdf", "jpg": "image/jpeg"}
        root = f"{self.origin}/files-pri/{shapes.TEAM}-{file_id}"
        self.files[file_id] = File(
            {
                "id": file_id,
                "created": int(self.wall()),
                "timestamp": int(self.wall()),
                "name": name,
                "title": name,
                "mimetype": mime.get(kind, "application/octet-stream"),
                "filetype": kind,
                "pretty_type": kind.upper(),
                "user": user,
                "user_team": shapes.TEAM,
                "editable": False,
                "size": size,
                "mode": "hosted",
                "is_external": False,
                "external_type": "",
                "is_public": False,
                "public_url_shared": False,
                "display_as_bot": False,
                "username": "",
                "url_private": f"{root}/{name}",
                "url_private_download": f"{root}/download/{name}",
                "permalink": f"https://{shapes.TEAM_DOMAIN}.slack.com/files/{user}/{file_id}/{name}",
                "file_access": "visible",
            }
        )
        return self.files[file_id]

    @property
    def origin(self) -> str:
        """Scheme, host and port of this server."""
        raise NotImplementedError

    def _where(self, room: Room | str) -> Room:
        return room if isinstance(room, Room) else self.rooms[room]
