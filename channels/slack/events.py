"""Reads what Slack sends into inbound events. Pure, except that `Known` requests the names that it lacks.

The same message comes as `message`, as `app_mention` and in the history, and gets the same key and fields each time.
Notices of Slack itself (joins, pins, link previews) become nothing. Raises `Unreadable` for a payload that is not as
documented.
"""

import re
from typing import Any

from channels.message import Attachment, ChatKind, InboundKind, InboundMessage, Incoming, Origin, Quoted, message_key
from channels.receiver import Unreadable, an_object, deletion, edit_key, file_of, interaction, string, unread_of
from channels.slack.known import Known
from channels.slack.render import handle_of
from channels.slack.text import markup_of, mentions, readable, without_first
from channels.utf16 import whole

# The types of event that are read.
EVENTS = ("app_mention", "message")
# The subtypes of messages that somebody wrote.
_SPOKEN = ("", "bot_message", "file_share", "me_message", "thread_broadcast")
# What Slack writes as the fallback of an attachment of blocks.
_NOTHING = "[no preview available]"
_TS = re.compile(r"\d{1,11}\.\d{6}")


def read(body: Any, known: Known, now: int) -> list[Incoming]:
    """Read a request or an envelope into events; none when it is of another kind.

    now: in milliseconds; the time of an event that has none of its own.
    """
    if "command" in body:
        return [_command(body, known, now)]
    if body.get("type") == "block_actions":
        return _clicks(body, known)
    event = an_object(body.get("event"), "event") if body.get("type") == "event_callback" else {}
    return read_message(event, known) if event.get("type") in EVENTS else []


def read_message(event: dict[str, Any], known: Known, mine: bool = False) -> list[Incoming]:
    """Read an event of EVENTS, or a message of the history with `channel` and `channel_type` added.

    mine: also the bot's own messages.
    """
    match event.get("subtype") or "":
        case "message_changed":
            return _changed(event, known)
        case "message_deleted":
            return _deleted(event, event.get("previous_message") or {}, string(event, "deleted_ts"), known)
        case "tombstone":
            return _deleted(event, event, string(event, "ts"), known)
        case subtype if subtype not in _SPOKEN:
            return []
    if not mine and _is_mine(event, known):
        return []
    message_id = _ts(event, "ts")
    key = message_key(string(event, "channel"), message_id)
    return _words(event, InboundKind.MESSAGE, key, _milliseconds(message_id), known)


def unread(body: Any, known: Known, error: Exception) -> Incoming:
    """Keep a payload that could not be read."""
    kept = {name: value for name, value in body.items() if name != "token"}
    return unread_of("slack", known.me, kept, error, body.get("event_id") or None)


def _words(event: dict[str, Any], kind: InboundKind, key: str, sent_at: int, known: Known) -> list[Incoming]:
    """A message or an edit; nothing when it has no content."""
    text = _text(event)
    shared, others = _attached(event)
    text = "\n".join(filter(None, (text, *map(_attached_words, others))))
    files = {file.get("id"): file for one in (event, *shared, *others) for file in one.get("files") or ()}
    attachments = tuple(_file(file) for file in files.values() if file.get("mode") != "tombstone")
    if not text and not attachments and not shared:
        return []
    named = mentions(text)
    message = InboundMessage(
        origin=_origin(event, known),
        event_key=key,
        kind=kind,
        text=whole(readable(without_first(text, known.me), known.name)),
        sent_at=sent_at,
        first_sent_at=_milliseconds(_ts(event, "ts")) if kind is InboundKind.EDIT else 0,
        attachments=attachments,
        forwarded=_quoted(shared, known) if shared else None,
        mentioned=known.me in named or event.get("type") == "app_mention",
        names_others=bool(named - {known.me}),
    )
    return [message]


def _origin(event: dict[str, Any], known: Known, chat: str = "", message_id: str = "") -> Origin:
    chat = chat or string(event, "channel")
    message_id = message_id or _ts(event, "ts")
    sender = event.get("user") or event.get("bot_id")
    if not isinstance(sender, str):
        raise Unreadable("nobody has sent it")
    thread = _ts(event, "thread_ts") if event.get("thread_ts") else ""
    profile = event.get("bot_profile") or {}
    return Origin(
        place=known.place(chat, str(event.get("channel_type", "")), thread if thread != message_id else ""),
        sender=sender,
        sender_name=whole(known.name(sender) or str(event.get("username") or profile.get("name") or "")),
        message_id=message_id,
        chat_name=known.name(chat),
        by_bot=bool(event.get("bot_id")),
    )


def _is_mine(message: dict[str, Any], known: Known) -> bool:
    return message.get("user") == known.me or (bool(known.bot_id) and message.get("bot_id") == known.bot_id)


def _changed(event: dict[str, Any], known: Known) -> list[Incoming]:
    """An edit or a deletion. Slack also reports a change when it adds a link preview or counts replies."""
    message = an_object(event.get("message"), "message")
    if message.get("subtype") == "tombstone":
        return _deleted(event, event.get("previous_message") or message, string(message, "ts"), known)
    edited, before = message.get("edited"), event.get("previous_message") or {}
    if not edited or edited == before.get("edited") or (message.get("subtype") or "") not in _SPOKEN:
        return []
    if _is_mine(message, known):
        return []
    message_id, stamp = _ts(message, "ts"), _ts(edited, "ts")
    chat = string(event, "channel")
    told = {**message, "channel": chat, "channel_type": event.get("channel_type", "")}
    key = edit_key(chat, message_id, stamp, str(message.get("text", "")))
    return _words(told, InboundKind.EDIT, key, _milliseconds(stamp), known)


def _deleted(event: dict[str, Any], message: dict[str, Any], ts: str, known: Known) -> list[Incoming]:
    if _is_mine(message, known):
        return []
    chat = string(event, "channel")
    at = event.get("event_ts") or event.get("ts")
    told = {**message, "user": message.get("user") or "USLACKBOT", "channel_type": event.get("channel_type", "")}
    return [deletion(_origin(told, known, chat, ts), _milliseconds(_ts({"ts": at}, "ts")))]


def _command(body: dict[str, Any], known: Known, now: int) -> InboundMessage:
    """A slash command: the words after it are the command; without any it is help.

    It can also be typed in direct messages of two people, where the bot is not.
    """
    chat, sender = string(body, "channel_id"), string(body, "user_id")
    place = known.place(chat, "mpim" if str(body.get("channel_name", "")).startswith("mpdm-") else "")
    name = known.name(sender) or str(body.get("user_name", ""))
    outside = place.kind is ChatKind.DIRECT and not known.is_in(chat)
    origin = Origin(place=place, sender=sender, sender_name=whole(name), chat_name=known.name(chat), outside=outside)
    text = f"/{readable(body.get('text') or '', known.name).strip().lstrip('/') or 'help'}"
    respond = handle_of(body, sender, now)
    return interaction(InboundKind.COMMAND, string(body, "trigger_id"), origin, text, now, respond)


def _clicks(body: dict[str, Any], known: Known) -> list[Incoming]:
    """Clicks on the buttons of this bot, which have a value."""
    container, user = an_object(body.get("container"), "container"), an_object(body.get("user"), "user")
    if container.get("type") != "message":
        return []
    chat, message_id = string(container, "channel_id"), _ts(container, "message_ts")
    message = {**container, **(body.get("message") or {}), "user": string(user, "id"), "bot_id": None}
    name = str((body.get("channel") or {}).get("name", ""))
    message["channel_type"] = "mpim" if name.startswith("mpdm-") else ""
    message["username"] = user.get("username") or user.get("name")
    found: list[Incoming] = []
    for action in body.get("actions") or ():
        if action.get("type") == "button" and action.get("value"):
            origin = _origin({**message, "bot_profile": None}, known, chat, message_id)
            at, sends = _ts(action, "action_ts"), string(action, "value")
            sent_at = _milliseconds(at)
            respond = handle_of(body, origin.sender, sent_at)
            found.append(interaction(InboundKind.BUTTON, at, origin, sends, sent_at, respond, message_id))
    return found


def _attached(event: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The messages that an event forwards, and other attachments; link previews are neither."""
    attached = [one for one in event.get("attachments") or () if isinstance(one, dict)]
    shared = [one for one in attached if one.get("is_share") or one.get("is_msg_unfurl")]
    return shared, [one for one in attached if one not in shared and not one.get("from_url")]


def _attached_words(attached: dict[str, Any]) -> str:
    words = [str(attached[name]) for name in ("pretext", "title") if attached.get(name)]
    fields = [one for one in attached.get("fields") or () if isinstance(one, dict)]
    words += [_text(attached), *(f"{one.get('title', '')}: {one.get('value', '')}" for one in fields)]
    fallback = str(attached.get("fallback") or "").replace(_NOTHING, "")
    return "\n".join(filter(None, words)) or fallback


def _text(part: dict[str, Any]) -> str:
    """The text of a message or an attachment, and of its blocks what the text lacks: a pasted table, the body of a
    notice. The text of `rich_text` is a copy of them."""
    text, blocks = str(part.get("text") or ""), part.get("blocks")
    if not text:
        return markup_of(blocks)
    rest = [one for one in blocks or () if isinstance(one, dict) and one.get("type") != "rich_text"]
    return "\n".join((text, *(words for one in rest if (words := markup_of([one])) and words not in text)))


def _quoted(shared: list[dict[str, Any]], known: Known) -> Quoted:
    first = shared[0]
    author = str(first.get("author_id") or "")
    name = known.name(author) or str(first.get("author_name") or first.get("author_subname") or author)
    words = "\n".join(filter(None, map(_shared_words, shared)))
    mine = bool(author) and author in (known.me, known.bot_id)
    return Quoted(author=whole(name), text=whole(readable(words, known.name)), by_me=mine)


def _shared_words(shared: dict[str, Any]) -> str:
    """The words of a forwarded message; its blocks stand apart, in `message_blocks`."""
    blocks = [one.get("message") for one in shared.get("message_blocks") or () if isinstance(one, dict)]
    found = [one.get("blocks") or [] for one in blocks if isinstance(one, dict)]
    words = _text({**shared, "blocks": [*(shared.get("blocks") or ()), *(block for one in found for block in one)]})
    return words or str(shared.get("fallback") or "").replace(_NOTHING, "")


def _file(file: dict[str, Any]) -> Attachment:
    url = file.get("url_private_download") or file.get("url_private") or ""
    ref = f"{string(file, 'id')} {url}".strip()
    # an audio clip, whose type may be one of videos
    spoken = file.get("subtype") == "slack_audio"
    return file_of(ref, file.get("name"), str(file.get("mimetype") or ""), file.get("size"), spoken=spoken)


def _ts(fields: Any, name: str) -> str:
    """A ts, the time by which Slack identifies messages. Raises Unreadable."""
    value = string(fields, name)
    if not _TS.fullmatch(value):
        raise Unreadable(f"{name} is no time: {value[:40]}")
    return value


def _milliseconds(ts: str) -> int:
    seconds, _, micro = ts.partition(".")
    return int(seconds) * 1000 + int(micro) // 1000
