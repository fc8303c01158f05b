"""Methods of the Discord stand-in for users, the application, guilds, channels, new threads and attachment links."""

from typing import Any

from tests.standins import discord_fields as fields
from tests.standins import discord_objects as objects
from tests.standins.discord_fields import record
from tests.standins.discord_ledger import Json, Refusal, unknown
from tests.standins.discord_objects import Permission
from tests.standins.discord_routes import Asked, route

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
        "approximate_guild_count": len(server.guilds),
        "integration_types_config": {"0": {}, "1": {}},
        "summary": "",
    }


# Guilds


@route("GET", "/guilds/{guild}", query=record(with_counts=fields.text(5)))
def one_guild(server: Any, asked: Asked) -> Json:
    found: Json = server.guild(asked["guild"])
    count = len(server.members[found["id"]])
    counts = {"approximate_member_count": count, "approximate_presence_count": count}
    return found | (counts if asked.query.get("with_counts") in ("1", "true", "True") else {})


@route("GET", "/guilds/{guild}/members/{user}")
def one_member(server: Any, asked: Asked) -> Json:
    guild = server.guild(asked["guild"])
    number = str(server.bot.id) if asked["user"] == "@me" else asked["user"]
    found: Json | None = server.members[guild["id"]].get(int(number)) if number.isdigit() else None
    if found is None:
        raise unknown("Member")
    return found


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


# Threads


@route("POST", "/channels/{channel}/messages/{message}/threads", body=fields.THREAD_FROM_MESSAGE)
def thread_from_message(server: Any, asked: Asked) -> Json:
    parent = server.channel(asked["channel"])
    if parent["type"] not in (objects.TEXT, objects.ANNOUNCEMENT, objects.FORUM):
        raise Refusal(400, 50024, "Cannot execute action on this channel type")
    server.demand(parent, Permission.CREATE_PUBLIC_THREADS)
    message = server.message(parent["id"], asked["message"])
    if message["id"] in server.channels:
        raise Refusal(400, 160004, "A thread has already been created for this message")
    minutes, kind = asked.body.get("auto_archive_duration") or 1440, objects.PUBLIC_THREAD
    name, thread_id = asked.body["name"], message["id"]
    thread = server.make_thread(parent, name, kind, server.bot, thread_id=thread_id, minutes=minutes)
    server.announce_thread(thread, parent, server.bot, message)
    shown: Json = server.show_channel(thread)
    return shown


# Attachments


@route("POST", "/attachments/refresh-urls", body=fields.REFRESH_URLS)
def refresh_urls(server: Any, asked: Asked) -> Json:
    may = [{"original": one, "refreshed": server.files.refresh(one)} for one in asked.body["attachment_urls"]]
    return {"refreshed_urls": [one for one in may if one["refreshed"]]}
