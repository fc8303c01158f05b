"""What Slack sends to what the service takes in. Pure, but that `Known` notes whom it was asked for.

The same message comes as `message`, as `app_mention` and in the history: with the same key, and with everything that
matters in each of them. What Slack itself tells (joins, pins, previews of links) becomes nothing. Raises
`Unreadable` for what is not as documented.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from channels.fields import Unreadable, an_object, edit_key, kind_of, size_of, string, unread_event
from channels.message import (
    Attachment,
    ChatKind,
    InboundKind,
    InboundMessage,
    Incoming,
    Origin,
    Place,
    Quoted,
    UnreadEvent,
    message_key,
)
from channels.slack.known import Known
from channels.slack.text import markup_of, mentions, readable, without_first
from channels.utf16 import whole

# The types of event that are read.
EVENTS = ("app_mention", "message")
# Subtypes of messages that are somebody's words.
_SPOKEN = ("", "bot_message", "file_share", "me_message", "thread_broadcast")
_TS = re.compile(r"\d{1,11}\.\d{6}")


@dataclass(frozen=True, slots=True)
class Me:
    """The bot itself: its ids as a user and as a bot, and its name; empty until Slack has told them."""

    id: str = ""
    bot_id: str = ""
    name: str = ""


def read_me(answer: Any) -> Me:
    """The answer of auth.test. Raises Unreadable."""
    return Me(string(answer, "user_id"), str(answer.get("bot_id")), string(answer, "user"))


def read(body: Any, me: Me, known: Known, now: int) -> list[Incoming]:
    """What a request or an envelope means for the service; nothing when it is of a kind that is not read.

    now: milliseconds, for what carries no time of its own.
    """
    if "command" in body:
        return [_command(body, me, known, now)]
    if body.get("type") == "block_actions":
        return _clicks(body, me, known)
    event = an_object(body.get("event"), "event") if body.get("type") == "event_callback" else {}
    return read_message(event, me, known) if event.get("type") in EVENTS else []


def read_message(event: dict[str, Any], me: Me, known: Known, mine: bool = False) -> list[Incoming]:
    """An event of EVENTS, or a message of the history with `channel` and `channel_type` added. mine: also own ones."""
    match event.get("subtype") or "":
        case "message_changed":
            return _changed(event, me, known)
        case "message_deleted":
            return _deleted(event, event.get("previous_message") or {}, string(event, "deleted_ts"), me, known)
        case "tombstone":
            return _deleted(event, event, string(event, "ts"), me, known)
        case subtype if subtype not in _SPOKEN:
            return []
    if not mine and _is_mine(event, me):
        return []
    message_id = _ts(event, "ts")
    key = message_key(string(event, "channel"), message_id)
    return _words(event, InboundKind.MESSAGE, key, _milliseconds(message_id), me, known)


def unread(body: Any, me: Me, error: Exception) -> UnreadEvent:
    """The value for what could not be read."""
    kept = {name: value for name, value in body.items() if name != "token"}
    return unread_event("slack", me.id, kept, error, body.get("event_id") or None)


def _words(event: dict[str, Any], kind: InboundKind, key: str, sent_at: int, me: Me, known: Known) -> list[Incoming]:
    """A message, or what it says after an edit; nothing when it says nothing."""
    text = event.get("text") or markup_of(event.get("blocks"))
    shared, others = _attached(event)
    text = text or "\n".join(filter(None, map(_attached_words, others)))
    attachments = tuple(_file(file) for file in event.get("files") or () if file.get("mode") != "tombstone")
    if not text and not attachments and not shared:
        return []
    named = mentions(text)
    return [
        InboundMessage(
            origin=_origin(event, me, known),
            event_key=key,
            kind=kind,
            text=whole(readable(without_first(text, me.id), _names(me, known))),
            sent_at=sent_at,
            attachments=attachments,
            forwarded=_quoted(shared[0], me, known) if shared else None,
            mentioned=me.id in named or event.get("type") == "app_mention",
            names_others=bool(named - {me.id}),
        )
    ]


def _origin(event: dict[str, Any], me: Me, known: Known, chat: str = "", message_id: str = "") -> Origin:
    chat = chat or string(event, "channel")
    message_id = message_id or _ts(event, "ts")
    kind = known.kind(chat, str(event.get("channel_type", "")))
    sender = event.get("user") or event.get("bot_id")
    if not isinstance(sender, str):
        raise Unreadable("nobody has sent it")
    thread = _ts(event, "thread_ts") if event.get("thread_ts") else ""
    profile = event.get("bot_profile") or {}
    return Origin(
        place=_place(me, chat, kind, thread if thread != message_id else ""),
        sender=sender,
        sender_name=whole(known.name(sender) or str(event.get("username") or profile.get("name") or "")),
        message_id=message_id,
        chat_name=known.name(chat),
        by_bot=bool(event.get("bot_id")),
    )


def _place(me: Me, chat: str, kind: ChatKind, thread: str) -> Place:
    return Place(channel="slack", account=me.id, chat=chat, kind=kind, thread=thread)


def _is_mine(message: dict[str, Any], me: Me) -> bool:
    return message.get("user") == me.id or (bool(me.bot_id) and message.get("bot_id") == me.bot_id)


def _changed(event: dict[str, Any], me: Me, known: Known) -> list[Incoming]:
    """An edit or a deletion; Slack also calls it a change when it adds a preview or counts replies."""
    message = an_object(event.get("message"), "message")
    if message.get("subtype") == "tombstone":
        return _deleted(event, event.get("previous_message") or message, string(message, "ts"), me, known)
    edited, before = message.get("edited"), event.get("previous_message") or {}
    if not edited or edited == before.get("edited") or (message.get("subtype") or "") not in _SPOKEN:
        return []
    if _is_mine(message, me):
        return []
    message_id, stamp = _ts(message, "ts"), _ts(edited, "ts")
    chat = string(event, "channel")
    told = {**message, "channel": chat, "channel_type": event.get("channel_type", "")}
    key = edit_key(chat, message_id, stamp, str(message.get("text", "")))
    return _words(told, InboundKind.EDIT, key, _milliseconds(stamp), me, known)


def _deleted(event: dict[str, Any], message: dict[str, Any], ts: str, me: Me, known: Known) -> list[Incoming]:
    if _is_mine(message, me):
        return []
    chat = string(event, "channel")
    at = event.get("event_ts") or event.get("ts")
    told = {**message, "user": message.get("user") or "USLACKBOT", "channel_type": event.get("channel_type", "")}
    return [
        InboundMessage(
            origin=_origin(told, me, known, chat, ts),
            event_key=f"d:{chat}:{ts}",
            kind=InboundKind.DELETE,
            text="",
            sent_at=_milliseconds(_ts({"ts": at}, "ts")),
        )
    ]


def _command(body: dict[str, Any], me: Me, known: Known, now: int) -> InboundMessage:
    """What stands behind the slash command is a command of its own; alone it asks for help."""
    chat, sender = string(body, "channel_id"), string(body, "user_id")
    mpim = str(body.get("channel_name", "")).startswith("mpdm-")
    place = _place(me, chat, known.kind(chat, "mpim" if mpim else ""), "")
    name = known.name(sender) or str(body.get("user_name", ""))
    text = whole(readable(body.get("text") or "", _names(me, known)))
    return InboundMessage(
        origin=Origin(place=place, sender=sender, sender_name=whole(name), chat_name=known.name(chat)),
        event_key=f"c:{string(body, 'trigger_id')}",
        kind=InboundKind.COMMAND,
        text=f"/{text.strip().lstrip('/') or 'help'}",
        sent_at=now,
        respond=str(body.get("response_url", "")),
    )


def _clicks(body: dict[str, Any], me: Me, known: Known) -> list[Incoming]:
    """Presses of buttons that this bot made: those with a value."""
    container, user = an_object(body.get("container"), "container"), an_object(body.get("user"), "user")
    if container.get("type") != "message":
        return []
    chat, message_id = string(container, "channel_id"), _ts(container, "message_ts")
    message = {**container, **(body.get("message") or {}), "user": string(user, "id"), "bot_id": None}
    name = str((body.get("channel") or {}).get("name", ""))
    message["channel_type"] = "mpim" if name.startswith("mpdm-") else ""
    message["username"] = user.get("username") or user.get("name")
    return [
        InboundMessage(
            origin=_origin({**message, "bot_profile": None}, me, known, chat, message_id),
            event_key=f"b:{_ts(action, 'action_ts')}",
            kind=InboundKind.BUTTON,
            text=whole(string(action, "value")),
            sent_at=_milliseconds(action["action_ts"]),
            reply_to=message_id,
            respond=str(body.get("response_url", "")),
        )
        for action in body.get("actions") or ()
        if action.get("type") == "button" and action.get("value")
    ]


def _attached(event: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Messages that it passes on, and what a program attached; previews of links are neither."""
    attached = [one for one in event.get("attachments") or () if isinstance(one, dict)]
    shared = [one for one in attached if one.get("is_share") or one.get("is_msg_unfurl")]
    return shared, [one for one in attached if one not in shared and not one.get("from_url")]


def _attached_words(attached: dict[str, Any]) -> str:
    words = [str(attached[name]) for name in ("pretext", "title", "text") if attached.get(name)]
    return "\n".join(words) or markup_of(attached.get("blocks")) or str(attached.get("fallback") or "")


def _quoted(shared: dict[str, Any], me: Me, known: Known) -> Quoted:
    author = str(shared.get("author_id") or "")
    name = known.name(author) or str(shared.get("author_name") or shared.get("author_subname") or author)
    words = str(shared.get("text") or shared.get("fallback") or "")
    return Quoted(
        author=whole(name),
        text=whole(readable(words, _names(me, known))),
        by_me=bool(author) and author in (me.id, me.bot_id),
    )


def _names(me: Me, known: Known) -> Callable[[str], str]:
    return lambda ident: me.name if ident == me.id else known.name(ident)


def _file(file: dict[str, Any]) -> Attachment:
    mime = str(file.get("mimetype") or "")
    return Attachment(
        kind=kind_of(mime),
        ref=f"{string(file, 'id')} {file.get('url_private_download') or file.get('url_private') or ''}".strip(),
        name=whole(str(file.get("name") or "")),
        mime=mime,
        size=size_of(file, "size"),
    )


def _ts(fields: Any, name: str) -> str:
    """A time as Slack names messages by it."""
    value = string(fields, name)
    if not _TS.fullmatch(value):
        raise Unreadable(f"{name} is no time: {value[:40]}")
    return value


def _milliseconds(ts: str) -> int:
    seconds, _, micro = ts.partition(".")
    return int(seconds) * 1000 + int(micro) // 1000
