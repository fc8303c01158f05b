"""Interactions with the Discord stand-in by raw calls: who may answer, how, how often and until when."""

from typing import Any

import pytest

from tests.standins import discord_objects as objects
from tests.standins.discord_gateway import Session
from tests.standins.discord_interactions import Interaction
from tests.standins.discord_ledger import Json, Pings, Rule
from tests.standins.discord_objects import ALICE, BOB, EPHEMERAL, LOADING, Intent
from tests.standins.discord_raw import Answer, Clock, Raw, broken_rules, clock, discord, raw
from tests.standins.discord_rows import button, command, option, text
from tests.standins.discord_server import DiscordServer

__all__ = ["clock", "discord", "raw"]  # fixtures


@pytest.fixture
async def room(discord: DiscordServer, raw: Raw) -> Json:
    """A channel where /note is registered, with the bot told of what happens."""
    path = f"/applications/{discord.bot.id}/commands"
    await raw(f"POST {path}", command(options=[option(required=True, autocomplete=True)]))
    return discord.add_channel(discord.add_guild("Home", BOB))


async def answer(raw: Raw, one: Interaction, kind: int, data: Any = None, query: str = "") -> Answer:
    """The first answer, which needs no token but the interaction's."""
    body = {"type": kind} | ({} if data is None else {"data": data})
    return await raw(f"POST /interactions/{one.id}/{one.token}/callback{query}", body, token=None)


async def later(raw: Raw, one: Interaction, call: str, body: Any = None) -> Answer:
    """A call below the webhook of an interaction: "METHOD" or "METHOD /messages/…"."""
    method, _, rest = call.partition(" ")
    return await raw(f"{method} /webhooks/{raw.server.bot.id}/{one.token}{rest}", body, token=None)


async def test_one_answer_within_three_seconds(discord: DiscordServer, raw: Raw, room: Json, clock: Clock) -> None:
    used = discord.slash(ALICE, room, "note", {"text": "milk"})
    assert (await later(raw, used, "PATCH /messages/@original", text())).body["code"] == 10015
    assert (await raw(f"POST /interactions/{used.id}/wrong/callback", {"type": 5})).body["code"] == 10062
    assert (await answer(raw, used, 4, text("kept"))).status == 204
    again = await answer(raw, used, 4, text("kept"))
    assert (again.status, again.body["code"]) == (400, 40060)
    late = discord.slash(ALICE, room, "note", {"text": "milk"})
    clock.now += 3.1
    refused = await answer(raw, late, 5)
    assert (refused.status, refused.body) == (404, {"message": "Unknown Interaction", "code": 10062})
    assert (discord.texts(), broken_rules(discord)) == (["kept"], [])


async def test_what_nobody_answers_is_a_violation(discord: DiscordServer, room: Json) -> None:
    missed = discord.slash(ALICE, room, "note", {"text": "milk"})
    assert discord.unanswered() == []  # nobody was connected: Discord tells the person
    missed.delivered = True
    assert [one.rule for one in discord.unanswered()] == [Rule.UNANSWERED_INTERACTION]
    missed.answer = 5
    assert discord.unanswered() == []


async def test_which_answer_fits(discord: DiscordServer, raw: Raw, room: Json) -> None:
    sent = (await raw.send(room, components=[{"type": 1, "components": [button()]}])).body
    modal = {"custom_id": "m", "title": "More", "components": [row_of(4, custom_id="w", style=1, label="Words")]}
    used = discord.slash(ALICE, room, "note", {"text": "milk"})
    pressed = discord.click(ALICE, sent, "yes")
    typed = discord.autocomplete(ALICE, room, "note", "text", "mi")
    for one, kind in ((used, 6), (used, 7), (used, 8), (pressed, 8), (typed, 4), (typed, 5)):
        assert "INTERACTION_CALLBACK_TYPE_INVALID" in str((await answer(raw, one, kind, {})).body), kind
    too_many = [{"name": str(one), "value": "x"} for one in range(26)]
    assert "BASE_TYPE_MAX_LENGTH" in str((await answer(raw, typed, 8, {"choices": too_many})).body)
    assert "BASE_TYPE_BAD_LENGTH" in str((await answer(raw, used, 9, modal | {"title": "x" * 46})).body)
    assert "UNION_TYPE_CHOICES" in str((await answer(raw, used, 9, modal | {"components": [row_of(2)]})).body)
    assert "BASE_TYPE_MAX_LENGTH" in str((await answer(raw, used, 4, text("x" * 2001))).body)
    assert (await answer(raw, used, 4, text(""))).body["code"] == 50006
    assert set(broken_rules(discord)) == {Rule.FORM}
    assert (await answer(raw, typed, 8, {"choices": too_many[:25]})).status == 204
    assert (await answer(raw, pressed, 9, modal)).status == 204
    filled_in = discord.submit(ALICE, pressed, w="two")
    assert (await answer(raw, filled_in, 7, text("changed", components=[]))).status == 204
    (standing,) = discord.messages(room)
    assert (standing["content"], standing["components"]) == ("changed", [])
    with pytest.raises(ValueError, match="no component"):
        discord.click(ALICE, sent, "yes")
    with pytest.raises(ValueError, match="takes"):
        discord.slash(ALICE, room, "note", {})


def row_of(kind: int, **more: Any) -> Json:
    return {"type": 1, "components": [button() if kind == 2 else {"type": kind, **more}]}


async def test_a_deferred_answer_is_filled_and_ends_with_its_token(
    discord: DiscordServer, raw: Raw, room: Json, clock: Clock
) -> None:
    used = discord.slash(ALICE, room, "note", {"text": "milk"})
    told = (await answer(raw, used, 5, query="?with_response=true")).body
    assert told["interaction"]["response_message_loading"] is True
    (waiting,) = discord.messages(room)
    assert (waiting["flags"], waiting["content"], waiting["type"]) == (LOADING, "", 20)
    filled_in = (await later(raw, used, "PATCH /messages/@original", text(f"{BOB.mention} @everyone kept"))).body
    assert (filled_in["id"], filled_in["flags"], filled_in["edited_timestamp"]) == (waiting["id"], 0, None)
    assert (discord.pinged(), filled_in["mentions"][0]["id"]) == ([], str(BOB.id))  # it counts as an edit
    changed = (await later(raw, used, "PATCH /messages/@original", text("kept!"))).body
    assert (changed["content"], changed["edited_timestamp"] is None) == ("kept!", False)
    more = (await later(raw, used, "POST", text("anything else?"))).body
    assert (await later(raw, used, f"GET /messages/{more['id']}")).body["content"] == "anything else?"
    assert (await later(raw, used, f"DELETE /messages/{more['id']}")).status == 204
    await later(raw, used, "POST", text(f"{BOB.mention} @everyone"))
    assert discord.pinged() == [Pings(frozenset({BOB.id}))]  # only users, unless asked for
    assert [one.method for one in discord.sent] == ["respond", "edit", "follow_up", "delete", "follow_up"]
    clock.now += 901
    for call, body in (("PATCH /messages/@original", text()), ("POST", text()), ("GET /messages/@original", None)):
        ended = await later(raw, used, call, body)
        assert (ended.status, ended.body["code"]) == (401, 50027)


async def test_a_follow_up_takes_the_place_of_a_deferred_answer(discord: DiscordServer, raw: Raw, room: Json) -> None:
    used = discord.slash(ALICE, room, "note", {"text": "milk"})
    await answer(raw, used, 5)
    assert used.original is not None
    assert (await later(raw, used, "POST", text("kept"))).body["id"] == used.original["id"]
    assert [one["content"] for one in discord.messages(room)] == ["kept"]


async def test_only_the_person_sees_an_ephemeral_answer(discord: DiscordServer, raw: Raw, room: Json) -> None:
    used = discord.slash(ALICE, room, "note", {"text": "milk"})
    await answer(raw, used, 4, text("secret", flags=EPHEMERAL))
    assert (discord.messages(room), [one["content"] for one in used.hidden]) == ([], ["secret"])
    assert (await later(raw, used, "PATCH /messages/@original", text("changed"))).body["flags"] == EPHEMERAL
    history = (await raw(f"GET /channels/{room['id']}/messages")).body
    assert (history, discord.texts(room)) == ([], ["secret"])
    assert (await later(raw, used, "DELETE /messages/@original")).status == 204
    assert used.hidden == []


async def test_subcommands_are_nested(discord: DiscordServer, raw: Raw, room: Json) -> None:
    model = command("model", options=[option("set", type=1, options=[option("name", autocomplete=True)])])
    await raw(f"POST /applications/{discord.bot.id}/commands", model)
    used = discord.slash(ALICE, room, "model set", {"name": "large"})
    inner = [{"name": "name", "type": 3, "value": "large"}]
    assert used.data["options"] == [{"name": "set", "type": 1, "options": inner}]
    typed = discord.autocomplete(ALICE, room, "model set", "name", "la")
    assert typed.data["options"][0]["options"][0]["focused"] is True
    for name, options in (("model get", {}), ("model", {}), ("model", {"set": "x"}), ("set", {})):
        with pytest.raises(ValueError, match=r"model|set"):
            discord.slash(ALICE, room, name, options)


async def test_an_interaction_in_direct_messages_has_a_user_and_no_member(discord: DiscordServer, room: Json) -> None:
    session = discord.sessions["s"] = Session("s", Intent(0))  # without a connection, as after a cut
    discord.slash(ALICE, room, "note", {"text": "milk"})
    discord.slash(ALICE, discord.open_dm(ALICE), "note", {"text": "milk"})
    in_guild, direct = [one["d"] for one in session.events]
    assert (in_guild["member"]["user"]["id"], in_guild["context"], "user" in in_guild) == (str(ALICE.id), 0, False)
    assert (direct["user"]["id"], direct["context"], "member" in direct) == (str(ALICE.id), 1, False)
    assert direct["channel"]["type"] == objects.DM
    assert in_guild["data"]["options"] == [{"name": "text", "type": 3, "value": "milk"}]
