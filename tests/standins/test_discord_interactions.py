"""Interactions with the Discord stand-in by raw calls: who may answer, how, how often and until when."""

import pytest

from tests.standins.discord_interactions import Interaction
from tests.standins.discord_ledger import Json, Rule
from tests.standins.discord_objects import ALICE, BOB, LOADING
from tests.standins.discord_raw import Answer, Clock, Raw, broken_rules, clock, discord, raw
from tests.standins.discord_rows import button, command, option, text
from tests.standins.discord_server import DiscordServer

__all__ = ["clock", "discord", "raw"]  # fixtures


@pytest.fixture
async def room(discord: DiscordServer, raw: Raw) -> Json:
    """A channel where /note is registered, with the bot told of what happens."""
    path = f"/applications/{discord.bot.id}/commands"
    await raw(f"PUT {path}", [command(options=[option(required=True)])])
    return discord.add_channel(discord.add_guild("Home", BOB))


async def answer(raw: Raw, one: Interaction, kind: int) -> Answer:
    """The first answer, which needs no token but the interaction's."""
    return await raw(f"POST /interactions/{one.id}/{one.token}/callback", {"type": kind}, token=None)


async def fill(raw: Raw, one: Interaction, content: str = "hello") -> Answer:
    """Write what was announced, below the webhook of an interaction."""
    path = f"/webhooks/{raw.server.bot.id}/{one.token}/messages/@original"
    return await raw(f"PATCH {path}", text(content), token=None)


async def test_one_answer_within_three_seconds(discord: DiscordServer, raw: Raw, room: Json, clock: Clock) -> None:
    used = discord.slash(ALICE, room, "note", {"text": "milk"})
    assert (await fill(raw, used)).body["code"] == 10015
    assert (await raw(f"POST /interactions/{used.id}/wrong/callback", {"type": 5})).body["code"] == 10062
    assert (await answer(raw, used, 5)).status == 204
    again = await answer(raw, used, 5)
    assert (again.status, again.body["code"]) == (400, 40060)
    late = discord.slash(ALICE, room, "note", {"text": "milk"})
    clock.now += 3.1
    refused = await answer(raw, late, 5)
    assert (refused.status, refused.body) == (404, {"message": "Unknown Interaction", "code": 10062})
    assert (await fill(raw, used, "kept")).status == 200
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
    used = discord.slash(ALICE, room, "note", {"text": "milk"})
    pressed = discord.click(ALICE, sent, "yes")
    assert "INTERACTION_CALLBACK_TYPE_INVALID" in str((await answer(raw, used, 6)).body)
    assert "BASE_TYPE_CHOICES" in str((await answer(raw, pressed, 8)).body)
    assert set(broken_rules(discord)) == {Rule.FORM}
    assert (await answer(raw, pressed, 6)).status == 204
    with pytest.raises(ValueError, match="no component"):
        discord.click(ALICE, sent, "no")
    for name, options in (("note", {}), ("note", {"text": "milk", "size": "2"}), ("other", {})):
        with pytest.raises(ValueError, match=r"takes|registered"):
            discord.slash(ALICE, room, name, options)


async def test_a_deferred_answer_is_filled_and_ends_with_its_token(
    discord: DiscordServer, raw: Raw, room: Json, clock: Clock
) -> None:
    used = discord.slash(ALICE, room, "note", {"text": "milk"})
    await answer(raw, used, 5)
    (waiting,) = discord.messages(room)
    assert (waiting["flags"], waiting["content"], waiting["type"]) == (LOADING, "", 20)
    filled_in = (await fill(raw, used, f"{BOB.mention} @everyone kept")).body
    assert (filled_in["id"], filled_in["flags"], filled_in["edited_timestamp"]) == (waiting["id"], 0, None)
    assert (discord.pinged(), filled_in["mentions"][0]["id"]) == ([], str(BOB.id))  # it counts as an edit
    changed = (await fill(raw, used, "kept!")).body
    assert (changed["content"], changed["edited_timestamp"] is None) == ("kept!", False)
    assert (await raw(f"DELETE /channels/{room['id']}/messages/{waiting['id']}")).status == 204
    assert (await fill(raw, used)).body["code"] == 10008
    assert [one.method for one in discord.sent] == ["respond", "edit", "delete"]
    clock.now += 901
    ended = await fill(raw, used)
    assert (ended.status, ended.body["code"]) == (401, 50027)
