"""Methods of the Discord stand-in for users, the application, guilds, channels, threads and attachment links."""

from typing import Any

from tests.standins import discord_fields as fields
from tests.standins import discord_objects as objects
from tests.standins.discord_content import check_message
from tests.standins.discord_fields import record
from tests.standins.discord_gateway import SESSIONS_A_DAY
from tests.standins.discord_ledger import MISSING_ACCESS, MISSING_PERMISSIONS, Json, Refusal, form, unknown
from tests.standins.discord_messages import write
from tests.standins.discord_objects import Intent, Permission
from tests.standins.discord_routes import Asked, route
from tests.standins.discord_world import is_thread

_COUNT: Json = {"type": ["integer", "null"], "minimum": 1, "maximum": 1000}

# Users and the application


@route("GET", "/users/@me")
def myself(server: Any, asked: Asked) -> Json:
    return objects.user(server.bot) | {
        "verified": True,
        "mfa_enabled": True,
        "email": None,
        "flags": 0,
        "locale": "en-US",
    }


@route(
    "GET",
    "/users/@me/guilds",
    query=record(before=fields.SNOWFLAKE, after=fields.SNOWFLAKE, limit=_COUNT, with_counts=fields.text(5)),
)
def my_guilds(server: Any, asked: Asked) -> list[Json]:
    """In full: this server pages nothing here."""
    mine = [one for one in server.guilds.values() if server.bot.id in server.members[one["id"]]]
    return [
        {name: one[name] for name in ("id", "name", "icon", "features", "banner")}
        | {"owner": False, "permissions": "0"}
        for one in mine
    ]


@route("GET", "/users/{user}")
def one_user(server: Any, asked: Asked) -> Json:
    found = server.people.get(int(asked["user"])) if asked["user"].isdigit() else None
    if found is None:
        raise unknown("User")
    return objects.user(found)


@route("GET", "/applications/@me")
@route("GET", "/oauth2/applications/@me")
def application(server: Any, asked: Asked) -> Json:
    return {
        "id": str(server.bot.id),
        "name": server.bot.username,
        "icon": None,
        "description": "",
        "bot": objects.user(server.bot),
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "owner": objects.user(objects.ALICE),
        "team": None,
        "flags": server.flags,
        "rpc_origins": [],
        "redirect_uris": [],
        "interactions_endpoint_url": None,
        "approximate_guild_count": len(my_guilds(server, asked)),  # type: ignore[arg-type]
        "integration_types_config": {"0": {}, "1": {}},
        "summary": "",
    }


@route("GET", "/gateway")
def gateway(server: Any, asked: Asked) -> Json:
    return {"url": server.gateway_url}


@route("GET", "/gateway/bot")
def gateway_bot(server: Any, asked: Asked) -> Json:
    left = SESSIONS_A_DAY - len(server.identified)
    limit = {"total": SESSIONS_A_DAY, "remaining": left, "reset_after": 86_400_000, "max_concurrency": 1}
    return {"url": server.gateway_url, "shards": 1, "session_start_limit": limit}


# Guilds


@route("GET", "/guilds/{guild}", query=record(with_counts=fields.text(5)))
def one_guild(server: Any, asked: Asked) -> Json:
    found: Json = server.guild(asked["guild"])
    count = len(server.members[found["id"]])
    counts = {"approximate_member_count": count, "approximate_presence_count": count}
    return found | (counts if asked.query.get("with_counts") in ("1", "true", "True") else {})


@route("GET", "/guilds/{guild}/channels")
def guild_channels(server: Any, asked: Asked) -> list[Json]:
    found: list[Json] = server.channels_of(server.guild(asked["guild"]))
    return found


@route("GET", "/guilds/{guild}/roles")
def roles(server: Any, asked: Asked) -> list[Json]:
    found: list[Json] = server.guild(asked["guild"])["roles"]
    return found


@route("GET", "/guilds/{guild}/members", query=record(limit=_COUNT, after=fields.SNOWFLAKE))
def members(server: Any, asked: Asked) -> list[Json]:
    """In the order of their ids; only for applications with the members intent."""
    guild = server.guild(asked["guild"])
    if Intent.GUILD_MEMBERS not in server.granted:
        raise Refusal(*MISSING_ACCESS)
    after, limit = int(asked.query.get("after") or 0), asked.query.get("limit") or 1
    known = sorted(server.members[guild["id"]].items())
    return [one for number, one in known if number > after][:limit]


@route("GET", "/guilds/{guild}/members/{user}")
def one_member(server: Any, asked: Asked) -> Json:
    guild = server.guild(asked["guild"])
    number = str(server.bot.id) if asked["user"] == "@me" else asked["user"]
    found: Json | None = server.members[guild["id"]].get(int(number)) if number.isdigit() else None
    if found is None:
        raise unknown("Member")
    return found


@route("GET", "/guilds/{guild}/threads/active")
def active_threads(server: Any, asked: Asked) -> Json:
    guild = server.guild(asked["guild"])
    return _threads(server, server.threads_of(guild))


def _threads(server: Any, found: list[Json]) -> Json:
    shown = [server.show_channel(one) for one in found]
    return {"threads": shown, "members": [one["member"] for one in shown if "member" in one]}


# Channels


@route("GET", "/channels/{channel}")
def one_channel(server: Any, asked: Asked) -> Json:
    shown: Json = server.show_channel(server.channel(asked["channel"]))
    return shown


@route("POST", "/users/@me/channels", body=fields.OPEN_DM)
def open_dm(server: Any, asked: Asked) -> Json:
    """The same channel whenever it is asked for; whether the person reads it shows only a send."""
    person = server.people.get(int(asked.body["recipient_id"] or 0))
    if person is None or person == server.bot:
        raise Refusal(400, 50033, "Invalid Recipient(s)")
    built: Json = server.open_dm(person)
    return built


@route("PATCH", "/channels/{channel}", body=fields.CHANNEL_EDIT)
def change_channel(server: Any, asked: Asked) -> Json:
    """A thread's author may rename and archive it; all else needs the right to manage."""
    channel, body = server.channel(asked["channel"]), dict(asked.body)
    if not is_thread(channel):
        server.demand(channel, Permission.MANAGE_CHANNELS)
        changed: Json = server.change_channel(channel, **body)
        return changed
    may_manage = server.permissions(server.bot, channel) & Permission.MANAGE_THREADS
    own = channel["owner_id"] == str(server.bot.id) and "locked" not in body
    opens = body.keys() == {"archived"} and not body["archived"] and not channel["thread_metadata"]["locked"]
    if not may_manage and not own and not opens:
        raise Refusal(*MISSING_PERMISSIONS)
    if channel["thread_metadata"]["archived"] and body.get("archived") is not False:
        raise Refusal(400, 50083, "Thread is archived")
    inner = {
        name: body.pop(name) for name in ("archived", "locked", "auto_archive_duration", "invitable") if name in body
    }
    inner |= {"archive_timestamp": objects.iso(server.wall())} if "archived" in inner else {}
    changed = server.change_channel(channel, **body, thread_metadata=channel["thread_metadata"] | inner)
    return changed


@route("DELETE", "/channels/{channel}")
def close_channel(server: Any, asked: Asked) -> Json:
    channel: Json = server.channel(asked["channel"])
    if channel["type"] == objects.DM:
        return channel
    server.demand(channel, Permission.MANAGE_THREADS if is_thread(channel) else Permission.MANAGE_CHANNELS)
    server.delete_channel(channel)
    return channel


# Threads


def _may_open(server: Any, parent: Json, kind: int) -> None:
    if parent["type"] not in (objects.TEXT, objects.ANNOUNCEMENT, objects.FORUM):
        raise Refusal(400, 50024, "Cannot execute action on this channel type")
    private = kind == objects.PRIVATE_THREAD
    server.demand(parent, Permission.CREATE_PRIVATE_THREADS if private else Permission.CREATE_PUBLIC_THREADS)


@route("POST", "/channels/{channel}/messages/{message}/threads", body=fields.THREAD_FROM_MESSAGE)
def thread_from_message(server: Any, asked: Asked) -> Json:
    parent = server.channel(asked["channel"])
    _may_open(server, parent, objects.PUBLIC_THREAD)
    message = server.message(parent["id"], asked["message"])
    if message["id"] in server.channels:
        raise Refusal(400, 160004, "A thread has already been created for this message")
    return _open(server, parent, asked.body, objects.PUBLIC_THREAD, message)


@route(
    "POST",
    "/channels/{channel}/threads",
    body=fields.THREAD,
    files=True,
    query=record(use_nested_fields=fields.text(5)),
)
def thread_alone(server: Any, asked: Asked) -> Json:
    """In a forum that is a post with its first message; elsewhere a private thread unless `type` says otherwise."""
    parent = server.channel(asked["channel"])
    if parent["type"] != objects.FORUM:
        kind = asked.body.get("type") or objects.PRIVATE_THREAD
        _may_open(server, parent, kind)
        return _open(server, parent, asked.body, kind, None)
    post = asked.body.get("message")
    if post is None:
        raise form("message", "BASE_TYPE_REQUIRED", "This field is required")
    server.demand(parent, Permission.SEND_MESSAGES)
    fields.check(post, fields.MESSAGE, "message")
    check_message(server, parent, post, asked.files)
    thread = _open(server, parent, asked.body, objects.PUBLIC_THREAD, None)
    known = server.channels[thread["id"]]
    first = write(server, known, post, asked.files, method="send", id=thread["id"])
    return thread | {"message": server.show(first)}


def _open(server: Any, parent: Json, body: Json, kind: int, message: Json | None) -> Json:
    minutes = body.get("auto_archive_duration") or 1440
    thread_id = message and message["id"]
    thread = server.make_thread(parent, body["name"], kind, server.bot, thread_id=thread_id, minutes=minutes)
    server.announce_thread(thread, parent, server.bot, message)
    shown: Json = server.show_channel(thread)
    return shown


@route("PUT", "/channels/{channel}/thread-members/@me")
def join(server: Any, asked: Asked) -> None:
    thread = server.channel(asked["channel"])
    if not is_thread(thread):
        raise Refusal(400, 50024, "Cannot execute action on this channel type")
    if thread["thread_metadata"]["archived"]:
        raise Refusal(400, 50083, "Thread is archived")
    server.join_thread(thread, server.bot)


@route("DELETE", "/channels/{channel}/thread-members/@me")
def leave(server: Any, asked: Asked) -> None:
    thread = server.channel(asked["channel"])
    server.thread_members.get(thread["id"], {}).pop(server.bot.id, None)


_ARCHIVED = record(before=fields.text(64), limit={"type": ["integer", "null"], "minimum": 2, "maximum": 100})


@route("GET", "/channels/{channel}/threads/archived/public", query=_ARCHIVED)
def archived_public(server: Any, asked: Asked) -> Json:
    return _archived(server, asked, objects.PUBLIC_THREAD)


@route("GET", "/channels/{channel}/threads/archived/private", query=_ARCHIVED)
def archived_private(server: Any, asked: Asked) -> Json:
    server.demand(server.channel(asked["channel"]), Permission.READ_MESSAGE_HISTORY, Permission.MANAGE_THREADS)
    return _archived(server, asked, objects.PRIVATE_THREAD)


@route("GET", "/channels/{channel}/users/@me/threads/archived/private", query=_ARCHIVED)
def archived_joined(server: Any, asked: Asked) -> Json:
    return _archived(server, asked, objects.PRIVATE_THREAD, joined=True)


def _archived(server: Any, asked: Asked, kind: int, *, joined: bool = False) -> Json:
    """The last archived first, those before a time when one is given."""
    parent = server.channel(asked["channel"])
    server.demand(parent, Permission.READ_MESSAGE_HISTORY)
    before, limit = asked.query.get("before"), asked.query.get("limit") or 50
    found = [
        one
        for one in server.threads_of(parent["guild_id"], archived=True)
        if one["parent_id"] == parent["id"] and one["type"] == kind
        if before is None or one["thread_metadata"]["archive_timestamp"] < before.replace("Z", "+00:00")
        if not joined or server.bot.id in server.thread_members.get(one["id"], {})
    ]
    found.sort(key=lambda one: str(one["thread_metadata"]["archive_timestamp"]), reverse=True)
    return _threads(server, found[:limit]) | {"has_more": len(found) > limit}


# Attachments


@route("POST", "/attachments/refresh-urls", body=fields.REFRESH_URLS)
def refresh_urls(server: Any, asked: Asked) -> Json:
    may = [{"original": one, "refreshed": server.files.refresh(one)} for one in asked.body["attachment_urls"]]
    return {"refreshed_urls": [one for one in may if one["refreshed"]]}
