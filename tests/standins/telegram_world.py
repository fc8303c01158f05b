"""The state behind the Telegram stand-in and what people do in it.

Chats, messages, files, commands and the queue of updates. A test writes, clicks, blocks the bot or upgrades a
group here; the methods of the Bot API (telegram_methods) read and change the same state.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.standins import telegram_updates as payloads
from tests.standins.telegram_ledger import Json, Ledger, Refusal
from tests.standins.telegram_text import MAX_TEXT, utf16_length
from tests.standins.telegram_updates import ALICE, TOKEN, Person, Room, private

_CONTENT: dict[str, Callable[[str, int, str | None], Json]] = {
    "photo": payloads.photo_content,
    "document": payloads.document_content,
    "voice": payloads.voice_content,
}


@dataclass(slots=True, eq=False)
class Poll:
    """One getUpdates; `ended` is set when something else terminates it, `answered` holds the update ids."""

    offset: int
    limit: int
    alive: Callable[[], bool]
    ended: Refusal | None = None
    answered: list[int] | None = None


class World:
    """Everything that Telegram would know. `clock` is in seconds and only measures, `wall` is Unix time."""

    def __init__(
        self,
        *,
        token: str = TOKEN,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.token = token
        self.bot = payloads.get_me()
        self.clock = clock
        self.wall = wall
        self.ledger = Ledger(token=token)
        self.rooms: dict[int, Room] = {}
        self.messages: dict[tuple[int, int], Json] = {}
        self.closed_chats: dict[int, str] = {}
        # Topics that an administrator has closed, and chats whose person takes no voice messages.
        self.closed_topics: set[tuple[int, int]] = set()
        self.no_voice: set[int] = set()
        self.upgraded: dict[int, int] = {}
        self.files: dict[str, tuple[str, bytes]] = {}
        self.uploads: list[tuple[str, bytes]] = []
        self.clicks: dict[str, bool] = {}
        self.commands: dict[str, list[Json]] = {}
        self.webhook: Json = {}
        self.webhook_secret = ""
        self.allowed_updates: frozenset[str] = frozenset(payloads.UPDATE_KINDS) - payloads.ONLY_WHEN_NAMED
        self.polls: list[Poll] = []
        self.poll: Poll | None = None
        self.queue: list[Json] = []
        self.again: list[Json] = []
        self.confirmed = 0
        self.last_update_id = 814_000_100
        self.rights: dict[int, set[str]] = {}
        self.pinned: dict[int, list[int]] = {}
        self.topic_names: dict[tuple[int, int], str] = {}
        self.drafts: dict[int, Json] = {}
        self._message_ids: dict[int, int] = {}

    # What people do

    def write(
        self,
        text: str,
        *,
        user: Person = ALICE,
        chat: Room | None = None,
        entities: list[Json] | None = None,
        reply_to: int | None = None,
        thread_id: int | None = None,
        **more: Any,
    ) -> Json:
        """A person writes; returns the queued update. `more` is put into the message as it is."""
        if utf16_length(text) > MAX_TEXT:
            raise ValueError("a person's client would have cut this text in two")
        content = payloads.text_content(text, entities)
        return self.say(content | more, user=user, chat=chat, reply_to=reply_to, thread_id=thread_id)

    def attach(
        self,
        kind: str,
        data: bytes,
        *,
        caption: str | None = None,
        user: Person = ALICE,
        chat: Room | None = None,
        **more: Any,
    ) -> Json:
        """A person sends a photo, document or voice message that getFile then knows; returns the update. `more` is put
        into the message as it is (`media_group_id`: one of an album)."""
        file_id = f"BQACAgIAAxkBAAI{len(self.files):08d}"
        self.files[file_id] = (f"{kind}s/file_{len(self.files)}", data)
        content = _CONTENT[kind](file_id, len(data), caption)
        return self.say(content | more, user=user, chat=chat)

    def say(
        self,
        content: Json,
        *,
        user: Person = ALICE,
        chat: Room | None = None,
        reply_to: int | None = None,
        thread_id: int | None = None,
    ) -> Json:
        """A message with any content; returns the queued update."""
        room = self.meet(chat or private(user))
        if reply_to is not None:
            content = content | {"reply_to_message": self.messages[room.id, reply_to]}
        if thread_id is not None:
            content = content | {"message_thread_id": thread_id, "is_topic_message": True}
        built = payloads.message(user, room, self.next_message_id(room), int(self.wall()), **content)
        self.messages[room.id, built["message_id"]] = built
        self.ledger.timeline.append((room.id, "in"))
        return self.push("message", built)

    def edit(self, update: Json, text: str) -> Json:
        """A person edits an earlier message; returns the queued edited_message update."""
        old = update["message"]
        kept = {name: value for name, value in old.items() if name not in ("text", "entities")}
        built = kept | payloads.text_content(text) | {"edit_date": int(self.wall())}
        self.messages[old["chat"]["id"], old["message_id"]] = built
        return self.push("edited_message", built)

    def click(self, message_id: int, data: str, *, user: Person = ALICE, chat: Room | None = None) -> Json:
        """A person presses a button below a message of the bot; returns the queued update."""
        query_id = str(2_153_000_000_000_000 + len(self.clicks))
        self.clicks[query_id] = False
        on = self.messages[(chat or private(user)).id, message_id]
        return self.push("callback_query", payloads.callback_query(query_id, user, on, data))

    def block(self, user: Person = ALICE) -> Json:
        """A person blocks the bot; returns the queued my_chat_member update."""
        room = self.meet(private(user))
        self.closed_chats[room.id] = "bot was blocked by the user"
        change = payloads.chat_member_change(user, room, int(self.wall()), "member", "kicked")
        return self.push("my_chat_member", change)

    def upgrade(self, room: Room, *, by: Person = ALICE) -> Room:
        """A group becomes a supergroup with another id; both service messages are queued."""
        new = self.meet(replace(room, id=-1_000_000_000_000 + room.id, type="supergroup"))
        self.upgraded[self.meet(room).id] = new.id
        self.say({"migrate_to_chat_id": new.id}, user=by, chat=room)
        self.say({"migrate_from_chat_id": room.id}, user=by, chat=new)
        return new

    def meet(self, room: Room) -> Room:
        """Make a chat known, so that the bot may write there."""
        return self.rooms.setdefault(room.id, room)

    def turn_over(self, room: Room | None = None) -> None:
        """The test knows that the answer is complete: typing before a person writes is a violation."""
        self.ledger.timeline.append(((room or private(ALICE)).id, "over"))

    # Updates

    def push(self, kind: str, payload: Json) -> Json:
        """Queue an update of a kind unless allowed_updates leaves it out."""
        self.last_update_id += 1
        update = {"update_id": self.last_update_id, kind: payload}
        if kind in self.allowed_updates:
            self.queue.append(update)
            self.ledger.changed()
        return update

    def push_raw(self, update: Json) -> Json:
        """Queue anything, readable or not; it gets the next update_id unless it has a later one."""
        number = update.get("update_id", 0)
        self.last_update_id = max(self.last_update_id + 1, number)
        update = update | {"update_id": self.last_update_id}
        self.queue.append(update)
        self.ledger.changed()
        return update

    def repeat(self, update: Json) -> None:
        """Deliver an update once more with the next poll, whatever its offset says."""
        self.again.append(update)
        self.ledger.changed()

    def confirm(self, offset: int) -> None:
        """Forget updates as an offset of getUpdates tells."""
        if offset > 0:
            self.queue = [update for update in self.queue if update["update_id"] >= offset]
            self.confirmed = max(self.confirmed, offset - 1)
        self.ledger.changed()

    def next_message_id(self, room: Room) -> int:
        """Supergroups and channels count by themselves, all other chats of the bot together."""
        counter = room.id if room.type in ("supergroup", "channel") else 0
        self._message_ids[counter] = self._message_ids.get(counter, 40) + 1
        return self._message_ids[counter]
