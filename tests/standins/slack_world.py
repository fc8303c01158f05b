"""The state behind the Slack stand-in: people, conversations, what stands in them, and time.

Messages are kept as conversations.history shows them. People act through slack_people, the app through
slack_methods; both change the state here, and every change is an event for slack_delivery.
"""

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.standins import slack_shapes as shapes
from tests.standins.slack_ledger import Json, Ledger, Refusal
from tests.standins.slack_shapes import ALICE, BOB, BOT, HARK, SLACKBOT, Person, Room

# What a message has because it is a thread's parent; nobody edits it.
THREAD_FIELDS = ("reply_count", "reply_users_count", "latest_reply", "reply_users", "is_locked", "subscribed")


@dataclass(order=True, slots=True)
class Timer:
    due: float
    number: int
    call: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


@dataclass(slots=True, eq=False)
class File:
    """`body` is the "file" object, `data` its content, None until the upload."""

    body: Json
    data: bytes | None = None
    shared: bool = False


class World:
    """Everything that Slack would know. `clock` is in seconds and only measures, `wall` is Unix time.

    Deadlines of the service (three seconds for an acknowledgement, the times of retries) pass only in `advance`, so
    that no test waits and none is disturbed by a slow machine.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self.secrets = (shapes.BOT_TOKEN, shapes.APP_TOKEN, shapes.SIGNING_SECRET)
        self.ledger = Ledger(secrets=self.secrets)
        self.scopes = set(shapes.SCOPES)
        self.events = set(shapes.EVENTS)
        self.commands = {"/hark"}
        self.interactive = True
        self.people: dict[str, Person] = {one.id: one for one in (ALICE, BOB, HARK, SLACKBOT)}
        self.rooms: dict[str, Room] = {}
        self.kept: dict[str, dict[str, Json]] = {}
        self.ephemeral: list[Json] = []
        self.files: dict[str, File] = {}
        self.statuses: dict[tuple[str, str], str] = {}
        self._clock, self._wall = clock, wall
        self._ahead = 0.0
        self._timers: list[Timer] = []
        self._numbers = itertools.count(1)
        self._last_ts: dict[str, int] = {}

    # Time

    def clock(self) -> float:
        return self._clock() + self._ahead

    def wall(self) -> float:
        return self._wall() + self._ahead

    def stamp(self) -> int:
        """Unix time without what `advance` added: what a client's own clock must agree with."""
        return int(self._wall())

    def advance(self, seconds: float) -> None:
        """Let time pass: what is due by then happens, in order."""
        until = self._ahead + seconds
        while self._timers and self._timers[0].due <= until:
            timer = heapq.heappop(self._timers)
            self._ahead = max(self._ahead, timer.due)
            if not timer.cancelled:
                timer.call()
        self._ahead = until
        self.ledger.changed()

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call something when `advance` has passed that time; the machine's own clock does not count."""
        timer = Timer(self._ahead + seconds, next(self._numbers), call)
        heapq.heappush(self._timers, timer)
        return timer

    def number(self) -> int:
        """A number that was not given before."""
        return next(self._numbers)

    def next_ts(self, channel: str) -> str:
        """A `ts`, unique in the conversation and later than all before it."""
        now = max(int(self.wall() * 1_000_000), self._last_ts.get(channel, 0) + 1)
        self._last_ts[channel] = now
        return f"{now // 1_000_000}.{now % 1_000_000:06d}"

    # Conversations

    def add_room(self, room: Room) -> Room:
        self.rooms[room.id] = room
        self.kept.setdefault(room.id, {})
        return room

    def im(self, user: str) -> Room:
        """The direct conversation of the app with a person, made when there is none."""
        for room in self.rooms.values():
            if room.kind == "im" and set(room.members) == {user, BOT}:
                return room
        return self.add_room(Room(f"D0{user[1:]}", "im", members=[user, BOT]))

    def room(self, channel: str) -> Room:
        """The conversation, if the app can see it."""
        room = self.rooms.get(channel)
        if room is None or (room.kind != "channel" and BOT not in room.members):
            raise Refusal("channel_not_found")
        return room

    def message(self, channel: str, ts: str, error: str = "message_not_found") -> Json:
        """The message as it is kept."""
        found = self.kept.get(channel, {}).get(ts)
        if found is None:
            raise Refusal(error)
        return found

    def need(self, *scopes: str) -> None:
        """Raise missing_scope unless one of the scopes was granted."""
        if not self.scopes & set(scopes):
            raise Refusal("missing_scope", needed=scopes[0], provided=",".join(sorted(self.scopes)))

    # Messages

    def add(self, room: Room, message: Json, *, thread_ts: str | None = None, broadcast: bool = False) -> Json:
        """Put a message where it belongs and tell of it."""
        if thread_ts is not None:
            parent = self.message(room.id, thread_ts, "thread_not_found")
            thread_ts = parent.get("thread_ts", thread_ts)
            parent = self.message(room.id, thread_ts)
            message |= {"thread_ts": thread_ts, "parent_user_id": parent.get("user")}
            if broadcast:
                message |= {"subtype": "thread_broadcast", "root": dict(parent)}
        self.kept[room.id][message["ts"]] = message
        if thread_ts is not None:
            self.count_replies(room.id, thread_ts)
        if message.get("user") == BOT:
            self.statuses.pop((room.id, thread_ts or ""), None)
        self.tell_message(room, {name: value for name, value in message.items() if name != "metadata"})
        if message.get("subtype") in (None, "thread_broadcast"):
            self.tell_mention(room, message, shapes.mentioned(message["text"]))
        return message

    def count_replies(self, channel: str, thread_ts: str) -> None:
        """What a parent says of its thread."""
        parent = self.kept[channel].get(thread_ts)
        if parent is None:
            return
        replies = self.replies(channel, thread_ts)
        for name in (*THREAD_FIELDS, "thread_ts"):
            parent.pop(name, None)
        if replies:
            users = list(dict.fromkeys(one.get("user", "") for one in replies))
            parent |= {
                "thread_ts": thread_ts,
                "reply_count": len(replies),
                "reply_users_count": len(users),
                "latest_reply": replies[-1]["ts"],
                "reply_users": users,
                "is_locked": False,
                "subscribed": BOT in {parent.get("user"), *users},
            }

    def replies(self, channel: str, thread_ts: str) -> list[Json]:
        """The replies below a parent, oldest first."""
        found = (one for one in self.kept[channel].values() if one.get("thread_ts") == thread_ts)
        return sorted((one for one in found if one["ts"] != thread_ts), key=lambda one: one["ts"])

    def change(self, room: Room, ts: str, new: Json, *, mark: str | None = None) -> Json:
        """Replace fields of a message and tell of it; with `mark` (a user id) as an edit, else as a preview."""
        kept = self.message(room.id, ts)
        before = dict(kept)
        at = self.next_ts(room.id)
        kept.update(new)
        if mark is not None:
            kept["edited"] = {"user": mark, "ts": f"{at.split('.')[0]}.000000"}
        extra = {"message": _without_metadata(kept), "previous_message": _without_metadata(before)}
        self.tell_message(room, {**_hidden("message_changed", at), **extra})
        if mark is not None:  # app_mention comes again with each edit, new event_id and `edited`
            self.tell_mention(room, kept, shapes.mentioned(kept.get("text", "")))
        return kept

    def remove(self, room: Room, ts: str) -> None:
        """Delete a message; a thread's parent leaves a tombstone, which Slack tells as a change."""
        kept = self.message(room.id, ts)
        at = self.next_ts(room.id)
        if self.replies(room.id, ts):
            tombstone: Json = {"type": "message", "subtype": "tombstone", "text": "This message was deleted."}
            tombstone |= {"user": SLACKBOT.id, "hidden": True, "ts": ts}
            tombstone |= {name: kept[name] for name in (*THREAD_FIELDS, "thread_ts") if name in kept}
            self.kept[room.id][ts] = tombstone
            told = {"message": dict(tombstone), "previous_message": _without_metadata(kept)}
            self.tell_message(room, {**_hidden("message_changed", at), **told})
            return
        del self.kept[room.id][ts]
        deleted: Json = {"previous_message": _without_metadata(kept), "deleted_ts": ts}
        self.tell_message(room, {**_hidden("message_deleted", at), **deleted})
        if "thread_ts" in kept and kept["thread_ts"] != ts:
            self.count_replies(room.id, kept["thread_ts"])
            parent = self.kept[room.id].get(kept["thread_ts"], {})
            if parent.get("subtype") == "tombstone" and not self.replies(room.id, kept["thread_ts"]):
                self.remove(room, kept["thread_ts"])

    # Events

    def tell_message(self, room: Room, message: Json) -> None:
        """A `message` event, if the app is in the conversation."""
        if BOT not in room.members:
            return
        plural = {"channel": "channels", "group": "groups"}.get(room.kind, room.kind)
        event_ts = message.get("event_ts", message["ts"])
        event = {**message, "channel": room.id, "event_ts": event_ts, "channel_type": room.kind}
        for name in THREAD_FIELDS:
            event.pop(name, None)
        self.tell(event, f"message.{plural}")

    def tell_mention(self, room: Room, message: Json, whom: set[str]) -> None:
        """An `app_mention` event: the twin of the message, but not in direct conversations."""
        if BOT in whom and BOT in room.members and room.kind != "im" and message.get("user") != BOT:
            left_out = (*THREAD_FIELDS, "metadata", "subtype", "root")
            twin = {name: value for name, value in message.items() if name not in left_out}
            self.tell(twin | {"type": "app_mention", "channel": room.id, "event_ts": message["ts"]}, "app_mention")

    def tell(self, event: Json, kind: str) -> Json | None:
        """Send an event to the app; `kind` is the name that a manifest subscribes. None when it is not sent."""
        raise NotImplementedError


def _without_metadata(message: Json) -> Json:
    return {name: value for name, value in message.items() if name != "metadata"}


def _hidden(subtype: str, ts: str) -> Json:
    return {"type": "message", "subtype": subtype, "hidden": True, "ts": ts}


def ts_of(message: Json | str) -> str:
    """The ts of a message that is named by it or by itself."""
    return message if isinstance(message, str) else str(message["ts"])
