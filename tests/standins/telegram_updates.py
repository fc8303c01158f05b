"""Payloads as Telegram sends them: people, chats, messages, with every field that a real one carries.

Builders return new dicts, so that a test may change what it gets.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from tests.standins.telegram_ledger import Json
from tests.standins.telegram_text import utf16_length

BOT_ID = 7_654_321_098
BOT_NAME = "hark_test_bot"
TOKEN = f"{BOT_ID}:AAHk5vQ_standInOnlyNeverARealToken0123"

# Kinds of "Update"; the last three come only when allowed_updates names them.
UPDATE_KINDS = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_connection",
    "business_message",
    "edited_business_message",
    "deleted_business_messages",
    "inline_query",
    "chosen_inline_result",
    "callback_query",
    "shipping_query",
    "pre_checkout_query",
    "purchased_paid_media",
    "poll",
    "poll_answer",
    "my_chat_member",
    "chat_join_request",
    "chat_boost",
    "removed_chat_boost",
    "chat_member",
    "message_reaction",
    "message_reaction_count",
)
ONLY_WHEN_NAMED = frozenset(UPDATE_KINDS[-3:])

# What the server finds in a person's text by itself.
_FOUND = (
    ("bot_command", re.compile(r"(?<![\w/])/[A-Za-z0-9_]{1,64}(?:@\w{3,32})?")),
    ("mention", re.compile(r"(?<![\w/])@\w{4,32}")),
    ("url", re.compile(r"https?://[^\s<>\"]+")),
    ("hashtag", re.compile(r"(?<!\w)#\w+")),
)


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    first_name: str
    username: str | None = None
    last_name: str | None = None
    language_code: str = "en"

    def user(self) -> Json:
        """The "User" object."""
        return _without_none(
            id=self.id,
            is_bot=False,
            first_name=self.first_name,
            last_name=self.last_name,
            username=self.username,
            language_code=self.language_code,
        )


@dataclass(frozen=True, slots=True)
class Room:
    """A chat; `type` is private, group, supergroup or channel. `topics` are the threads of a forum."""

    id: int
    type: str
    title: str | None = None
    username: str | None = None
    person: Person | None = None
    topics: frozenset[int] = field(default_factory=frozenset)

    def chat(self) -> Json:
        """The "Chat" object."""
        if self.person is not None:
            who = self.person
            return _without_none(
                id=self.id,
                type="private",
                first_name=who.first_name,
                last_name=who.last_name,
                username=who.username,
            )
        return _without_none(
            id=self.id,
            type=self.type,
            title=self.title,
            username=self.username,
            is_forum=True if self.topics else None,
        )


ALICE = Person(501_234_567, "Alice", "alice_a", "Archer")
BOB = Person(612_345_678, "Bob")


def private(person: Person) -> Room:
    """The direct chat with a person; its id is the person's id."""
    return Room(person.id, "private", person=person)


def bot_user() -> Json:
    """The bot as it stands in the "from" of its messages."""
    return {"id": BOT_ID, "is_bot": True, "first_name": "Hark", "username": BOT_NAME}


def get_me() -> Json:
    """The answer of getMe."""
    return {
        **bot_user(),
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": False,
        "allows_users_to_create_topics": False,
    }


def found_entities(text: str) -> list[Json]:
    """Commands, mentions, addresses and hashtags in a text, with UTF-16 offsets."""
    found = [
        {
            "type": kind,
            "offset": utf16_length(text[: match.start()]),
            "length": utf16_length(match.group()),
        }
        for kind, pattern in _FOUND
        for match in pattern.finditer(text)
    ]
    return sorted(found, key=lambda entity: entity["offset"])


def message(person: Person | None, room: Room, message_id: int, date: int, **content: Any) -> Json:
    """A "Message" by a person (None: by the chat itself, as in a channel); None values are left out."""
    sender: Json = {"from": person.user()} if person else {"sender_chat": room.chat()}
    return _without_none(message_id=message_id, **sender, chat=room.chat(), date=date, **content)


def text_content(text: str, entities: list[Json] | None = None) -> Json:
    """Text of a message; without given entities those which the server finds."""
    marks = found_entities(text) if entities is None else entities
    return {"text": text, **({"entities": marks} if marks else {})}


def photo_content(file_id: str, size: int, caption: str | None = None) -> Json:
    """A photo in two sizes, the smaller one first, as always; the last one has the given id."""
    sizes = [
        _photo(f"{file_id}-s", 90, 67, min(size, 1_253)),
        _photo(file_id, 1280, 960, size),
    ]
    return {"photo": sizes, **_caption(caption)}


def document_content(
    file_id: str,
    size: int,
    caption: str | None = None,
    *,
    name: str = "notes.pdf",
    mime: str = "application/pdf",
) -> Json:
    document = {**_file(file_id, size), "file_name": name, "mime_type": mime}
    return {"document": document, **_caption(caption)}


def voice_content(file_id: str, size: int, caption: str | None = None, *, seconds: int = 4) -> Json:
    voice = {**_file(file_id, size), "duration": seconds, "mime_type": "audio/ogg"}
    return {"voice": voice, **_caption(caption)}


def chat_member_change(person: Person, room: Room, date: int, old: str, new: str) -> Json:
    """A "ChatMemberUpdated" about the bot itself; statuses are member, kicked (blocked) or left."""

    def member(status: str) -> Json:
        return {
            "user": bot_user(),
            "status": status,
            **({"until_date": 0} if status == "kicked" else {}),
        }

    return {
        "chat": room.chat(),
        "from": person.user(),
        "date": date,
        "old_chat_member": member(old),
        "new_chat_member": member(new),
    }


def callback_query(query_id: str, person: Person, on: Json, data: str) -> Json:
    """A click on a button below a message of the bot."""
    return {
        "id": query_id,
        "from": person.user(),
        "message": on,
        "chat_instance": "-3517398412345678901",
        "data": data,
    }


def _photo(file_id: str, width: int, height: int, size: int) -> Json:
    return {**_file(file_id, size), "width": width, "height": height}


def _file(file_id: str, size: int) -> Json:
    return {"file_id": file_id, "file_unique_id": f"AQAD{file_id[-8:]}", "file_size": size}


def _caption(caption: str | None) -> Json:
    if caption is None:
        return {}
    marks = found_entities(caption)
    return {"caption": caption, **({"caption_entities": marks} if marks else {})}


def _without_none(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}
