"""Raw updates of the Bot API to what the service takes in. Pure: one update in, none to two values out.

What a person sent becomes an `InboundMessage`, whatever it is; what Telegram itself tells (members, titles, pins)
becomes nothing. Raises `UnreadableUpdate` for what is not as documented: the poll loop keeps that raw and passes on.
"""

import hashlib
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from channels.message import (
    Attachment,
    ChatKind,
    ChatMoved,
    InboundKind,
    InboundMessage,
    Incoming,
    Origin,
    Place,
    UnreadEvent,
)
from channels.utf16 import whole

ALLOWED_UPDATES = ("message", "edited_message")
"""The kinds of update that are asked for, because they are handled."""

_KINDS = {
    "private": ChatKind.DIRECT,
    "group": ChatKind.GROUP,
    "supergroup": ChatKind.GROUP,
    "channel": ChatKind.CHANNEL,
}
_ATTACHMENTS = {
    "audio": "audio",
    "voice": "audio",
    "video": "video",
    "video_note": "video",
    "animation": "video",
    "document": "file",
    "sticker": "image",
}
_DESCRIBED = {
    "sticker": "{emoji}",
    "venue": "[venue: {title}, {address}]",  # which has its location beside it
    "location": "[location: {latitude}, {longitude}]",
    "contact": "[contact: {first_name} {phone_number}]",
}
# Content with neither text nor file, named to the model because a person sent it.
_NAMED = ("poll", "dice", "story", "game", "checklist", "paid_media", "giveaway", "invoice", "gift")
_COMMAND = re.compile(r"(?P<verb>/\w+)@(?P<to>\w+)(?!\S)")
_RAW_LIMIT = 16_384


class UnreadableUpdate(ValueError):
    """An update is not as the Bot API documents it; says what is wrong."""


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself: its id, and its user name without the @."""

    id: str
    username: str


def read_me(answer: object) -> Me:
    """The answer of getMe. Raises UnreadableUpdate."""
    me = _object(answer, "getMe")
    return Me(_identity(me, "id"), _string(me, "username"))


def read_update(update: object, me: Me) -> list[Incoming]:
    """What an update means for the service: nothing when it is of a kind that was not asked for or tells nothing."""
    fields = _object(update, "update")
    if len(fields) < 2:
        raise UnreadableUpdate("the update is empty")
    for kind in ALLOWED_UPDATES:
        if kind in fields:
            return _read_message(_object(fields[kind], kind), me, edited=kind == "edited_message")
    return []


def update_id_of(update: object) -> int | None:
    """The number of an update, None when it has none."""
    value = update.get("update_id") if isinstance(update, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def unread(update: object, me: Me, error: Exception) -> UnreadEvent:
    """The value for an update that could not be read."""
    raw, update_id = json.dumps(update), update_id_of(update)
    digest = hashlib.sha256(raw.encode()).hexdigest()[:16]
    return UnreadEvent(
        channel="telegram",
        account=me.id,
        event_key=f"u:{digest if update_id is None else update_id}",
        raw=raw[:_RAW_LIMIT],
        error=f"{type(error).__name__}: {error}",
    )


def _read_message(message: dict[str, Any], me: Me, *, edited: bool) -> list[Incoming]:
    place = _place(message, me)
    message_id = _identity(message, "message_id")
    if "migrate_to_chat_id" in message:
        return [_moved(me, place.chat, _identity(message, "migrate_to_chat_id"))]
    if "migrate_from_chat_id" in message:
        return [_moved(me, _identity(message, "migrate_from_chat_id"), place.chat)]
    sender, name = _sender(message)
    if not sender:
        return []
    text = _text(message, me)
    attachments = _attachments(message)
    if edited and not text:
        # A live location that moves, a poll that is voted on: nobody said anything.
        return []
    text = text or whole(_described(message))
    if not text and not attachments:
        return []
    key = f"m:{place.chat}:{message_id}"
    sent_at = _seconds(message, "date")
    if edited:
        stamp = _seconds(message, "edit_date") if "edit_date" in message else sent_at
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        key, sent_at = f"e:{place.chat}:{message_id}:{stamp}:{digest}", stamp
    return [
        InboundMessage(
            origin=Origin(place=place, sender=sender, sender_name=name, message_id=message_id),
            event_key=key,
            kind=InboundKind.EDIT if edited else InboundKind.MESSAGE,
            text=text,
            sent_at=sent_at * 1000,
            attachments=attachments,
            reply_to=_reply_to(message, place),
        )
    ]


def _place(message: dict[str, Any], me: Me) -> Place:
    chat = _object(message.get("chat"), "chat")
    kind = _KINDS.get(_string(chat, "type"))
    if kind is None:
        raise UnreadableUpdate(f"chat.type is {chat['type']!r}")
    thread = _identity(message, "message_thread_id") if message.get("is_topic_message") else ""
    return Place(channel="telegram", account=me.id, chat=_identity(chat, "id"), kind=kind, thread=thread)


def _moved(me: Me, old: str, new: str) -> ChatMoved:
    return ChatMoved(channel="telegram", account=me.id, old_chat=old, new_chat=new)


def _sender(message: dict[str, Any]) -> tuple[str, str]:
    """Id and name of who wrote; empty for bots, this one included. A chat may write in its own name."""
    if "sender_chat" in message:
        chat = _object(message["sender_chat"], "sender_chat")
        return _identity(chat, "id"), whole(str(chat.get("title", "")))
    user = _object(message.get("from"), "from")
    sender = _identity(user, "id")
    if user.get("is_bot"):
        return "", ""
    names = [str(user[part]) for part in ("first_name", "last_name") if user.get(part)]
    return sender, whole(" ".join(names))


def _text(message: dict[str, Any], me: Me) -> str:
    """Text or caption; a command that is addressed to this bot loses the address."""
    for name in ("text", "caption"):
        if name in message:
            text = whole(_string(message, name))
            command = _COMMAND.match(text)
            if command and command["to"].lower() == me.username.lower():
                return command["verb"] + text[command.end() :]
            return text
    return ""


def _attachments(message: dict[str, Any]) -> tuple[Attachment, ...]:
    found = []
    sizes = message.get("photo")
    if isinstance(sizes, list) and sizes:
        found.append(_attachment(_object(sizes[-1], "photo"), "image", mime="image/jpeg"))
    for name, kind in _ATTACHMENTS.items():
        # An animation comes with a copy of itself as a document.
        if name in message and not (name == "document" and "animation" in message):
            found.append(_attachment(_object(message[name], name), kind))
    return tuple(found)


def _attachment(file: dict[str, Any], kind: str, mime: str = "") -> Attachment:
    mime = str(file.get("mime_type", mime))
    family = mime.partition("/")[0]
    if kind == "file" and family in ("image", "audio", "video"):
        kind = family
    if file.get("is_animated") or file.get("is_video"):
        kind = "video" if file.get("is_video") else "file"
    size = file.get("file_size", 0)
    return Attachment(
        kind=kind,
        ref=_string(file, "file_id"),
        name=whole(str(file.get("file_name", ""))),
        mime=mime,
        size=size if isinstance(size, int) else 0,
    )


def _described(message: dict[str, Any]) -> str:
    """Words for what a person sent without any."""
    for name, words in _DESCRIBED.items():
        if name in message:
            return words.format_map(defaultdict(str, _object(message[name], name)))
    return next((f"[{name}]" for name in _NAMED if name in message), "")


def _reply_to(message: dict[str, Any], place: Place) -> str:
    if "reply_to_message" not in message:
        return ""
    replied = _identity(_object(message["reply_to_message"], "reply_to_message"), "message_id")
    # In a topic every message replies to the one that opened it.
    return "" if replied == place.thread else replied


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableUpdate(f"{name} is no object")
    return value


def _string(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise UnreadableUpdate(f"{name} is no text")
    return value


def _identity(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableUpdate(f"{name} is no whole number")
    return str(value)


def _seconds(fields: dict[str, Any], name: str) -> int:
    """A time in seconds that a calendar knows."""
    value = int(_identity(fields, name))
    if not 0 <= value < 1 << 33:
        raise UnreadableUpdate(f"{name} is no time: {value}")
    return value
