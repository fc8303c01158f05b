"""The Discord channel against a server that speaks REST and gateway, with faults in its answers and on the wire."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from channels.base import (
    CommandInfo,
    CommandOption,
    HealthState,
    History,
    NotDownloaded,
    NotReadable,
    Reached,
)
from channels.discord.adapter import DiscordChannel
from channels.discord.settings import DiscordAccount
from channels.message import Attachment, ChatKind, InboundKind, InboundMessage, Place, UnreadEvent
from channels.outgoing import Action, Button, Delivery, NotSent, OutgoingFile, Refused, SendResult, Sent, Unknown
from tests.channels.sections import account
from tests.deliveries import delivery
from tests.standins.discord_files import File
from tests.standins.discord_ledger import Rule
from tests.standins.discord_limits import RateLimits
from tests.standins.discord_objects import ALICE, BOB, DM, FORUM, HARK, Intent, Permission
from tests.standins.discord_server import DiscordServer
from tests.standins.proxy import FaultProxy
from tests.watch import PATIENCE, LoopTime
from tests.wire.sink import Clock, RecordingSink

Json = dict[str, Any]
COMMANDS = (
    CommandInfo("help", "What can be typed.", ()),
    CommandInfo("approve", "", (CommandOption("id", "Which one.", True), CommandOption("decision", "", False))),
)
SEND = "POST /channels/*/messages"
BASE = Path(__file__).parents[1] / "channels" / "fixtures" / "discord_events.json"


@pytest.fixture
def clock() -> Clock:
    return Clock(1_790_000_000.0)


@pytest.fixture
async def discord(clock: Clock) -> AsyncIterator[DiscordServer]:
    async with DiscordServer(clock=lambda: clock.seconds, wall=lambda: clock.seconds) as server:
        yield server


@pytest.fixture
def home(discord: DiscordServer) -> Json:
    """A server of which the bot, Alice and Bob are members."""
    return discord.add_guild("Home", BOB)


@pytest.fixture
def room(discord: DiscordServer, home: Json) -> Json:
    """A channel of it."""
    return discord.add_channel(home, "general")


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink(("discord", str(HARK.id)))


def settings_for(discord: DiscordServer, **more: Any) -> DiscordAccount:
    cdn = (f"{discord.files.base}/",)
    addresses = {"base_url": discord.base_url, "gateway_url": discord.gateway_url, "cdn": cdn, "close_timeout": 0.1}
    return account(DiscordAccount, **{"token": discord.token} | addresses | more)


@pytest.fixture
async def channel(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock
) -> AsyncIterator[DiscordChannel]:
    """A channel that receives."""
    channel = DiscordChannel(settings_for(discord), clock.times)
    await channel.start(sink)
    await sink.until(lambda: sink.missing)
    yield channel
    await channel.close()


def place(where: Json, thread: str = "") -> Place:
    kind = ChatKind.DIRECT if where["type"] == DM else ChatKind.CHANNEL
    return Place(channel="discord", account=str(HARK.id), chat=where["id"], kind=kind, thread=thread)


def outgoing(body: str, to: Place, **fields: Any) -> Delivery:
    return delivery(body, to, **fields)


def shown(text: str, **more: Any) -> str:
    """The body of a short message."""
    return json.dumps({"content": text, "flags": 4, "allowed_mentions": {"parse": []}} | more)


async def say(channel: DiscordChannel, text: str, to: Json, **fields: Any) -> SendResult:
    return await channel.send(outgoing(shown(text), place(to), **fields))


# -- receiving -------------------------------------------------------------------------------------------------------


async def test_messages_come_with_their_places_and_in_their_order(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    assert isinstance(channel, History)
    forum = discord.add_channel(home, "ideas", kind=FORUM)
    discord.dm(ALICE, "hello 😀")
    asked = discord.say(room, BOB, f"{HARK.mention} and {ALICE.mention}?")
    thread = discord.add_thread(room, "details", BOB, message=asked)
    discord.say(thread, BOB, "in the thread")
    post = discord.add_thread(forum, "An idea", BOB, text="fly")
    discord.webhook_says(room, "built")
    await sink.until(lambda: len(sink.items) == 5)
    direct, mention, below, first, hook = sink.messages
    assert (direct.text, direct.origin.place.kind) == ("hello 😀", ChatKind.DIRECT)
    assert (direct.origin.sender, direct.origin.sender_name) == (str(ALICE.id), "Alice")
    assert (mention.text, mention.mentioned, mention.names_others) == ("and @Alice?", True, True)
    assert (mention.origin.place, mention.origin.space) == (place(room), home["id"])
    assert mention.event_key == f"m:{room['id']}:{asked['id']}"
    assert (below.origin.place, below.origin.chat_name) == (place(room, thread["id"]), "details")
    assert (first.text, first.origin.place) == ("fly", place(forum, post["id"]))
    assert (hook.text, hook.origin.by_bot) == ("built", True)
    assert channel.health().state is HealthState.READY


async def test_its_own_messages_and_notices_are_nothing(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    await say(channel, "mine", room)
    discord.say(room, BOB, "", type=7)
    discord.say(room, BOB, "behind")
    await sink.until(lambda: sink.items)
    assert sink.texts == ["behind"]


async def test_edits_deletions_and_previews(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    written = discord.say(room, BOB, "helo https://example.org")
    discord.preview(written)
    discord.edit(written, "hello")
    discord.delete(written)
    await sink.until(lambda: len(sink.items) == 3)
    message, edit, deletion = sink.messages
    assert [one.kind for one in sink.messages] == [InboundKind.MESSAGE, InboundKind.EDIT, InboundKind.DELETE]
    assert edit.text == "hello"
    assert edit.event_key.startswith(f"e:{room['id']}:{written['id']}:")
    assert deletion.event_key == f"d:{room['id']}:{written['id']}"
    assert deletion.origin == message.origin
    assert {one.origin.message_id for one in (message, edit, deletion)} == {written["id"]}


async def test_what_cannot_be_read_is_kept_and_what_follows_comes(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    odd = [one for one in json.loads(BASE.read_text())["malformed"] if one["t"] != "READY"]
    for one in odd:
        discord.push_raw(one["t"], one["d"])
    discord.say(room, BOB, "behind them")
    await sink.until(lambda: sink.texts[-1:] == ["behind them"])
    unread = [item for item in sink.items if isinstance(item, UnreadEvent)]
    assert len(unread) > 30
    assert len({one.event_key for one in unread}) == len(unread)
    assert all(json.loads(one.raw)["t"] and one.error for one in unread)
    assert channel.health().state is HealthState.READY
    assert len(discord.identified) == 1


async def test_what_comes_while_a_batch_is_stored_is_the_next_one(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    sink.commit.clear()
    texts = [f"message {number}" for number in range(200)]
    for text in texts:
        discord.say(room, BOB, text)
    mark = discord.dm(ALICE, "last")
    async with asyncio.timeout(PATIENCE):
        while len(channel._receiver._waiting) < 201:  # noqa: ASYNC110  # nothing is told until it is stored
            await asyncio.sleep(0)
    sink.commit.set()
    await sink.until(lambda: len(sink.items) == 201)
    assert sink.texts == [*texts, mark["content"]]
    assert len(sink.batches) <= 3


async def test_what_waits_is_bounded(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.discord.gateway._MOST_WAITING", 5)
    sink.commit.clear()
    for number in range(20):
        discord.say(room, BOB, f"{number}")
    await sink.until(lambda: sink.entered)
    for _ in range(3):  # long enough for all to come
        await channel.working(place(room))
    assert len(channel._receiver._waiting) == 6
    sink.commit.set()
    await sink.until(lambda: len(sink.items) == 20)
    assert sink.texts == [f"{number}" for number in range(20)]
    assert len(discord.identified) == 1


async def test_what_cannot_be_stored_waits_in_its_order(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel, clock: Clock
) -> None:
    sink.refusing = True
    discord.say(room, BOB, "first")
    await sink.until(lambda: sink.refused > 2)
    assert channel.health().state is HealthState.DOWN
    assert channel.health().detail == "Messages cannot be stored, so none are taken from Discord: disk full"
    assert clock.pauses[:2] == [1.0, 1.0]
    discord.say(room, BOB, "second")
    sink.refusing = False
    await sink.until(lambda: len(sink.items) == 2)
    assert sink.texts == ["first", "second"]
    assert channel.health().state is HealthState.READY


# -- sessions and gaps -----------------------------------------------------------------------------------------------


async def test_a_new_session_tells_what_was_reached_before_anything_is_accepted(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    discord.add_channel(home, "quiet")
    asked = discord.say(room, BOB, "while away")
    thread = discord.add_thread(room, "details", BOB, message=asked)
    inside = discord.say(thread, BOB, "there, too")
    discord.add_guild("Work", ALICE)
    channel = DiscordChannel(settings_for(discord), clock.times)
    await channel.start(sink)
    await discord.wait_connected()
    discord.say(room, BOB, "live")
    await sink.until(lambda: sink.texts)
    assert sink.story == ["missed", "live"]
    assert list(sink.missing[0]) == [
        Reached(place(room), asked["id"]),
        Reached(place(room, thread["id"]), inside["id"]),
    ]
    await channel.close()


def new_session(discord: DiscordServer, *guilds: Json) -> None:
    """Tell the beginning of a session once more, and nothing of its servers yet."""
    (session,) = discord.sessions.values()
    listed = [{"id": one["id"], "unavailable": True} for one in guilds]
    ready = {"session_id": session.id, "resume_gateway_url": discord.resume_url, "guilds": listed}
    discord.push_raw("READY", ready)


async def test_what_comes_before_all_servers_have_told_their_channels_waits(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    work = discord.add_guild("Work", ALICE)
    new_session(discord, home, work)
    live = discord.say(room, BOB, "live")
    for _ in range(3):  # long enough for it to come
        await channel.working(place(room))
    assert sink.story == ["missed"]
    discord.outage(home, over=True)
    discord.dm(ALICE, "directly")
    discord.outage(work)
    await sink.until(lambda: len(sink.items) == 2)
    assert sink.story == ["missed", "missed", "live", "directly"]
    assert list(sink.missing[1]) == [Reached(place(room), live["id"])]


async def test_a_server_that_is_away_holds_up_nothing_for_long_and_is_told_when_it_is_back(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    time = LoopTime()
    channel = DiscordChannel(settings_for(discord), clock.times)
    await channel.start(sink)
    await sink.until(lambda: sink.missing)
    work = discord.add_guild("Work", ALICE)
    far = discord.add_channel(work, "far")
    newest = discord.say(far, ALICE, "unheard")
    await sink.until(lambda: sink.texts == ["unheard"])
    new_session(discord, home, work)
    discord.outage(home, over=True)
    discord.say(room, BOB, "live")
    async with asyncio.timeout(PATIENCE):
        while not channel._receiver._waiting:  # noqa: ASYNC110  # it is held until the other server has told its channels
            await asyncio.sleep(0)
    await time.advance(DiscordAccount.guilds_timeout)
    await sink.until(lambda: sink.texts[1:] == ["live"])
    assert sink.story[2:] == ["missed", "live"]
    discord.outage(work, over=True)
    await sink.until(lambda: len(sink.missing) == 3)
    assert list(sink.missing[2]) == [Reached(place(far), newest["id"])]
    discord.outage(work, over=True)
    discord.say(room, BOB, "last")
    await sink.until(lambda: sink.texts[2:] == ["last"])
    assert len(sink.missing) == 3, "it was told"
    await channel.close()


async def test_a_session_that_is_resumed_has_no_gap_and_misses_nothing(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel, clock: Clock
) -> None:
    for end in (discord.reconnect, discord.close_gateway, lambda: discord.invalidate(resumable=True)):
        links = list(discord.links)
        end()
        await discord.wait_for(lambda before=links: before[0] not in discord.links)  # type: ignore[misc]
        discord.say(room, BOB, "in between")
        await discord.wait_connected()
        await sink.until(lambda: sink.texts == ["in between"])
        await sink.until(lambda: channel.health().state is HealthState.READY)
        sink.batches.clear()
    assert len(discord.resumed) == 3
    assert len(sink.missing) == 1
    assert len(discord.identified) == 1


async def test_a_session_that_is_over_is_begun_anew_with_a_gap(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel, clock: Clock
) -> None:
    discord.invalidate()
    await sink.until(lambda: len(sink.missing) == 2)
    discord.forget_sessions()
    discord.close_gateway(4009)
    discord.forget_sessions()
    await sink.until(lambda: len(sink.missing) == 3)
    assert len(discord.identified) == 3
    assert clock.pauses
    assert min(clock.pauses) >= 1.0


async def test_a_server_that_falls_silent_is_left(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    discord.heartbeat_interval, discord.heartbeat_patience = 0.05, PATIENCE  # the library's thread may come late
    channel = DiscordChannel(settings_for(discord, heartbeat_timeout=0.15), clock.times)
    await channel.start(sink)
    await sink.until(lambda: sink.missing)
    discord.gateway_silent = True
    await discord.wait_for(lambda: not discord.links, "the connection to be left")
    discord.gateway_silent = False
    discord.say(room, BOB, "are you there?")
    await sink.until(lambda: sink.texts == ["are you there?"])
    assert channel.health().state is HealthState.READY
    await channel.close()


async def test_heartbeats_that_are_not_answered_count_although_events_come(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setattr("channels.discord.gateway.perf_counter", lambda: perf_counter() + 41 + 61)
        assert channel.health().state is HealthState.DOWN
        assert channel.health().detail == "Discord has not answered a heartbeat for too long"
        discord.say(room, BOB, "noise")
        await discord.wait_for(lambda: bool(discord.resumed))
    discord.say(room, BOB, "better")
    await sink.until(lambda: sink.texts == ["noise", "better"])
    await sink.until(lambda: channel.health().state is HealthState.READY)


async def test_a_server_that_never_says_ready_is_left(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    time = LoopTime()
    discord.gateway_silent = True
    channel = DiscordChannel(settings_for(discord), clock.times)
    await channel.start(sink)
    seen: set[int] = set()
    for number in (1, 2):
        async with asyncio.timeout(PATIENCE):
            while not (found := [one for one in discord.links if one.zombie and id(one) not in seen]):  # noqa: ASYNC110
                await asyncio.sleep(0)
        seen |= {id(one) for one in found}
        assert channel.health().state is not HealthState.READY
        discord.gateway_silent = number == 1  # with the next connection
        await time.advance(DiscordAccount.connect_timeout)
        await clock.until(number)
    await sink.until(lambda: sink.missing)
    await channel.close()


async def test_a_discord_that_is_down_at_the_start_is_waited_for(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    await discord.stop()
    channel = DiscordChannel(settings_for(discord), clock.times)
    await channel.start(sink)
    await clock.until(7)
    assert channel.health().state is HealthState.DOWN
    assert channel.health().detail.startswith("Discord cannot be reached")
    assert channel.account == ""
    assert clock.pauses[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    await discord.start()
    discord.say(room, BOB, "hello")
    await sink.until(lambda: sink.missing)
    assert channel.health().state is HealthState.READY
    await channel.close()


async def test_a_token_that_is_refused_is_said_without_the_token(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    discord.tolerate(Rule.TOKEN)
    wrong = "a-wrong-token-of-nobody"
    with caplog.at_level(logging.DEBUG):
        settings = settings_for(discord, token=wrong)
        channel = DiscordChannel(settings, clock.times)
        await channel.start(sink)
        await clock.until(5)
        result = await say(channel, "hello", room)
        await channel.close()
    assert clock.pauses[:5] == [5.0, 10.0, 20.0, 40.0, 60.0]
    assert isinstance(result, NotSent)
    said = [
        one.getMessage() for one in caplog.records if one.name.startswith("channels") and one.levelno > logging.INFO
    ]
    assert said == [
        "discord: Discord does not accept the token of this bot; the Developer Portal "
        "(https://discord.com/developers/applications) has the right one: Bot, Reset Token (401: Unauthorized)"
    ]
    for text in (caplog.text, repr(result), repr(settings), channel.health().detail):
        assert wrong not in text


async def test_the_token_is_in_no_log(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        channel = DiscordChannel(settings_for(discord), clock.times)
        await channel.start(sink)
        await sink.until(lambda: sink.missing)
        await say(channel, "hello", room)
        await channel.close()
    assert "/messages" in caplog.text
    assert discord.token not in caplog.text


@pytest.mark.parametrize("told", [True, False], ids=["by the flags", "by 4014"])
async def test_without_message_content_it_runs_and_says_so(
    discord: DiscordServer,
    room: Json,
    sink: RecordingSink,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    told: bool,
) -> None:
    discord.granted = Intent(0)
    if not told:  # it was switched off between the two questions
        type(discord).flags = property(lambda self: 1 << 19)  # type: ignore[assignment]
    try:
        with caplog.at_level(logging.WARNING, "channels"):
            channel = DiscordChannel(settings_for(discord), clock.times)
            await channel.start(sink)
            await sink.until(lambda: sink.missing)
    finally:
        if not told:
            del type(discord).flags  # type: ignore[misc]
    discord.say(room, BOB, "not for you")
    discord.say(room, BOB, f"{HARK.mention} for you")
    discord.dm(ALICE, "also for you")
    await sink.until(lambda: len(sink.items) == 2)
    assert sink.texts == ["for you", "also for you"]
    assert discord.identified[-1]["intents"] & Intent.MESSAGE_CONTENT == 0
    assert "switch on Message Content Intent in the Developer Portal" in channel.health().detail
    assert len(caplog.records) == 1
    await channel.close()


@pytest.mark.parametrize("code", [4010, 4013])
async def test_close_codes_that_no_new_connection_mends_are_said(
    discord: DiscordServer, sink: RecordingSink, channel: DiscordChannel, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    discord.close_gateway(code)
    await sink.until(lambda: len(sink.missing) == 2)
    assert f"Discord refuses this bot (the gateway closed with {code})" in caplog.text
    assert channel.health().state is HealthState.READY


async def test_intake_stops_and_sends_still_work(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    sink.commit.clear()
    discord.say(room, BOB, "in time")
    await sink.until(lambda: sink.entered)
    asyncio.get_running_loop().call_soon(sink.commit.set)  # while the intake is ended
    await channel.stop_intake()
    discord.say(room, BOB, "too late")
    assert not discord.sessions, "Discord was told, so that it shows nobody there"
    assert channel.health().state is HealthState.DOWN
    assert sink.texts == ["in time"]
    assert isinstance(await say(channel, "still here", room), Sent)
    await channel.close()
    assert await say(channel, "closed", room, nonce=2) == NotSent(1.0, "not connected")


# -- commands and buttons --------------------------------------------------------------------------------------------


async def test_commands_are_listed_once_until_they_change(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    puts = 0
    for listed, more in ((COMMANDS, 1), (COMMANDS, 0), (COMMANDS[:1], 1)):
        sink.listed = listed
        puts += more
        channel = DiscordChannel(settings_for(discord), clock.times)
        await channel.start(sink)
        await sink.until(lambda: sink.ready)
        sink.ready.clear()
        await channel.close()
        calls = [call for call in discord.ledger.calls if call.route.startswith("PUT /applications")]
        assert len(calls) == puts
        names = [one["name"] for one in discord.commands[""].values()]
        assert names == [one.name for one in listed]


async def test_an_interaction_is_stored_then_deferred_then_answered_in_its_place(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    sink.listed = COMMANDS
    channel = DiscordChannel(settings_for(discord), clock.times)
    await channel.start(sink)
    await sink.until(lambda: sink.ready)
    sink.commit.clear()
    sink.entered = 0
    used = discord.slash(BOB, room, "approve", {"decision": "once", "id": "7f3"})
    await sink.until(lambda: sink.entered)
    await channel.working(place(room))
    await channel.working(place(room))
    assert used.answer is None
    sink.commit.set()
    await sink.until(lambda: sink.messages)
    (command,) = sink.messages
    assert (command.kind, command.text) == (InboundKind.COMMAND, "/approve 7f3 once")
    assert command.event_key == f"c:{used.id}"
    assert command.origin.place == place(room)
    # At once: the answer waits for the deferral that is under way.
    with caplog.at_level(logging.DEBUG, "discord.http"):
        result = await say(channel, "Done.", room, respond=command.respond)
    assert "/webhooks/" in caplog.text
    assert used.token not in caplog.text
    assert used.answer == 5
    assert used.original is not None
    assert result == Sent(used.original["id"])
    assert [(one.method, one.text) for one in discord.sent] == [("respond", "Done.")]
    again = await say(channel, "Done.", room, respond=command.respond)
    assert again == result
    clock.seconds += 15 * 60
    late = await say(channel, "Too late for that.", room, respond=command.respond, nonce=3)
    assert isinstance(late, Sent)
    assert [one.method for one in discord.sent] == ["respond", "edit", "send"]
    await channel.close()


async def test_an_interaction_that_discord_has_forgotten_is_answered_by_a_message(
    discord: DiscordServer, room: Json, channel: DiscordChannel, clock: Clock
) -> None:
    handle = f"{HARK.id} token-of-long-ago {int(clock.seconds * 1000)}"
    assert isinstance(await say(channel, "Done.", room, respond=handle), Sent)
    assert [one.method for one in discord.sent] == ["send"]


async def test_a_click_is_taken_and_answered_by_a_message_of_its_own(
    discord: DiscordServer, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    buttons = (*(Button(f"Choice {number}" + 80 * "x", f"/pick {number}") for number in range(6)),)
    asked = await say(channel, "Which?", room, buttons=buttons)
    assert isinstance(asked, Sent)
    message = discord.message(room["id"], asked.platform_id)
    click = discord.click(BOB, message, "/pick 5")
    await sink.until(lambda: sink.messages)
    (pressed,) = sink.messages
    assert (pressed.kind, pressed.text, pressed.reply_to) == (InboundKind.BUTTON, "/pick 5", asked.platform_id)
    await discord.wait_for(lambda: click.answer == 6)
    await say(channel, "Taken.", room, respond=pressed.respond, nonce=2)
    edit = outgoing(shown("Which? Choice 5"), place(room), action=Action.EDIT, target=asked.platform_id)
    assert await channel.send(edit) == Sent(asked.platform_id)
    assert [one.method for one in discord.sent] == ["send", "send", "edit"]
    assert discord.message(room["id"], asked.platform_id)["components"] == []


# -- sending ---------------------------------------------------------------------------------------------------------


async def test_a_message_pings_nobody_and_previews_nothing(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    asked = discord.say(room, BOB, "may I?")
    text = f"{BOB.mention} @everyone https://example.org"
    everybody = shown(text, allowed_mentions={"parse": ["users", "everyone"]})
    result = await channel.send(
        outgoing(everybody, place(room), reply_to=asked["id"], silent=True, nonce=(1 << 63) - 1)
    )
    sent = discord.sent[-1]
    assert result == Sent(sent.message_id)
    assert (sent.text, sent.reply_to, sent.flags) == (text, asked["id"], 4 | 1 << 12)
    assert not discord.pinged()
    assert sent.params["nonce"] == str((1 << 63) - 1)
    assert sent.params["enforce_nonce"] is True


async def test_the_same_nonce_is_the_same_message(discord: DiscordServer, room: Json, channel: DiscordChannel) -> None:
    assert await say(channel, "once", room, nonce=7) == await say(channel, "once", room, nonce=7)
    assert discord.texts() == ["once"]


async def test_what_may_not_be_replied_to_is_answered_all_the_same(
    discord: DiscordServer, home: Json, room: Json, channel: DiscordChannel
) -> None:
    asked = discord.say(room, BOB, "hello")
    discord.overwrite(room, HARK, deny=Permission.READ_MESSAGE_HISTORY)
    assert isinstance(await say(channel, "one", room, reply_to=asked["id"], nonce=1), Sent)
    assert isinstance(await say(channel, "two", room, reply_to="99999", nonce=2), Sent)
    assert discord.texts() == ["one", "two"]


async def test_a_thread_that_is_not_there_is_opened_on_its_message(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    asked = discord.say(room, BOB, f"{HARK.mention} how does\nthis   work, {BOB.mention}?")
    there = place(room, asked["id"])
    for number, text in enumerate(("so", "and so")):
        result = await channel.send(outgoing(shown(text), there, reply_to=asked["id"], nonce=number))
        assert isinstance(result, Sent)
    thread = discord.channels[asked["id"]]
    assert (thread["parent_id"], thread["name"]) == (room["id"], "how does this work, @Bob?")
    assert discord.texts(thread) == ["so", "and so"]
    opened = [call for call in discord.ledger.calls if call.route.endswith("/threads")]
    assert len(opened) == 1
    discord.fail_next(SEND, status=404, code=10003, message="Unknown Channel")
    assert isinstance(await channel.send(outgoing(shown("raced"), there, nonce=9)), Sent), "it has a thread already"
    gone = await channel.send(outgoing(shown("no"), place(room, "1234567890123456789"), nonce=10))
    assert isinstance(gone, Refused)
    discord.fail_next("POST /channels/*/messages/*/threads", drop=True)
    other = discord.say(room, BOB, "more")
    result = await channel.send(outgoing(shown("never sent"), place(room, other["id"]), nonce=11))
    assert isinstance(result, NotSent), "what failed was not the send"


async def test_where_no_thread_can_be_opened_the_answer_stands_below_its_message(
    discord: DiscordServer, room: Json, channel: DiscordChannel, clock: Clock
) -> None:
    discord.overwrite(room, HARK, deny=Permission.CREATE_PUBLIC_THREADS)
    asked = discord.say(room, BOB, "how?")
    planned_at = int(clock.seconds * 1000)
    answer = outgoing(shown("so"), place(room, asked["id"]), reply_to=asked["id"], planned_at=planned_at)
    result = await channel.send(answer)
    assert isinstance(result, Sent)
    assert result.lost == ("thread",)
    assert [(one.channel_id, one.text, one.reply_to) for one in discord.sent] == [(room["id"], "so", asked["id"])]
    clock.seconds += 121
    assert await channel.settle(answer) == Sent(result.platform_id)


async def test_a_file_is_sent_with_its_caption(
    discord: DiscordServer, room: Json, channel: DiscordChannel, tmp_path: Path
) -> None:
    path = tmp_path / "report.txt"
    path.write_text("all is well")
    file = OutgoingFile(str(path), "the report.txt", "text/plain")
    given = {"action": Action.FILE, "file": file}
    for number, body in enumerate((shown("**See**"), "")):
        result = await channel.send(outgoing(body, place(room), nonce=number, **given))
        assert isinstance(result, Sent)
        (attached,) = discord.message(room["id"], result.platform_id)["attachments"]
        assert (attached["filename"], attached["size"]) == ("the_report.txt", 11)
    assert [one.text for one in discord.sent] == ["**See**", ""]
    assert isinstance(await channel.send(outgoing("", place(room), nonce=1, **given)), Sent)
    assert len(discord.sent) == 2
    path.unlink()
    assert isinstance(await channel.send(outgoing("", place(room), nonce=3, **given)), Refused)


async def test_a_spoken_answer_is_a_voice_message(
    discord: DiscordServer, room: Json, channel: DiscordChannel, tmp_path: Path
) -> None:
    """The last page of Ogg tells the samples; what is not Ogg goes out as a file."""
    page = b"OggS\x00\x04" + (48_000 * 5 // 2).to_bytes(8, "little")
    told = []
    for number, sound in enumerate((b"OggS\x00\x02" + bytes(22) + page, b"ID3")):
        (tmp_path / "answer.ogg").write_bytes(sound)
        file = OutgoingFile(str(tmp_path / "answer.ogg"), "answer.ogg", "audio/ogg", says="so")
        result = await channel.send(outgoing("", place(room), nonce=number, action=Action.FILE, file=file, silent=True))
        assert isinstance(result, Sent)
        message = discord.message(room["id"], result.platform_id)
        told.append((message["flags"], message["attachments"][0].get("duration_secs")))
    assert told == [(1 << 13 | 1 << 12, 2.5), (1 << 12, None)]


async def test_a_message_is_edited_reacted_to_and_deleted_and_again_without_harm(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    question = discord.say(room, BOB, "hello")["id"]
    sent = await say(channel, "first", room)
    assert isinstance(sent, Sent)
    mine = {"target": sent.platform_id}
    deliveries = [
        outgoing(shown("second"), place(room), action=Action.EDIT, buttons=(Button("Yes", "yes"),), **mine),
        outgoing("👀", place(room), action=Action.REACT, target=question),
        outgoing("", place(room), action=Action.REACT, target=question),
        outgoing("", place(room), action=Action.DELETE, **mine),
    ]
    for one in deliveries:
        for _ in range(2):  # what became of it was not known
            assert await channel.send(one) == Sent(one.target)
    assert [one.method for one in discord.sent] == ["send", "edit", "edit", "react", "react", "unreact", "delete"]
    for action in (Action.EDIT, Action.REACT):
        gone = outgoing(shown("x") if action is Action.EDIT else "👀", place(room), action=action, target="9999")
        assert isinstance(await channel.send(gone), Refused)


async def test_a_question_is_reacted_to_where_it_stands(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, channel: DiscordChannel
) -> None:
    forum = discord.add_channel(home, "ideas", kind=FORUM)
    post = discord.add_thread(forum, "An idea", BOB, text="fly")
    asked = discord.say(room, BOB, "how?")
    there = place(room, asked["id"])
    reaction = outgoing("👀", there, action=Action.REACT, target=asked["id"])
    assert await channel.send(reaction) == Sent(asked["id"]), "before its thread is opened"
    await channel.working(there)
    assert isinstance(await channel.send(outgoing(shown("so"), there)), Sent)
    discord.say(discord.channels[asked["id"]], BOB, "thanks")
    await sink.until(lambda: sink.texts[-1:] == ["thanks"])
    await channel.working(there)
    typed = [where for where, kind in discord.ledger.timeline if kind == "typing"]
    assert typed == [room["id"], asked["id"]]
    assert await channel.send(replace(reaction, body="")) == Sent(asked["id"]), "and after that"
    first = replace(reaction, place=place(forum, post["id"]), target=post["id"])
    assert await channel.send(first) == Sent(post["id"])
    where = [(one.method, one.channel_id) for one in discord.sent if one.method != "send"]
    assert where == [("react", room["id"]), ("unreact", room["id"]), ("react", post["id"])]


@pytest.mark.parametrize("after_apply", [False, True])
async def test_what_became_of_a_send_is_told_by_where_it_failed(
    discord: DiscordServer, room: Json, channel: DiscordChannel, after_apply: bool
) -> None:
    faults: tuple[Json, ...] = ({"status": 500}, {"status": 502}, {"status": 503}, {"drop": True})
    for number, fault in enumerate(faults):
        discord.fail_next(SEND, after_apply=after_apply, **fault)
        assert isinstance(await say(channel, f"answer {number}", room, nonce=number), Unknown), fault
    assert len(discord.texts()) == (len(faults) if after_apply else 0)


@pytest.mark.parametrize("part", ["request", "answer"])
async def test_a_wire_that_is_cut_leaves_the_outcome_unknown(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock, part: str
) -> None:
    async with FaultProxy(discord.port) as proxy:
        settings = settings_for(discord, base_url=f"http://127.0.0.1:{proxy.port}/api/v10")
        channel = DiscordChannel(settings, clock.times)
        await channel.start(sink)
        await sink.until(lambda: sink.missing)
        cut = proxy.cut_request if part == "request" else proxy.cut_answer
        cut(b"enforce_nonce" if part == "request" else b"/messages", after=0)
        result = await say(channel, "answer", room)
        await channel.close()
    assert isinstance(result, Unknown)
    assert discord.texts() == (["answer"] if part == "answer" else [])


async def test_a_discord_that_cannot_be_reached_has_not_sent(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    await channel.stop_intake()
    await discord.stop()
    assert [type(await say(channel, "answer", room)) for _ in range(2)] == [NotSent, NotSent]
    result = await say(channel, "answer", room)
    assert isinstance(result, NotSent)
    assert result.retry_after == 4.0


async def test_a_refusal_is_one_sentence(discord: DiscordServer, room: Json, channel: DiscordChannel) -> None:
    direct = discord.open_dm(ALICE)
    discord.dm(ALICE, "hello")
    discord.block(ALICE)
    discord.overwrite(room, HARK, deny=Permission.SEND_MESSAGES)
    for number, (where, words) in enumerate(((direct, "has blocked it"), (room, "lacks a permission"))):
        result = await say(channel, "answer", where, nonce=number)
        assert isinstance(result, Refused)
        assert words in result.reason
    hidden = discord.add_channel(room["guild_id"], "hidden")
    discord.overwrite(hidden, HARK, deny=Permission.VIEW_CHANNEL)
    result = await say(channel, "answer", hidden, nonce=7)
    assert isinstance(result, Refused)
    assert "allow it View Channel" in result.reason
    for broken in (outgoing("no json", place(room)), outgoing("[]", place(room))):
        assert isinstance(await channel.send(broken), Refused)


async def test_a_long_429_is_waited_out_by_the_outbox_and_a_short_one_by_the_library(
    discord: DiscordServer, room: Json, channel: DiscordChannel, clock: Clock
) -> None:
    other = discord.add_channel(room["guild_id"], "other")
    discord.fail_next(SEND, status=429, retry_after=60.0)
    result = await say(channel, "answer", room)
    assert isinstance(result, NotSent)
    assert result.retry_after == 60
    assert isinstance(await say(channel, "elsewhere", other), Sent)
    discord.fail_next(SEND, status=429, retry_after=0.01)
    short = asyncio.create_task(say(channel, "a little later", other, nonce=3))
    asked = len(discord.ledger.calls)
    await discord.wait_for(lambda: len(discord.ledger.calls) > asked)
    clock.seconds += 1
    assert isinstance(await short, Sent)
    discord.fail_next(SEND, status=429, page=True)
    banned = await say(channel, "again", other, nonce=2)
    assert isinstance(banned, NotSent)
    assert banned.retry_after


async def test_a_full_limit_is_known_and_holds_up_that_channel_only(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    other = discord.add_channel(room["guild_id"], "other")
    discord.limiter.limits = RateLimits()
    for number in range(5):
        assert isinstance(await say(channel, f"{number}", room, nonce=number), Sent)
    assert 4 < channel.pass_limit(place(room)) <= 5
    assert channel.pass_limit(place(other)) == 0
    assert isinstance(await say(channel, "elsewhere", other, nonce=9), Sent)
    held = asyncio.create_task(say(channel, "waits", room, nonce=10))
    await asyncio.sleep(0)
    held.cancel()
    await asyncio.wait([held])


# -- settling --------------------------------------------------------------------------------------------------------


async def test_a_young_send_is_settled_by_its_nonce(
    discord: DiscordServer, room: Json, channel: DiscordChannel, clock: Clock
) -> None:
    for number, applied in enumerate((True, False)):
        discord.fail_next(SEND, drop=True, after_apply=applied)
        one = outgoing(shown(f"answer {number}"), place(room), nonce=number, planned_at=int(clock.seconds * 1000))
        assert isinstance(await channel.send(one), Unknown)
        discord.fail_next(SEND, drop=True)
        discord.fail_next(SEND, status=502, times=2)
        clock.pauses.clear()
        assert isinstance(await channel.settle(one), Sent)
        assert clock.pauses == [1.0, 2.0, 4.0]
    assert discord.texts() == ["answer 0", "answer 1"]


async def test_an_old_send_is_settled_by_what_stands_there(
    discord: DiscordServer, room: Json, channel: DiscordChannel, clock: Clock, tmp_path: Path
) -> None:
    asked = discord.say(room, BOB, "hello")
    await say(channel, "another answer", room, nonce=50)
    discord.say(room, BOB, "there")
    planned_at = int(clock.seconds * 1000)
    there = outgoing(shown("there "), place(room), nonce=1, planned_at=planned_at, reply_to=asked["id"])
    absent = replace(there, body=shown("absent"), nonce=2)
    path = tmp_path / "a b.txt"
    path.write_text("x")
    file = OutgoingFile(str(path), "a b.txt")
    picture = replace(there, body="", nonce=3, reply_to="", action=Action.FILE, file=file)
    for one in (there, picture):
        discord.fail_next(SEND, drop=True, after_apply=True)
        assert isinstance(await channel.send(one), Unknown)
    sent = [one.message_id for one in discord.sent]
    for number in range(150):
        discord.say(room, BOB, f"talk {number}")
    clock.seconds += 121
    discord.fail_next("GET /channels/*/messages", status=502)
    assert await channel.settle(there) == Sent(sent[1])
    assert await channel.settle(picture) == Sent(sent[2])
    assert await channel.settle(replace(picture, file=replace(file, name="c.txt"))) == NotSent(
        1.0, "it was not there; sent again"
    )
    assert isinstance(await channel.settle(absent), NotSent)
    assert await channel.settle(replace(absent, attempts=4)) == NotSent(8.0, "it was not there; sent again")
    assert isinstance(await channel.settle(replace(absent, attempts=50)), Unknown)
    assert isinstance(await channel.settle(replace(there, attempts=99)), Sent)
    unopened = replace(absent, place=place(room, asked["id"]))
    assert isinstance(await channel.settle(unopened), NotSent), "its thread was to be opened first"
    discord.overwrite(room, HARK, deny=Permission.READ_MESSAGE_HISTORY)
    blind = await channel.settle(absent)
    assert isinstance(blind, Unknown), "an empty history is not an empty channel"
    assert len(discord.sent) == 3


# -- history and files -----------------------------------------------------------------------------------------------


async def test_history_is_what_the_live_events_were(
    discord: DiscordServer, home: Json, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    role = discord.add_role(home, "staff")
    discord.add_member(home, BOB, roles=[role])
    channel = DiscordChannel(
        settings_for(discord, groups={"allow": {home["id"]: {"roles": [role["id"]]}}}), clock.times
    )
    await channel.start(sink)
    await sink.until(lambda: sink.missing)
    asked = discord.say(room, BOB, f"{HARK.mention} look", files=[File("cat.png", b"cat", "image/png")])
    discord.say(room, ALICE, "a reply", reply_to=asked)
    thread = discord.add_thread(room, "details", BOB, message=asked)
    inside = discord.say(thread, BOB, "in the thread")
    discord.dm(ALICE, "hello")
    await sink.until(lambda: len(sink.items) == 4)
    direct = discord.open_dm(ALICE)
    await say(channel, "mine", room)
    page = await channel.history(place(room), channel.position(int(clock.seconds * 1000) - 1), "", 100)
    below = await channel.history(place(room, thread["id"]), "", "", 100)
    talk = await channel.history(place(direct), "", "", 100)
    read = [*page.batch, *below.batch, *talk.batch]
    strip = [replace(one, attachments=()) for one in sink.messages]
    assert [replace(one, attachments=()) for one in read if isinstance(one, InboundMessage)] == strip
    assert strip[0].origin.roles == (role["id"],)
    assert (page.more, below.newest) == (False, inside["id"])
    assert page.newest == discord.sent[-1].message_id
    await channel.close()


async def test_the_history_of_an_archived_thread_is_that_of_a_thread(
    discord: DiscordServer, room: Json, sink: RecordingSink, clock: Clock
) -> None:
    thread = discord.add_thread(room, "old", BOB, text="long ago")
    discord.archive(thread)
    channel = DiscordChannel(settings_for(discord), clock.times)
    await channel.start(sink)
    await sink.until(lambda: sink.missing)
    (old,) = (await channel.history(place(room, thread["id"]), "", "", 100)).batch
    assert isinstance(old, InboundMessage)
    assert old.origin.place == place(room, thread["id"])
    assert old.event_key == f"m:{room['id']}:{old.origin.message_id}"
    await channel.close()


async def test_history_comes_in_pages_between_two_ids(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    said = [discord.say(room, BOB, f"{number}") for number in range(120)]
    seen: list[str] = []
    after, more = said[0]["id"], True
    while more:
        page = await channel.history(place(room), after, said[111]["id"], 50)
        seen += [one.text for one in page.batch if isinstance(one, InboundMessage)]
        after, more = page.newest, page.more
    assert seen == [f"{number}" for number in range(1, 111)]
    whole = await channel.history(place(room), said[0]["id"], "", 999)
    assert (len(whole.batch), whole.more) == (100, True)
    empty = await channel.history(place(room), said[-1]["id"], "", 100)
    assert (list(empty.batch), empty.newest, empty.more) == ([], "", False)


async def test_history_that_cannot_be_read_is_told(discord: DiscordServer, room: Json, channel: DiscordChannel) -> None:
    route = "GET /channels/*/messages"
    for fault, again in (({"status": 502}, True), ({"drop": True}, True), ({"status": 429, "retry_after": 60}, True)):
        discord.fail_next(route, **fault, times=2 if "drop" in fault else 1)  # aiohttp repeats a dropped read
        with pytest.raises(NotReadable) as told:
            await channel.history(place(room), "", "", 100)
        assert (told.value.retry_after is not None) is again
    discord.limiter.early.clear()
    for where in ({"id": "1234567890123456789", "type": 0}, room):
        discord.overwrite(room, HARK, deny=Permission.READ_MESSAGE_HISTORY)
        with pytest.raises(NotReadable) as told:
            await channel.history(place(where), "", "", 100)
        assert told.value.retry_after is None


async def test_a_file_is_downloaded_and_its_address_renewed_once(
    discord: DiscordServer, sink: RecordingSink, channel: DiscordChannel, clock: Clock
) -> None:
    async def read(attachment: Attachment) -> bytes:
        return b"".join([piece async for piece in channel.download(attachment)])

    discord.dm(ALICE, files=[File("cat.png", 200_000 * b"cat", "image/png")])
    await sink.until(lambda: sink.messages)
    (cat,) = sink.messages[0].attachments
    assert (cat.kind, cat.name, cat.size) == ("image", "cat.png", 600_000)
    assert await read(cat) == 200_000 * b"cat"
    clock.seconds += 25 * 3600
    assert await read(cat) == 200_000 * b"cat"
    assert [status for _, status in discord.files.downloads] == [200, 404, 200]
    asked = len(discord.ledger.calls)
    for url in ("http://example.org/cat.png", f"{discord.files.base}@example.org/cat.png", "file:///etc/passwd"):
        with pytest.raises(NotDownloaded, match="own servers"):
            await read(replace(cat, ref=url))
    assert len(discord.ledger.calls) == asked
    for ref in ("", "{}", f"{discord.files.base}/attachments/1/2/none.png"):
        with pytest.raises(NotDownloaded):
            await read(replace(cat, ref=ref))


# -- typing ----------------------------------------------------------------------------------------------------------


async def test_a_message_waits_for_the_typing_call_before_it(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    other = discord.add_channel(room["guild_id"], "other")
    held = discord.hold_next("POST /channels/*/typing")
    async with asyncio.TaskGroup() as group:
        group.create_task(channel.working(place(room)))
        await asyncio.wait_for(held.reached.wait(), 5)
        sending = group.create_task(say(channel, "answer", room))
        await say(channel, "elsewhere", other, nonce=2)
        assert discord.texts() == ["elsewhere"]
        held.release()
    assert isinstance(sending.result(), Sent)
    assert [kind for where, kind in discord.ledger.timeline if where == room["id"]][-2:] == ["typing", "out"]


async def test_no_typing_begins_while_a_message_is_being_sent_and_its_failures_are_no_matter(
    discord: DiscordServer, room: Json, channel: DiscordChannel
) -> None:
    held = discord.hold_next(SEND)
    async with asyncio.TaskGroup() as group:
        group.create_task(say(channel, "answer", room))
        await asyncio.wait_for(held.reached.wait(), 5)
        await channel.working(place(room))
        held.release()
    assert not [call for call in discord.ledger.calls if call.route.endswith("/typing")]
    for status in (403, 500):
        discord.fail_next("POST /channels/*/typing", status=status)
        await channel.working(place(room))
    await channel.working(place({"id": "1234567890123456789", "type": 0}))
