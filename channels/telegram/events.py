"""Reads raw updates of the Bot API into inbound events. Pure.

Everything that a person sent becomes an `InboundMessage`; service messages of Telegram (members, titles, pins) become
nothing. Raises `Unreadable` for an update that is not as documented; the receiver keeps that raw and goes on.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
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
    Quoted,
    UnreadEvent,
    message_key,
)
from channels.receiver import Unreadable, an_object, edit_key, file_of, interaction, string, unread_of
from channels.telegram.text import COMMENTS, with_links
from channels.utf16 import whole

# The kinds of updates that are requested and handled.
ALLOWED_UPDATES = ("message", "edited_message", "callback_query")

_KINDS = {
    "private": ChatKind.DIRECT,
    "group": ChatKind.GROUP,
    "supergroup": ChatKind.GROUP,
    "channel": ChatKind.CHANNEL,
}
_ATTACHMENTS = {
    **dict.fromkeys(("audio", "voice"), "audio"),
    **dict.fromkeys(("video", "video_note", "animation"), "video"),
    "document": "",  # decided by its MIME type
    "sticker": "image",
}
_DESCRIBED = {
    "sticker": "{emoji}",
    "venue": "[venue: {title}, {address}]",  # before location, which a venue has too
    "location": "[location: {latitude}, {longitude}]",
    "contact": "[contact: {first_name} {phone_number}]",
}
# Content with neither text nor file, of which the model is told the kind.
_NAMED = ("dice", "story", "game", "checklist", "paid_media", "giveaway", "invoice", "gift")
_MOST_POSTS = 4096
_COMMAND = re.compile(r"(?P<verb>/\w+)@(?P<to>\w+)(?!\S)")


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself. The texts are empty until getMe has returned."""

    id: str = ""
    # Without the @.
    username: str = ""
    # Whether it receives all messages of its groups (privacy mode is off).
    reads_groups: bool = False
    # The posts of channels that were seen in the groups of their comments, as chat and id. Only a comment that replies
    # to the post itself tells that it is one; others have the post's id as `message_thread_id`, like any reply.
    posts: dict[str, None] = field(default_factory=dict, compare=False)


def read_me(answer: object) -> Me:
    """Read the answer of getMe. Raises Unreadable."""
    me = an_object(answer, "getMe")
    return Me(_identity(me, "id"), string(me, "username"), me.get("can_read_all_group_messages") is True)


def read_update(update: object, me: Me, now: int) -> list[Incoming]:
    """Read an update into at most one event; none when it is of another kind or says nothing.

    now: in milliseconds; the time of a click, which has none of its own. Raises Unreadable.
    """
    fields = an_object(update, "update")
    if len(fields) < 2:
        raise Unreadable("the update is empty")
    if "callback_query" in fields:
        return _read_click(an_object(fields["callback_query"], "callback_query"), me, now)
    for kind in ALLOWED_UPDATES:
        if kind in fields:
            return _read_message(an_object(fields[kind], kind), me, edited=kind == "edited_message")
    return []


def update_id_of(update: object) -> int | None:
    """The id of an update, None when it has none."""
    value = update.get("update_id") if isinstance(update, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def unread(update: object, me: Me, error: Exception) -> UnreadEvent:
    """The value for an update that could not be read."""
    return unread_of("telegram", me.id, update, error, update_id_of(update))


def _read_message(message: dict[str, Any], me: Me, *, edited: bool) -> list[Incoming]:
    place = place_of(message, me)
    message_id = _identity(message, "message_id")
    if "migrate_to_chat_id" in message:
        return [_moved(me, place.chat, _identity(message, "migrate_to_chat_id"))]
    if "migrate_from_chat_id" in message:
        return [_moved(me, _identity(message, "migrate_from_chat_id"), place.chat)]
    origin = _origin(message, place, message_id)
    if not origin.sender or origin.sender == me.id:
        return []
    text, mentioned, names_others = _text(message, me)
    attachments = _attachments(message)
    if edited and not (text or mentioned):
        # A live location that moves or a poll that gets a vote has no new words.
        return []
    text = text or whole(_described(message))
    # The bare name of the bot is a message: it refers to the message replied to, or to the messages before.
    if not (text or attachments or mentioned):
        return []
    key = message_key(place.chat, message_id)
    sent_at = first = _seconds(message, "date")
    if edited:
        stamp = _seconds(message, "edit_date") if "edit_date" in message else sent_at
        key, sent_at = edit_key(place.chat, message_id, stamp, text), stamp
    reply_to, replied, replied_by = _replied(message, place, me)
    # A forwarded text is not the sender's own, so it is no command.
    forwarded = Quoted(author=_author(message["forward_origin"]), text=text) if "forward_origin" in message else None
    album = message.get("media_group_id")
    said = InboundMessage(
        origin=origin,
        event_key=key,
        kind=InboundKind.EDIT if edited else InboundKind.MESSAGE,
        text="" if forwarded else text,
        sent_at=sent_at * 1000,
        attachments=attachments,
        reply_to=reply_to,
        replied=replied,
        replied_by=replied_by,
        forwarded=forwarded,
        mentioned=mentioned,
        names_others=names_others,
        part_of=f"album:{album}" if isinstance(album, str) else "",
        first_sent_at=first * 1000 if edited else 0,
    )
    return [said]


def _read_click(query: dict[str, Any], me: Me, now: int) -> list[Incoming]:
    """Read a click on a button; nothing when it has no data (a game) or no chat (an inline message)."""
    query_id = string(query, "id")
    if "data" not in query or "message" not in query:
        return []
    message = an_object(query["message"], "message")
    place = place_of(message, me)
    sender, name = _person(an_object(query.get("from"), "from"))
    origin = Origin(place=place, sender=sender, sender_name=name, chat_name=_title(message))
    pressed = _identity(message, "message_id")
    return [interaction(InboundKind.BUTTON, query_id, origin, string(query, "data"), now, query_id, pressed)]


def place_of(message: dict[str, Any], me: Me) -> Place:
    """The place of a message: its chat, and its topic or the post that it comments on. Raises Unreadable."""
    chat = an_object(message.get("chat"), "chat")
    kind = _KINDS.get(string(chat, "type"))
    if kind is None:
        raise Unreadable(f"chat.type is {chat['type']!r}")
    number, in_one = _identity(chat, "id"), "message_thread_id" in message or "is_automatic_forward" in message
    thread = _thread(message, number, me) if in_one else ""
    return Place(channel="telegram", account=me.id, chat=number, kind=kind, thread=thread)


def _thread(message: dict[str, Any], chat: str, me: Me) -> str:
    if message.get("is_topic_message"):
        return _identity(message, "message_thread_id")
    for seen in (message, message.get("reply_to_message")):
        if isinstance(seen, dict) and seen.get("is_automatic_forward"):
            post = _identity(seen, "message_id")
            me.posts[f"{chat}:{post}"] = None
            if len(me.posts) > _MOST_POSTS:
                del me.posts[next(iter(me.posts))]
            return COMMENTS + post
    post = str(message.get("message_thread_id"))
    return COMMENTS + post if f"{chat}:{post}" in me.posts else ""


def _moved(me: Me, old: str, new: str) -> ChatMoved:
    return ChatMoved(channel="telegram", account=me.id, old_chat=old, new_chat=new)


def _origin(message: dict[str, Any], place: Place, message_id: str) -> Origin:
    """The origin of a message. The sender may be a chat that writes in its own name."""
    by_bot = False
    if "sender_chat" in message:
        chat = an_object(message["sender_chat"], "sender_chat")
        sender, name = _identity(chat, "id"), whole(str(chat.get("title", "")))
    else:
        user = an_object(message.get("from"), "from")
        (sender, name), by_bot = _person(user), user.get("is_bot") is True
    return Origin(
        place=place, sender=sender, sender_name=name, message_id=message_id, chat_name=_title(message), by_bot=by_bot
    )


def _person(user: dict[str, Any]) -> tuple[str, str]:
    names = [str(user[part]) for part in ("first_name", "last_name") if user.get(part)]
    return _identity(user, "id"), whole(" ".join(names))


def _title(message: dict[str, Any]) -> str:
    return whole(str(an_object(message.get("chat"), "chat").get("title", "")))


def _text(message: dict[str, Any], me: Me) -> tuple[str, bool, bool]:
    """The text or caption without the bot's name at its beginning; whether it mentions the bot, and somebody else."""
    for name, marks in (("text", "entities"), ("caption", "caption_entities")):
        if name in message:
            raw = string(message, name)
            text = whole(raw)
            named = _named(text, message.get(marks), me)
            text = with_links(raw, message[marks]) if marks in message else text
            command = _COMMAND.match(text)
            if command and command["to"].lower() == me.username.lower():
                return command["verb"] + text[command.end() :], True, False in named
            start = re.match(rf"@{re.escape(me.username)}\b[\s,:]*", text, re.IGNORECASE)
            return text[start.end() :] if start else text, start is not None or True in named, False in named
    return "", False, False


def _named(text: str, entities: object, me: Me) -> set[bool]:
    """Whom the entities of a text mention: True for the bot, False for somebody else. Malformed ones are skipped."""
    encoded = text.encode("utf-16-le")
    found = set()
    for entity in entities if isinstance(entities, list) else ():
        match entity:
            case {"type": "text_mention", "user": {"id": int() as user}}:
                found.add(str(user) == me.id)
            case {"type": "mention" | "bot_command" as kind, "offset": int() as offset, "length": int() as length}:
                words = encoded[2 * offset : 2 * (offset + length)].decode("utf-16-le", "replace")
                to = words.partition("@")[2].lower()
                if to and (kind == "mention" or to == me.username.lower()):
                    found.add(to == me.username.lower())
    return found


def _attachments(message: dict[str, Any]) -> tuple[Attachment, ...]:
    found = []
    sizes = message.get("photo")
    if isinstance(sizes, list) and sizes:
        found.append(_attachment(an_object(sizes[-1], "photo"), "image", mime="image/jpeg"))
    for name, kind in _ATTACHMENTS.items():
        # An animation has a copy of itself as a document.
        if name in message and not (name == "document" and "animation" in message):
            mime = "video/mp4" if name == "video_note" else ""  # of which Telegram tells none
            file = an_object(message[name], name)
            found.append(_attachment(file, kind, mime, spoken=name in ("voice", "video_note")))
    return tuple(found)


def _attachment(file: dict[str, Any], kind: str, mime: str = "", *, spoken: bool = False) -> Attachment:
    mime = str(file.get("mime_type", mime))
    if file.get("is_animated") or file.get("is_video"):
        kind = "video" if file.get("is_video") else "file"
    name, size = file.get("file_name"), file.get("file_size")
    return file_of(string(file, "file_id"), name, mime, size, kind, spoken=spoken)


def _described(message: dict[str, Any]) -> str:
    """A description of content without a text of its own."""
    if "poll" in message:
        poll = an_object(message["poll"], "poll")
        options = poll.get("options")
        texts = [one.get("text") for one in options if isinstance(one, dict)] if isinstance(options, list) else []
        words = " / ".join(str(text) for text in (poll.get("question"), *texts) if text)
        return f"[poll: {words}]" if words else "[poll]"
    for name, words in _DESCRIBED.items():
        if name in message:
            return words.format_map(defaultdict(str, an_object(message[name], name)))
    return next((f"[{name}]" for name in _NAMED if name in message), "")


def _replied(message: dict[str, Any], place: Place, me: Me) -> tuple[str, Quoted | None, Origin | None]:
    """Id, text and origin of the message that this one replies to; only the text when that is in another chat."""
    quote = message.get("quote")
    words = with_links(str(quote.get("text", "")), quote.get("entities")) if isinstance(quote, dict) else ""
    if "reply_to_message" not in message:
        external = message.get("external_reply")
        if not isinstance(external, dict):
            return "", Quoted(author="", text=words) if words else None, None
        files = _attachments(external)
        words = words or whole(_described(external)) or _kinds(files)
        author = _author(external.get("origin"))
        return "", Quoted(author=author, text=words, attachments=files) if words else None, None
    replied = an_object(message["reply_to_message"], "reply_to_message")
    message_id = _identity(replied, "message_id")
    if message_id == place.thread:  # in a topic every message replies to the one that opened it
        return "", None, None
    try:
        origin = _origin(replied, place, message_id)
    except Unreadable:  # not every message has a sender
        origin = Origin(place=place)
    text = words or _text(replied, me)[0] or whole(_described(replied))
    files = _attachments(replied)
    quoted = Quoted(author=origin.sender_name, text=text or _kinds(files), by_me=origin.sender == me.id)
    return message_id, replace(quoted, attachments=files), origin


def _kinds(files: Iterable[Attachment]) -> str:
    return " ".join(f"[{file.kind}]" for file in files)


def _author(origin: object) -> str:
    """The author of a quoted or forwarded message; empty when Telegram hides it."""
    match origin:
        case {"sender_user": dict() as user}:
            return _person(user)[1]
        case {"sender_user_name": str() as name}:
            return whole(name)
        case {"sender_chat": {"title": str() as title}} | {"chat": {"title": str() as title}}:
            return whole(title)
    return ""


def _identity(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Unreadable(f"{name} is no whole number")
    return str(value)


def _seconds(fields: dict[str, Any], name: str) -> int:
    """The Unix time in a field, in seconds. Raises Unreadable when it is out of range."""
    value = int(_identity(fields, name))
    if not 0 <= value < 1 << 33:
        raise Unreadable(f"{name} is no time: {value}")
    return value
