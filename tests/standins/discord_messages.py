"""Methods of the Discord stand-in for messages: reading, sending, editing, deleting, reacting, pinning."""

import re
from typing import Any

from tests.standins import discord_fields as fields
from tests.standins import discord_objects as objects
from tests.standins.discord_content import allowed_of, check_message, may_speak
from tests.standins.discord_fields import record
from tests.standins.discord_files import File
from tests.standins.discord_ledger import NOBODY, Json, Refusal, Sent, form, unknown
from tests.standins.discord_objects import Intent, Permission
from tests.standins.discord_people import PING_ALL, Allowed, Draft
from tests.standins.discord_routes import Asked, route
from tests.standins.discord_world import is_thread

NONCE_SECONDS = 300.0
MAX_REACTIONS = 20
HISTORY = record(
    limit={"type": ["integer", "null"], "minimum": 1, "maximum": 100},
    before=fields.SNOWFLAKE,
    after=fields.SNOWFLAKE,
)


# Reading


def shown(server: Any, message: Json) -> Json:
    """A message as this application may read it."""
    veiled: Json = server.veil(server.show(message), readable=Intent.MESSAGE_CONTENT in server.granted)
    return veiled


@route("GET", "/channels/{channel}/messages", query=HISTORY)
def history(server: Any, asked: Asked) -> list[Json]:
    """The newest first, at most `limit` (50): the last ones, those directly before or after an id."""
    channel = server.channel(asked["channel"])
    if channel["type"] == objects.FORUM:
        raise Refusal(400, 50024, "Cannot execute action on this channel type")
    given = {name: int(asked.query[name]) for name in ("before", "after") if asked.query.get(name)}
    if len(given) > 1:
        raise form("", "BASE_TYPE_EXCLUSIVE", "before and after are mutually exclusive")
    if not server.permissions(server.bot, channel) & Permission.READ_MESSAGE_HISTORY:
        return []
    limit = asked.query.get("limit") or 50
    known = sorted(server.stored[channel["id"]].values(), key=lambda one: int(one["id"]))
    if "after" in given:
        known = [one for one in known if int(one["id"]) > given["after"]][:limit]
    else:
        known = [one for one in known if int(one["id"]) < given.get("before", 1 << 64)][-limit:]
    return [shown(server, one) for one in reversed(known)]


def readable(server: Any, asked: Asked) -> Json:
    """The message that a path names; needs READ_MESSAGE_HISTORY."""
    channel = server.channel(asked["channel"])
    server.demand(channel, Permission.READ_MESSAGE_HISTORY)
    message: Json = server.message(channel["id"], asked["message"])
    return message


@route("GET", "/channels/{channel}/messages/{message}")
def one_message(server: Any, asked: Asked) -> Json:
    return shown(server, readable(server, asked))


# Sending


@route("POST", "/channels/{channel}/messages", body=fields.MESSAGE, files=True)
def send(server: Any, asked: Asked) -> Json:
    """Send, unless a message with the same nonce was sent a moment ago: then that one is the answer."""
    channel = server.channel(asked["channel"])
    body: Json = asked.body
    may_speak(server, channel, body)
    check_message(server, channel, body, asked.files)
    earlier = _earlier(server, channel, body)
    if earlier is not None:
        return shown(server, earlier) | {"nonce": body["nonce"]}
    built = write(server, channel, body, asked.files, method="send")
    if body.get("nonce") is not None:
        server.nonces[channel["id"], str(body["nonce"])] = (built["id"], server.wall())
        return shown(server, built) | {"nonce": body["nonce"]}
    return shown(server, built)


def _earlier(server: Any, channel: Json, body: Json) -> Json | None:
    """The message that a nonce has made already, as long as Discord remembers it and it stands."""
    key = (channel["id"], str(body.get("nonce")))
    known, at = server.nonces.get(key, ("", 0.0))
    if not body.get("enforce_nonce") or server.wall() - at > NONCE_SECONDS:
        return None
    found: Json | None = server.stored[channel["id"]].get(known)
    return found


def write(
    server: Any,
    channel: Json,
    body: Json,
    files: dict[str, File],
    *,
    method: str,
    default: Allowed = PING_ALL,
    **more: Any,
) -> Json:
    """Put a message of the bot into a channel and note that it was sent."""
    replied = _reference(server, channel, body)
    more = {"flags": body.get("flags") or 0} | more
    more["components"] = body.get("components") or []
    draft = Draft(
        objects.user(server.bot),
        (body.get("content") or "").strip(),
        replied,
        allowed_of(body, default),
        named(files, body),
        more,
        body.get("nonce"),
    )
    built: Json = server.post(channel, draft, by=server.bot)
    note(server, method, built, body, new=True, reply_to=replied["id"] if replied else None)
    return built


def note(
    server: Any, method: str, message: Json, body: Json, *, new: bool = False, reply_to: str | None = None
) -> None:
    """Remember a visible call. An edit pings nobody, not even the one that fills a deferred answer."""
    pings = server.pings_of(message) if new else NOBODY
    words, flags = body.get("content") or "", message["flags"]
    links = [] if flags & objects.SUPPRESS_EMBEDS else objects.LINK.findall(objects.CODE.sub("", words))
    where = (message["channel_id"], message["id"])
    one = Sent(method, *where, words, server.clock(), body, pings, flags, reply_to, tuple(links))
    server.ledger.sent.append(one)


def named(files: dict[str, File], body: Json) -> list[File]:
    """The uploads, with what `attachments` says of each."""
    said = {str(one["id"]): one for one in body.get("attachments") or ()}
    found: list[File] = []
    for number, file in files.items():
        about = said.get(number, {})
        more = {name: about[name] for name in ("description", "title", "duration_secs", "waveform") if name in about}
        found.append(File(about.get("filename", file.filename), file.data, file.content_type, tuple(more.items())))
    return found


def _reference(server: Any, channel: Json, body: Json) -> Json | None:
    """The message that is replied to."""
    reference = body.get("message_reference")
    if not reference:
        return None
    known = server.stored.get(channel["id"], {}).get(str(reference["message_id"]))
    if not server.permissions(server.bot, channel) & Permission.READ_MESSAGE_HISTORY:
        raise Refusal(403, 160002, "Cannot reply without permission to read message history")
    if known is None and reference.get("fail_if_not_exists") is not False:
        raise Refusal(400, 50035, "Invalid Form Body", errors=_unknown_reference())
    if known is not None and known["type"] not in (objects.DEFAULT, objects.REPLY, objects.COMMAND, 23):
        raise form("message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message")
    found: Json | None = known
    return found


def _unknown_reference() -> Json:
    """No violation: a person may have deleted the message meanwhile."""
    return {
        "message_reference": {"_errors": [{"code": "MESSAGE_REFERENCE_UNKNOWN_MESSAGE", "message": "Unknown message"}]}
    }


# Changing


@route("PATCH", "/channels/{channel}/messages/{message}", body=fields.MESSAGE_EDIT)
def edit(server: Any, asked: Asked) -> Json:
    channel = server.channel(asked["channel"])
    message = server.message(channel["id"], asked["message"])
    if message["author"]["id"] != str(server.bot.id):
        raise Refusal(403, 50005, "Cannot edit a message authored by another user")
    not_archived(channel)
    check_message(server, channel, asked.body, {}, edit=True)
    return shown(server, rewrite(server, message, asked.body))


def rewrite(server: Any, message: Json, body: Json, default: Allowed = PING_ALL, *, method: str = "edit") -> Json:
    """Change a message of the bot: fields that are not named stay."""
    channel = server.channels[message["channel_id"]]
    if "content" in body:
        message["content"] = (body["content"] or "").strip()
    if "components" in body:
        message["components"] = body["components"] or []
    if body.get("flags") is not None:
        kept = message["flags"] & ~objects.SUPPRESS_EMBEDS
        message["flags"] = kept | body["flags"] & objects.SUPPRESS_EMBEDS
    if not any(message.get(name) for name in ("content", "attachments", "components")):
        raise Refusal(400, 50006, "Cannot send an empty message")
    if method == "edit":
        message["edited_timestamp"] = objects.iso(server.wall())
    server.read_mentions(message, channel, allowed_of(body, default), server.bot)
    note(server, method, message, body)
    server.emit("MESSAGE_UPDATE", message, channel_id=channel["id"])
    return message


def not_archived(channel: Json) -> None:
    if is_thread(channel) and channel["thread_metadata"]["archived"]:
        raise Refusal(400, 50083, "Thread is archived")


@route("DELETE", "/channels/{channel}/messages/{message}")
def delete(server: Any, asked: Asked) -> None:
    channel = server.channel(asked["channel"])
    message = server.message(channel["id"], asked["message"])
    if message["author"]["id"] != str(server.bot.id):
        if "guild_id" not in channel:
            raise Refusal(403, 50003, "Cannot execute action on a DM channel")
        server.demand(channel, Permission.MANAGE_MESSAGES)
    not_archived(channel)
    note(server, "delete", message, {})
    server.delete(message)


@route("POST", "/channels/{channel}/typing")
def typing(server: Any, asked: Asked) -> None:
    channel = server.channel(asked["channel"])
    may_speak(server, channel, {})
    server.ledger.timeline.append((channel["id"], "typing"))
    server.typing(channel, server.bot)


# Reactions and pins


def _emoji(raw: str) -> str:
    """A character, or "name:id" of a custom one; 10014 for what is none."""
    if re.fullmatch(r"\w{2,32}:\d{15,20}", raw):
        return raw
    if not raw or re.search(r"[\w\s:<>]", raw.rstrip("\ufe0f\u20e3*#0123456789")) or raw.isascii():
        raise unknown("Emoji")
    return raw


@route("PUT", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me")
def react(server: Any, asked: Asked) -> None:
    message = readable(server, asked)
    channel, emoji = server.channels[message["channel_id"]], _emoji(asked["emoji"])
    others = [key for key, who in server.reactions.items() if key[0] == message["id"] and who]
    if (message["id"], emoji) not in others:
        server.demand(channel, Permission.ADD_REACTIONS)
        if len(others) >= MAX_REACTIONS:
            raise Refusal(400, 30010, "Maximum number of reactions reached (20)")
    if int(message["author"]["id"]) in server.blocked:
        raise Refusal(403, 90001, "Reaction blocked")
    not_archived(channel)
    note(server, "react", message, {"content": emoji})
    server.react(message, emoji, server.bot)


@route("DELETE", "/channels/{channel}/messages/{message}/reactions/{emoji}/@me")
def unreact(server: Any, asked: Asked) -> None:
    message = readable(server, asked)
    not_archived(server.channels[message["channel_id"]])
    note(server, "unreact", message, {"content": _emoji(asked["emoji"])})
    server.react(message, _emoji(asked["emoji"]), server.bot, remove=True)


@route("PUT", "/channels/{channel}/messages/pins/{message}")
@route("PUT", "/channels/{channel}/pins/{message}")
def pin(server: Any, asked: Asked) -> None:
    channel = server.channel(asked["channel"])
    message = server.message(channel["id"], asked["message"])
    server.demand(channel, Permission.PIN_MESSAGES)
    server.set_pinned(message, server.bot)


@route("DELETE", "/channels/{channel}/messages/pins/{message}")
@route("DELETE", "/channels/{channel}/pins/{message}")
def unpin(server: Any, asked: Asked) -> None:
    channel = server.channel(asked["channel"])
    message = server.message(channel["id"], asked["message"])
    server.demand(channel, Permission.PIN_MESSAGES)
    server.set_pinned(message, server.bot, pinned=False)
