"""The rules of the Discord stand-in, each broken by a raw HTTP call and kept by its counterpart.

The tables are in discord_rows and discord_form_rows; rules that need more than one call follow below. No Discord
library takes part.
"""

import json
from typing import Any

import pytest

from tests.standins import discord_objects as objects
from tests.standins.discord_form_rows import FORM_ROWS
from tests.standins.discord_ledger import Pings, Rule
from tests.standins.discord_objects import ALICE, BOB, CAROL, Intent, Permission
from tests.standins.discord_raw import Clock, Raw, broken_rules, clock, discord, raw
from tests.standins.discord_rows import STATE_ROWS, command
from tests.standins.discord_server import DiscordServer

__all__ = ["clock", "discord", "raw"]  # fixtures
ROWS = FORM_ROWS | STATE_ROWS


async def world_of(server: DiscordServer, raw: Raw) -> dict[str, str]:
    """Everything that the rows name."""
    server.meet(CAROL)
    guild, foreign = server.add_guild("Home", BOB), server.add_guild("Away", bot=False)
    room, direct = server.add_channel(guild), server.dm(ALICE, "psst")
    hidden, mute = server.add_channel(guild, "hidden"), server.add_channel(guild, "mute")
    server.overwrite(hidden, guild, deny=Permission.VIEW_CHANNEL)
    server.overwrite(mute, guild, deny=Permission.SEND_MESSAGES)
    forum = server.add_channel(guild, "forum", kind=objects.FORUM)
    category = server.add_channel(guild, "rooms", kind=objects.CATEGORY)
    threaded = server.say(room, ALICE, "a story")
    thread = server.add_thread(room, "story", message=threaded)
    locked = server.add_thread(room, "locked", text="first")
    world = {
        "bot": server.bot, "alice": ALICE, "carol": CAROL, "guild": guild, "foreign": foreign, "room": room,
        "hidden": hidden, "mute": mute, "forum": forum, "category": category, "threaded": threaded, "thread": thread,
        "locked": locked, "direct": direct, "dm": server.open_dm(ALICE),
        "hers": server.say(room, ALICE, "hers"), "hers2": server.say(room, ALICE, "hers"),
        "joined": server.say(room, BOB, type=objects.JOINED), "mine": (await raw.send(room)).body,
        "spare": (await raw.send(room)).body, "blocked": server.open_dm(BOB), "inlocked": (await raw.send(locked)).body,
    }  # fmt: skip
    server.block(BOB)
    server.archive(locked, locked=True)
    return {name: str(one["id"] if isinstance(one, dict) else one.id) for name, one in world.items()}


def filled(value: Any, world: dict[str, str]) -> Any:
    """A call or a body with ids in place of the names."""
    encoded = json.dumps(value)
    for name in sorted(world, key=len, reverse=True):
        encoded = encoded.replace(f"${name}", world[name])
    return json.loads(encoded)


@pytest.mark.parametrize("subject", ROWS)
async def test_rules_of_form_and_state(subject: str, discord: DiscordServer, raw: Raw) -> None:
    world = await world_of(discord, raw)
    discord.ledger.violations.clear()
    for row in ROWS[subject]:
        broken = await raw(filled(row.call, world), filled(row.broken, world))
        assert (broken.status, broken.body["code"]) == (row.status, row.code), (row.name, broken.body)
        assert row.error in json.dumps(broken.body.get("errors", "")), (row.name, broken.body)
        assert broken_rules(discord) == ([row.rule] if row.rule else []), row.name
        discord.ledger.violations.clear()
        kept = await raw(filled(row.kept_call, world), filled(row.kept, world))
        assert kept.status in (200, 204), (row.name, kept.body)
        assert broken_rules(discord) == [], row.name


# Making requests


async def test_who_calls_and_how(discord: DiscordServer, raw: Raw) -> None:
    wrong = await raw("GET /users/@me", token="wrong")
    assert (wrong.status, wrong.body) == (401, {"message": "401: Unauthorized", "code": 0})
    assert (await raw("GET /users/@me", token=None)).status == 401
    assert broken_rules(discord) == [Rule.TOKEN] * 2
    assert (await raw("GET /users/@me", headers={"User-Agent": "curl/8"})).body["code"] == 40333
    sent = await raw("POST /users/@me/channels", headers={"Content-Type": "text/plain"}, data="{}")
    assert "CONTENT_TYPE_INVALID" in json.dumps(sent.body)
    assert broken_rules(discord)[2:] == [Rule.HEADERS] * 2
    sent = await raw("POST /users/@me/channels", headers={"Content-Type": "application/json"}, data="{")
    assert (sent.status, sent.body["code"]) == (400, 50109)
    assert (await raw("GET /users/@me/telepathy")).body == {"message": "404: Not Found", "code": 0}
    assert (await raw("DELETE /users/@me")).status == 405
    assert broken_rules(discord)[4:] == [Rule.FORM, Rule.UNKNOWN_ROUTE, Rule.UNKNOWN_ROUTE]
    assert (await raw("GET /users/@me")).body["id"] == str(discord.bot.id)


# Messages


async def test_a_nonce_is_kept_for_some_minutes(discord: DiscordServer, raw: Raw, clock: Clock) -> None:
    guild = discord.add_guild()
    room, other = discord.add_channel(guild), discord.add_channel(guild)
    first = await raw.send(room, nonce="77", enforce_nonce=True)
    again = await raw.send(room, "something else", nonce="77", enforce_nonce=True)
    assert (again.body["id"], again.body["content"], again.body["nonce"]) == (first.body["id"], "hello", "77")
    assert (await raw.send(other, nonce="77", enforce_nonce=True)).body["id"] != first.body["id"]
    assert (await raw.send(room, nonce="77")).body["id"] != first.body["id"]
    clock.now += 301
    assert (await raw.send(room, nonce="77", enforce_nonce=True)).body["id"] != first.body["id"]
    assert len(discord.sent) == 4
    assert all("nonce" not in one for one in (await raw(f"GET /channels/{room['id']}/messages")).body)


async def test_whom_a_message_pings(discord: DiscordServer, raw: Raw) -> None:
    guild = discord.add_guild("Home", BOB)
    room = discord.add_channel(guild)
    loud, quiet = discord.add_role(guild, "loud", mentionable=True), discord.add_role(guild, "quiet")
    hers = discord.say(room, ALICE, "hello")
    content = f"@everyone {BOB.mention} <@&{loud['id']}> <@&{quiet['id']}> {CAROL.mention}"
    bob, roles = frozenset({BOB.id}), frozenset({int(loud["id"]), int(quiet["id"])})
    reply = {"message_reference": {"message_id": hers["id"]}}
    cases: list[tuple[str, dict[str, Any], Pings]] = [
        (content, {}, Pings(bob, roles, everyone=True)),
        (content, {"allowed_mentions": {"parse": []}}, Pings()),
        (content, {"allowed_mentions": {"parse": ["users"]}}, Pings(bob)),
        (f"`{BOB.mention}`", {}, Pings()),
        ("a reply", reply, Pings(frozenset({ALICE.id}))),
        ("a reply", reply | {"allowed_mentions": {"parse": ["users"]}}, Pings()),
        ("a reply", reply | {"allowed_mentions": {"replied_user": True}}, Pings(frozenset({ALICE.id}))),
    ]
    for words, more, pings in cases:
        answer = await raw.send(room, words, **more)
        assert discord.sent[-1].pings == pings, more
        assert answer.body["mention_everyone"] == pings.everyone
    discord.overwrite(room, guild, deny=Permission.MENTION_EVERYONE)
    await raw.send(room, content)
    assert discord.pinged()[-1] == Pings(bob, frozenset({int(loud["id"])}))
    known = len(discord.pinged())
    await raw(f"PATCH /channels/{room['id']}/messages/{discord.sent[1].message_id}", {"content": content})
    assert len(discord.pinged()) == known


async def test_content_is_empty_without_its_intent(discord: DiscordServer, raw: Raw) -> None:
    discord.granted = Intent(0)
    room = discord.add_channel(discord.add_guild())
    veiled = discord.say(room, ALICE, "hidden", embeds=[{"title": "x"}])
    discord.say(room, ALICE, f"{discord.bot.mention} to you", reply_to=veiled)
    await raw.send(room, "mine")
    mine, to_bot, other = (await raw(f"GET /channels/{room['id']}/messages")).body
    assert (mine["content"], to_bot["content"]) == ("mine", f"{discord.bot.mention} to you")
    assert (other["content"], other["embeds"]) == ("", [])
    assert to_bot["referenced_message"]["content"] == ""
    direct = discord.dm(ALICE, "between us")
    assert (await raw(f"GET /channels/{direct['channel_id']}/messages")).body[0]["content"] == "between us"


async def test_reactions(discord: DiscordServer, raw: Raw) -> None:
    room = discord.add_channel(discord.add_guild("Home", BOB))
    message = discord.say(room, ALICE, "hello")
    path = f"/channels/{room['id']}/messages/{message['id']}"
    for number in range(20):
        assert (await raw(f"PUT {path}/reactions/%F0%9F%98%{0x80 + number:X}/@me")).status == 204
    assert (await raw(f"PUT {path}/reactions/%F0%9F%91%8D/@me")).body["code"] == 30010
    assert (await raw(f"PUT {path}/reactions/%F0%9F%98%80/@me")).status == 204  # it is there already
    assert (await raw(f"DELETE {path}/reactions/%F0%9F%98%80/@me")).status == 204
    shown = (await raw(f"GET {path}")).body["reactions"]
    assert (len(shown), shown[0]["emoji"], shown[0]["me"]) == (19, {"id": None, "name": "😁"}, True)
    discord.overwrite(room, discord.bot, deny=Permission.ADD_REACTIONS)
    discord.react(message, "👍", BOB)
    assert (await raw(f"PUT {path}/reactions/%F0%9F%98%80/@me")).body["code"] == 50013
    assert (await raw(f"PUT {path}/reactions/%F0%9F%91%8D/@me")).status == 204  # others have begun it
    discord.block(ALICE)
    assert (await raw(f"PUT {path}/reactions/%F0%9F%91%8D/@me")).body["code"] == 90001


# Pins, commands


async def test_two_hundred_new_commands_a_day(discord: DiscordServer, raw: Raw, clock: Clock) -> None:
    path = f"/applications/{discord.bot.id}/commands"
    (kept,) = (await raw(f"PUT {path}", [command("kept")])).body
    for number in range(3):
        names = ["kept", *(f"c{number}-{one}" for one in range(66))]
        assert (await raw(f"PUT {path}", [command(name) for name in names])).body[0]["id"] == kept["id"]
    assert (await raw(f"PUT {path}", [command("kept"), command("last")])).status == 200
    changed = [command("kept", description="changed")]
    assert (await raw(f"PUT {path}", changed)).body[0]["id"] == kept["id"]
    assert (await raw(f"PUT {path}", [command("one-more")])).body["code"] == 30034
    clock.now += 86_401
    assert (await raw(f"PUT {path}", [command("one-more")])).status == 200
