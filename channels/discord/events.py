"""Reads raw events of Discord's gateway into inbound events. Pure.

Messages of people and other bots become an `InboundMessage`; notices of Discord itself (members, pins, link previews)
become nothing. Raises `Unreadable` for an event that is not as documented; the receiver keeps that raw and goes on.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from channels.discord.world import World, identity
from channels.message import Attachment, InboundKind, InboundMessage, Origin, Quoted, UnreadEvent, message_key
from channels.receiver import (
    Unreadable,
    an_object,
    deletion,
    edit_key,
    file_of,
    interaction,
    objects,
    string,
    unread_of,
)
from channels.utf16 import whole

_EPOCH = 1_420_070_400_000
# Types of messages that somebody wrote; all others are notices of Discord.
_SAID = (0, 19, 20, 23)
_FORWARD = 1
_VOICE_MESSAGE = 1 << 13
_TEXT_DISPLAY = 10
_MENTION = re.compile(r"<(?:(?P<kind>@[!&]?|#)(?P<id>\d+)|a?:(?P<emoji>\w+):\d+|/(?P<command>[^:>]+):\d+)>")


def read_event(event: str, data: object, world: World, now: int) -> list[InboundMessage]:
    """Read an event. now: in milliseconds; the time of an event that has none of its own. Raises Unreadable."""
    if event not in ("MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "MESSAGE_DELETE_BULK", "INTERACTION_CREATE"):
        return []
    fields = an_object(data, event)
    match event:
        case "MESSAGE_CREATE":
            return read_message(fields, world)
        case "MESSAGE_UPDATE":
            return _read_edit(fields, world) if fields.get("edited_timestamp") else []
        case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
            ids = fields.get("ids") if event == "MESSAGE_DELETE_BULK" else [fields.get("id")]
            if not isinstance(ids, list):
                raise Unreadable("ids is no list")
            return [_deletion(fields, identity({"id": one}, "id"), world, now) for one in ids]
    return _read_interaction(fields, world)


def unread(event: str, data: object, world: World, error: Exception) -> UnreadEvent:
    """Keep an event that could not be read."""
    return unread_of("discord", world.me, {"t": event, "d": data}, error)


def read_message(message: dict[str, Any], world: World, guild: str = "", mine: bool = False) -> list[InboundMessage]:
    """Read a message of the gateway or the history. guild: its server, which the history omits. mine: also own ones."""
    author = an_object(message.get("author"), "author")
    sender, number = identity(author, "id"), identity(message, "id")
    if (sender == world.me and not mine) or message.get("type", 0) not in _SAID:
        return []
    origin = _origin(message, author, guild or _guild_of(message), world, number)
    reference = message.get("message_reference")
    reference = reference if isinstance(reference, dict) else {}
    forward = reference.get("type") == _FORWARD
    attachments, forwarded = _files(message), _forwarded(message, world)
    text, replied = text_of(message, world), message.get("referenced_message")
    if not text and not attachments and not forwarded:
        return []
    users = [identity(one, "id") for one in objects(message, "mentions")]
    roles = message.get("mention_roles") or []
    said = InboundMessage(
        origin=origin,
        event_key=message_key(origin.place.chat, number),
        kind=InboundKind.MESSAGE,
        text=text,
        sent_at=time_of(number),
        attachments=attachments,
        reply_to="" if forward else str(reference.get("message_id", "")),
        replied=_quoted(replied, world) if isinstance(replied, dict) else None,
        replied_by=_writer(replied, origin, world) if isinstance(replied, dict) else None,
        forwarded=Quoted(author="", text=forwarded) if forwarded else None,
        mentioned=world.me in users or not world.mine.isdisjoint(roles),
        names_others=any(one != world.me for one in users) or any(one not in world.mine for one in roles),
    )
    return [said]


def time_of(snowflake: str) -> int:
    """The time at which an id was made, in milliseconds since the epoch."""
    return (int(snowflake) >> 22) + _EPOCH


def snowflake_at(at: int) -> str:
    """The least id that can be made at a time, given in milliseconds since the epoch."""
    return str(max(at - _EPOCH, 0) << 22)


def _read_edit(fields: dict[str, Any], world: World) -> list[InboundMessage]:
    """An edit by the author. An added link preview comes with the old time of editing, so it gets the old event key."""
    edited = int(datetime.fromisoformat(string(fields, "edited_timestamp")).timestamp() * 1000)
    found = []
    for one in read_message(fields, world):
        key = edit_key(one.origin.place.chat, one.origin.message_id, edited, one.text)
        edit = replace(one, event_key=key, kind=InboundKind.EDIT, sent_at=edited, first_sent_at=one.sent_at)
        found.append(edit)
    return found


def _deletion(fields: dict[str, Any], number: str, world: World, now: int) -> InboundMessage:
    guild = _guild_of(fields)
    place = world.place(identity(fields, "channel_id"), guild)
    return deletion(world.recent.get(number) or Origin(place=place, message_id=number, space=guild), now)


def _read_interaction(fields: dict[str, Any], world: World) -> list[InboundMessage]:
    """A command or a click; other interactions (menus, forms) are never offered."""
    data = fields.get("data")
    data = data if isinstance(data, dict) else {}
    kind, number = fields.get("type"), identity(fields, "id")
    handle = f"{identity(fields, 'application_id')} {string(fields, 'token')} {time_of(number)}"
    if kind == 2 and data.get("type", 1) == 1:
        sort, text, pressed = InboundKind.COMMAND, _typed(data, world), ""
    elif kind == 3 and data.get("component_type") == 2:
        sort, text = InboundKind.BUTTON, string(data, "custom_id")
        pressed = identity(an_object(fields.get("message"), "message"), "id")
        handle += " button"  # its webhook would edit the message with the button
    else:
        return []
    member = fields.get("member")
    user = an_object(member.get("user") if isinstance(member, dict) else fields.get("user"), "user")
    origin = _origin(fields, user, _guild_of(fields), world)
    found = interaction(sort, number, origin, text, time_of(number), handle, pressed)
    return [replace(found, mentioned=True)]


def _typed(data: dict[str, Any], world: World) -> str:
    """A command as people type it: its words in the order of the command's options."""
    name = string(data, "name")
    given = {string(one, "name"): str(one.get("value", "")) for one in objects(data, "options")}
    order = {option: place for place, option in enumerate(world.orders.get(name, ()))}
    words = [given[option] for option in sorted(given, key=lambda option: order.get(option, len(order)))]
    return " ".join(filter(None, [f"/{name}", *words]))


def text_of(message: dict[str, Any], world: World) -> str:
    """The text of a message with readable names, and what stands beside it: polls, stickers, embeds, components.

    A preview of a link, which Discord adds itself, is text only where there is no other.
    """
    content = _readable(str(message.get("content") or ""), message, world)
    parts = [content, *_described(message), *_components(message)]
    boxes = objects(message, "embeds")
    own = [box for box in boxes if box.get("type", "rich") == "rich"]
    for box in own if any(parts) else boxes:
        parts += _embedded(box)
    return whole("\n".join(filter(None, parts)))


def _embedded(box: dict[str, Any]) -> Iterator[str]:
    """The lines of an embed."""
    author, footer = (part if isinstance(part, dict) else {} for part in (box.get("author"), box.get("footer")))
    fields = (f"{one.get('name', '')}: {one.get('value', '')}" for one in objects(box, "fields"))
    found = (author.get("name"), *map(box.get, ("title", "url", "description")), *fields, footer.get("text"))
    yield from (str(one) for one in found if one)


def _components(part: dict[str, Any]) -> Iterator[str]:
    """The texts of components, which stand in place of the content where a message has them."""
    inner = part.get("components")
    for one in inner if isinstance(inner, list) else ():
        if isinstance(one, dict):
            if one.get("type") == _TEXT_DISPLAY:
                yield str(one.get("content") or "")
            yield from _components(one)


def _snapshots(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that one forwards."""
    return [an_object(one.get("message"), "snapshot") for one in objects(message, "message_snapshots")]


def _forwarded(message: dict[str, Any], world: World) -> str:
    return "\n".join(filter(None, (text_of(one, world) for one in _snapshots(message))))


def _files(message: dict[str, Any]) -> tuple[Attachment, ...]:
    parts = (message, *_snapshots(message))
    return tuple(file for part in parts for file in _attachments(part, passed_on=part is not message))


def _readable(content: str, message: dict[str, Any], world: World) -> str:
    names = {str(one.get("id")): name_of(one, one.get("member")) for one in objects(message, "mentions")}
    mine = "|".join((f"@!?{world.me}", *(f"@&{role}" for role in sorted(world.mine))))
    content = re.sub(rf"\A\s*(?:<(?:{mine})>[\s,:]*)+(?=\S)", "", content)  # its name alone is a message

    def shown(found: re.Match[str]) -> str:
        number = found["id"]
        if found["emoji"] or found["command"]:
            return f":{found['emoji']}:" if found["emoji"] else f"/{found['command']}"
        if found["kind"] == "#":
            return f"#{world.spots[number].name}" if number in world.spots else found[0]
        known = world.roles if found["kind"] == "@&" else names
        return f"@{known[number]}" if number in known else found[0]

    return _MENTION.sub(shown, content)


def _described(message: dict[str, Any]) -> Iterator[str]:
    poll = message.get("poll")
    if isinstance(poll, dict):
        media = [an_object(one.get("poll_media"), "poll_media") for one in objects(poll, "answers")]
        question = an_object(poll.get("question"), "question").get("text", "")
        yield f"[poll: {question} / {' / '.join(str(one.get('text', '')) for one in media)}]"
    for sticker in objects(message, "sticker_items"):
        yield f"[sticker: {sticker.get('name', '')}]"


def _attachments(message: dict[str, Any], *, passed_on: bool) -> Iterator[Attachment]:
    spoken = not passed_on and bool((message.get("flags") or 0) & _VOICE_MESSAGE)
    for file in objects(message, "attachments"):
        mime = str(file.get("content_type") or "").partition(";")[0]
        yield file_of(string(file, "url"), file.get("filename"), mime, file.get("size"), spoken=spoken)


def _quoted(message: dict[str, Any], world: World) -> Quoted | None:
    author, files = an_object(message.get("author"), "referenced author"), _files(message)
    text = "\n".join(filter(None, (text_of(message, world), _forwarded(message, world))))
    text = text or " ".join(f"[{file.kind}]" for file in files)
    name, mine = name_of(author, None), author.get("id") == world.me
    return Quoted(author=name, text=text, by_me=mine, attachments=files)


def _writer(message: dict[str, Any], below: Origin, world: World) -> Origin:
    """The origin of a message that is replied to, with roles if it is a recent one. below: the origin of the reply."""
    number, author = identity(message, "id"), an_object(message.get("author"), "referenced author")
    return world.recent.get(number) or Origin(place=below.place, sender=identity(author, "id"), space=below.space)


def name_of(user: dict[str, Any], member: object) -> str:
    """The name of a user as people see it."""
    nick = member.get("nick") if isinstance(member, dict) else None
    return whole(str(nick or user.get("global_name") or user.get("username") or ""))


def _roles(member: object) -> tuple[str, ...]:
    roles = member.get("roles") if isinstance(member, dict) else None
    return tuple(map(str, roles)) if isinstance(roles, list) else ()


def _origin(fields: dict[str, Any], user: dict[str, Any], guild: str, world: World, message_id: str = "") -> Origin:
    """The origin of an event. guild: its server, empty in direct messages."""
    channel, member = identity(fields, "channel_id"), fields.get("member")
    return Origin(
        place=world.place(channel, guild),
        sender=identity(user, "id"),
        sender_name=name_of(user, member),
        message_id=message_id,
        space=guild,
        chat_name=whole(world.spots[channel].name) if channel in world.spots else "",
        by_bot=bool(user.get("bot")) or "webhook_id" in fields,
        roles=_roles(member),
    )


def _guild_of(fields: dict[str, Any]) -> str:
    return identity(fields, "guild_id") if fields.get("guild_id") is not None else ""
