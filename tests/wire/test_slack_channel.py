"""The Slack channel against a server that speaks Web API, Socket Mode and signed requests, with faults in each."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from channels.actions import ActionFailed, Arguments
from channels.base import HealthState, NotDownloaded, NotReadable
from channels.message import Attachment, ChatKind, InboundKind, InboundMessage, Incoming, Place, UnreadEvent
from channels.outgoing import (
    Action,
    Button,
    Delivery,
    Elsewhere,
    NotSent,
    OutgoingFile,
    Refused,
    Sent,
    Unknown,
    as_body,
)
from channels.slack.adapter import SlackChannel
from channels.slack.receive import SlackReceiver
from channels.slack.settings import SlackAccount
from tests.channels.sections import account
from tests.channels.slack.manifest import manifest
from tests.deliveries import delivery, led_to
from tests.standins.proxy import FaultProxy
from tests.standins.slack_corpus import malformed, readable
from tests.standins.slack_delivery import State
from tests.standins.slack_faults import RateLimits
from tests.standins.slack_ledger import Rule
from tests.standins.slack_manifest import install
from tests.standins.slack_server import SlackServer
from tests.standins.slack_shapes import ALICE, BOB, BOT, Person, Room
from tests.watch import PATIENCE, LoopTime
from tests.wire.sink import Clock, RecordingSink


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def slack(clock: Clock) -> AsyncIterator[SlackServer]:
    """With what the shipped manifest asks for, and nothing else."""
    async with SlackServer(clock=lambda: clock.seconds, wall=lambda: clock.seconds) as server:
        install(server, manifest())
        yield server


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink(("slack", BOT))


def settings_for(slack: SlackServer, **fields: Any) -> SlackAccount:
    given = {"bot_token": slack.bot_token, "app_token": slack.app_token, "base_url": slack.base_url}
    return account(SlackAccount, **given | fields)


@asynccontextmanager
async def connected(settings: SlackAccount, sink: RecordingSink, clock: Clock) -> AsyncIterator[SlackChannel]:
    """A channel that receives."""
    channel = SlackChannel(settings, clock.times)
    await channel.start(sink)
    try:
        await sink.until(lambda: channel.health().state is HealthState.READY)
        yield channel
    finally:
        await channel.close()


@pytest.fixture
async def channel(slack: SlackServer, sink: RecordingSink, clock: Clock) -> AsyncIterator[SlackChannel]:
    async with connected(settings_for(slack), sink, clock) as started:
        yield started


def place(room: Room, thread: str = "") -> Place:
    kinds = {"im": ChatKind.DIRECT, "mpim": ChatKind.GROUP}
    kind = kinds.get(room.kind, ChatKind.CHANNEL)
    return Place(channel="slack", account=BOT, chat=room.id, kind=kind, thread=thread)


def shown(channel: SlackChannel, text: str) -> str:
    """The body of a short message."""
    (body,) = channel.render(text)
    return body


def outgoing(channel: SlackChannel, text: str, to: Place, clock: Clock | None = None, **fields: Any) -> Delivery:
    at = {"planned_at": int(clock.seconds * 1000)} if clock else {}
    return delivery(shown(channel, text), to, **at, **fields)


# -- receiving -------------------------------------------------------------------------------------------------------


async def test_a_message_is_stored_before_it_is_acknowledged(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel
) -> None:
    sink.commit.clear()
    said = slack.dm(ALICE, "hello 😀 &amp; more")
    await sink.until(lambda: sink.entered == 1)
    assert slack.unacknowledged, "it is not stored yet"
    sink.commit.set()
    await slack.wait_acknowledged()
    (message,) = sink.messages
    im = slack.im(ALICE.id)
    assert message.text == "hello 😀 &amp; more"
    assert message.origin.place == place(im)
    assert message.event_key == f"m:{im.id}:{said['ts']}"
    assert channel.account == BOT
    assert channel.health().detail == "receiving as @hark by a connection of Socket Mode"
    assert sink.ready[0] == ("slack", BOT)


async def test_what_cannot_be_stored_is_not_acknowledged_and_comes_again(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel, caplog: pytest.LogCaptureFixture
) -> None:
    sink.refusing = True
    slack.dm(ALICE, "first")
    await sink.until(lambda: sink.refused == 1)
    sink.refusing = False
    slack.dm(ALICE, "second")
    await slack.wait_for(lambda: slack.outbox[1].state is State.ACKNOWLEDGED, "the second one")
    assert slack.unacknowledged == [slack.outbox[0]]
    slack.advance(3.1)
    await slack.wait_acknowledged()
    assert sink.texts == ["second", "first"]
    assert sink.story == ["missed", "first", "missed", "missed", "second", "first"], "only the history may have it"
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == [
        "slack: messages cannot be stored, so none are acknowledged: disk full"
    ]


async def test_a_store_that_fails_otherwise_acknowledges_nothing_either(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(batch: object, mark: object) -> None:
        sink.refused += 1
        sink._changed.set()
        raise RuntimeError("bug")

    monkeypatch.setattr(sink, "accept", broken)
    slack.dm(ALICE, "first")
    await sink.until(lambda: sink.refused == 1)
    assert slack.unacknowledged
    monkeypatch.undo()
    slack.advance(3.1)
    await slack.wait_acknowledged()
    assert sink.texts == ["first"]


async def test_many_at_once_are_in_order_and_wait_for_one_commit_alone(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel
) -> None:
    """All of them enter the store before the first of its commits has ended, while the loop is busy as well."""

    async def busy() -> None:
        while not sink.commit.is_set():
            sum(range(20_000))
            await asyncio.sleep(0)

    sink.commit.clear()
    working = asyncio.create_task(busy())
    for number in range(200):
        slack.dm(ALICE, f"message {number}")
    await sink.until(lambda: sink.entered == 200)
    sink.commit.set()
    await working
    await slack.wait_acknowledged()
    assert sink.texts == [f"message {number}" for number in range(200)]


async def test_a_mention_and_its_twin_and_what_comes_twice_have_one_key(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel
) -> None:
    room = slack.channel("general", ALICE, BOB)
    slack.mention(room, ALICE, "status, <@U0BOB00001>?")
    slack.repeat(slack.outbox[0])
    await slack.wait_acknowledged()
    one, twin, again = sink.messages
    assert one == again
    assert (one.event_key, one.mentioned, one.names_others, one.text) == (
        twin.event_key,
        twin.mentioned,
        twin.names_others,
        twin.text,
    )
    assert one.mentioned
    assert one.names_others
    assert one.origin.place == twin.origin.place == place(room)


async def test_names_come_with_the_next_message(slack: SlackServer, sink: RecordingSink, channel: SlackChannel) -> None:
    slack.dm(ALICE, "first")
    await slack.wait_for(lambda: any(call.method == "users.info" for call in slack.calls))
    slack.fail_next("users.info", "ratelimited", retry_after=2)
    slack.dm(BOB, "second")
    await slack.wait_for(lambda: [call.method for call in slack.calls].count("users.info") == 2)
    while sink.messages[-1].origin.sender_name == "":  # the answer of users.info is read after it was given
        slack.dm(BOB, "and more <@U0ALICE001>")
        await slack.wait_acknowledged()
    assert [message.origin.sender_name for message in sink.messages[:2]] == ["", ""]
    assert sink.messages[-1].origin.sender_name == "Bob Baker"
    assert sink.texts[-1] == "and more @alice"


async def test_every_payload_of_the_corpus_is_taken_or_kept_unread(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel
) -> None:
    good = {name: row for name, row in readable().items() if row[1].get("type") != "url_verification"}
    for kind, payload in good.values():
        slack.push(payload, kind)
    await slack.wait_acknowledged()
    assert not [item for item in sink.items if isinstance(item, UnreadEvent)]
    bad = {name: row for name, row in malformed().items() if isinstance(row[1], dict)}
    for kind, payload in bad.values():
        slack.push(payload, kind)
    await slack.wait_acknowledged()
    unread = [item for item in sink.items if isinstance(item, UnreadEvent)]
    assert len(unread) > 30
    assert all(item.error and "standin-verification" not in item.raw for item in unread)
    slack.dm(ALICE, "last")
    await slack.wait_acknowledged()
    assert sink.texts[-1] == "last"


async def test_commands_and_clicks(slack: SlackServer, sink: RecordingSink, channel: SlackChannel) -> None:
    room = slack.channel("general", ALICE)
    sent = await channel.send(outgoing(channel, "Sure?", place(room), buttons=(Button("Yes", "/yes"),)))
    assert isinstance(sent, Sent)
    slack.slash(room, text="status now")
    slack.click(room, sent.platform_id, "hark_0")
    await slack.wait_acknowledged()
    command, click = sink.messages[-2:]
    assert (command.kind, command.text, command.origin.place) == (InboundKind.COMMAND, "/status now", place(room))
    assert (click.kind, click.text, click.reply_to) == (InboundKind.BUTTON, "/yes", sent.platform_id)
    answers = [outgoing(channel, one.text, place(room), respond=one.respond) for one in (command, click)]
    assert [await channel.send(one) for one in answers] == [Sent(), Sent()]
    assert [(one.shown, one.only_to) for one in slack.sent[-2:]] == [("/status now", ALICE.id), ("/yes", ALICE.id)]


async def test_edits_and_deletions_are_events_of_their_own_and_previews_are_none(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel
) -> None:
    room = slack.channel("general", ALICE)
    said = slack.say(room, ALICE, "helo <https://example.com/>")
    slack.preview(room, said)
    slack.edit(room, said, "hello")
    slack.delete(room, said)
    parent = slack.say(room, ALICE, "parent")
    slack.say(room, ALICE, "reply", thread_ts=parent["ts"])
    slack.delete(room, parent)
    await slack.wait_acknowledged()
    kinds = [(one.kind.value, one.text, one.origin.place.thread) for one in sink.messages]
    assert kinds == [
        ("message", "helo https://example.com/", ""),
        ("edit", "hello", ""),
        ("delete", "", ""),
        ("message", "parent", ""),
        ("message", "reply", parent["ts"]),
        ("delete", "", ""),
    ]
    assert {one.origin.message_id for one in sink.messages[:3]} == {said["ts"]}


# -- connections -----------------------------------------------------------------------------------------------------


async def test_each_start_says_what_may_have_been_missed_before_anything_is_accepted(
    slack: SlackServer, sink: RecordingSink, clock: Clock
) -> None:
    rooms = [slack.channel("general"), slack.channel("secret", private=True), slack.group_dm(ALICE, BOB)]
    slack.channel("without", with_app=False)
    slack.keep_while_away = True
    slack.dm(ALICE, "while away")
    async with connected(settings_for(slack), sink, clock):
        await slack.wait_acknowledged()
    assert sink.story == ["missed", "while away"]
    assert {one.place for one in sink.missing[0]} == {place(room) for room in [*rooms, slack.im(ALICE.id)]}


async def test_a_planned_refresh_is_no_gap_and_no_moment_without_connection(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel, clock: Clock
) -> None:
    for reason in ("warning", "refresh_requested"):
        held = slack.hold_next("apps.connections.open")
        told = await slack.sockets.announce(reason)
        await asyncio.wait_for(held.reached.wait(), 5)
        slack.dm(ALICE, f"during {reason}")
        await slack.wait_acknowledged()
        held.release()
        await slack.wait_for(lambda told=told: not set(told) & set(slack.sockets.connections), "the end of the old one")  # type: ignore[misc]
        slack.dm(ALICE, f"after {reason}")
        await slack.wait_acknowledged()
    assert len(slack.sockets.open) == 1
    assert sink.story == ["missed"] + [
        f"{when} {why}" for why in ("warning", "refresh_requested") for when in ("during", "after")
    ]
    assert clock.pauses == []
    assert channel.health().state is HealthState.READY


async def test_a_refresh_that_fails_is_a_gap(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel, clock: Clock
) -> None:
    held = slack.hold_next("apps.connections.open")
    slack.fail_next("connect", status=502)
    told = await slack.sockets.announce("refresh_requested")
    await asyncio.wait_for(held.reached.wait(), 5)
    again = slack.hold_next("apps.connections.open")
    held.release()
    await asyncio.wait_for(again.reached.wait(), 5)
    slack.dm(ALICE, "by the old one")
    await slack.wait_acknowledged()
    await slack.sockets.close(told)
    again.release()
    await sink.until(lambda: len(sink.missing) == 2)
    slack.dm(ALICE, "by the new one")
    await slack.wait_acknowledged()
    assert sink.story == ["missed", "by the old one", "missed", "by the new one"]
    assert clock.pauses == [1.0]


@pytest.mark.parametrize("how", ["closed", "cut", "silent"])
async def test_a_connection_that_ends_is_a_gap_and_made_anew(
    slack: SlackServer, sink: RecordingSink, clock: Clock, how: str
) -> None:
    async with connected(settings_for(slack, ping_interval=0.05), sink, clock) as channel:
        if how == "closed":
            await slack.sockets.close()
        elif how == "cut":
            slack.sockets.cut()
        else:
            slack.sockets.silent = True
            await clock.until(3)  # connections that are accepted and then say nothing
            assert channel.health().state is HealthState.DOWN
            assert channel.health().detail.startswith("The connection to Slack broke")
            slack.sockets.silent = False
        await sink.until(lambda: len(sink.missing) > 1 and channel.health().state is HealthState.READY)
        slack.dm(ALICE, "hello")
        await slack.wait_acknowledged()
    assert sink.texts == ["hello"]
    assert sink.story[:2] == ["missed", "missed"]
    assert clock.pauses[0] == 1.0
    if how == "silent":
        assert clock.pauses[:3] == [1.0, 2.0, 4.0]


async def test_a_slack_that_is_down_at_the_start_is_waited_for(
    slack: SlackServer, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await slack.stop()
    channel = SlackChannel(settings_for(slack), clock.times)
    await channel.start(sink)
    await clock.until(7)
    assert channel.health().state is HealthState.DOWN
    assert channel.health().detail.startswith("Slack cannot be reached")
    assert channel.account == ""
    assert clock.pauses[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    await slack.start()
    await sink.until(lambda: channel.health().state is HealthState.READY)
    await channel.close()
    assert len([one for one in caplog.records if one.name.startswith("channels")]) == 1, "it is said once"


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("bot_token", "Slack does not accept the bot token; OAuth & Permissions on the app's page has the right one"),
        ("app_token", "Slack does not accept the app-level token for Socket Mode; Basic Information"),
    ],
)
async def test_a_token_that_is_refused_is_said_without_the_token(
    slack: SlackServer,
    sink: RecordingSink,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    which: str,
    sentence: str,
) -> None:
    slack.tolerate(Rule.BAD_TOKEN)
    wrong = f"{'xapp' if which == 'app_token' else 'xoxb'}-wrong-token-of-nobody"
    caplog.set_level(logging.DEBUG)
    settings = settings_for(slack, **{which: wrong})
    channel = SlackChannel(settings, clock.times)
    await channel.start(sink)
    await clock.until(5)
    room = slack.channel("general")
    result = await channel.send(outgoing(channel, "hello", place(room)))
    await channel.close()
    assert clock.pauses[:5] == [5.0, 10.0, 20.0, 30.0, 30.0]
    assert channel.account == ("" if which == "bot_token" else BOT)
    assert isinstance(result, NotSent if which == "bot_token" else Sent)
    said = [one.getMessage() for one in caplog.records if one.name.startswith("channels")]
    assert [one for one in said if sentence in one] == [one for one in said if "does not accept" in one] != []
    for text in (caplog.text, repr(result), repr(settings)):
        assert wrong not in text
        assert slack.bot_token not in text
        assert slack.app_token not in text


async def test_missing_scopes_are_said_and_the_rest_works(
    slack: SlackServer, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    slack.scopes -= {"mpim:read", "reactions:write"}
    async with connected(settings_for(slack), sink, clock) as channel:
        said = slack.dm(ALICE, "hello")
        await slack.wait_acknowledged()
        im = place(slack.im(ALICE.id))
        refused = await channel.send(delivery("👀", im, action=Action.REACT, target=said["ts"]))
        assert isinstance(await channel.send(outgoing(channel, "answer", im)), Sent)
        health = channel.health()
    assert isinstance(refused, Refused)
    assert "reactions:write: add it under OAuth & Permissions" in refused.reason
    assert sink.texts == ["hello"]
    said_of_both = "the app lacks the scope mpim:read, reactions:write: add it under OAuth & Permissions"
    assert said_of_both in caplog.text
    assert health.state is HealthState.READY
    assert health.detail.split("; ")[1].startswith(said_of_both)


async def test_a_blocked_event_loop_is_said(
    slack: SlackServer, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(settings_for(slack, lag_warning=0.001), sink, clock):
        loop = asyncio.get_running_loop()
        while "the event loop was" not in caplog.text:
            until = loop.time() + 0.01
            while loop.time() < until:  # what a blocking call does
                pass
            await asyncio.sleep(0)


async def test_intake_stops_and_sends_still_work(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel
) -> None:
    room = slack.channel("general")
    await channel.stop_intake()
    await slack.wait_for(lambda: not slack.sockets.connections, "no connections")
    slack.say(room, ALICE, "too late")
    assert channel.health().state is HealthState.DOWN
    assert isinstance(await channel.send(outgoing(channel, "still here", place(room))), Sent)
    assert sink.items == []
    await channel.close()
    assert await channel.send(outgoing(channel, "closed", place(room))) == NotSent(1.0, "not connected")


# -- requests --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def served(slack: SlackServer, sink: RecordingSink, clock: Clock) -> AsyncIterator[str]:
    """A channel in mode http; its url."""
    listen = {"port": 0}
    settings = settings_for(slack, mode="http", listen=listen, signing_secret=slack.signing_secret)
    async with connected(settings, sink, clock) as channel:
        yield channel.health().detail.rpartition(" ")[2]


@pytest.fixture
def real_time(clock: Clock) -> None:
    """bolt compares the time of a signature with that of the machine."""
    import time

    clock.seconds = time.time()


async def test_requests_that_do_not_arrive_are_found_out_and_read_from_the_history(
    slack: SlackServer, sink: RecordingSink, clock: Clock
) -> None:
    settings = settings_for(slack, mode="http", listen={"port": 0}, signing_secret=slack.signing_secret)
    time = LoopTime()
    async with connected(settings, sink, clock) as channel:
        assert len(sink.missing) == 1
        await time.advance(settings.silence)
        await sink.until(lambda: len(sink.missing) == 2)
        assert channel.health().state is HealthState.READY, "nobody has written"
        clock.seconds += 10
        room = slack.im(ALICE.id)
        slack.say(room, ALICE, "is anybody there?")
        await channel.history(place(room), "", "", 10)
        assert channel.health().state is HealthState.READY, "it may be on its way"
        clock.seconds += settings.on_its_way + 1
        await time.advance(settings.silence)
        await sink.until(lambda: len(sink.missing) == 3)
        assert place(room) in [one.place for one in sink.missing[-1]]
        page = await channel.history(place(room), "", "", 10)
        assert [one.text for one in page.batch if isinstance(one, InboundMessage)] == ["is anybody there?"]
        assert channel.health().state is HealthState.DOWN
        assert "requests do not arrive" in channel.health().detail
        assert isinstance(channel._receiver, SlackReceiver)
        assert await channel._receiver.accept({"type": "event_callback"}), "a request comes"
        assert channel.health().state is HealthState.READY
        known = len(sink.missing)
        await channel.history(place(room), "", "", 10)
        assert (channel.health().state, len(sink.missing)) == (HealthState.READY, known)


@pytest.mark.usefixtures("real_time")
async def test_requests_are_taken_on_one_path_signed_and_stored_before_they_are_answered(
    slack: SlackServer, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(slack, sink, clock) as url:
        requests = await slack.use_url(url)
        room = slack.channel("general")
        slack.mention(room, ALICE, "hello")
        slack.slash(room, text="status")
        await slack.wait_acknowledged()
        assert sorted(sink.texts) == ["/status", "hello", "hello"]
        sink.refusing = True
        slack.dm(ALICE, "later")
        await slack.wait_for(lambda: slack.outbox[-1].attempt == 2, "the repetition that comes at once")
        sink.refusing = False
        slack.advance(61)
        await slack.wait_acknowledged()
        assert sink.texts[-1] == "later"
        known, body = len(sink.items), json.dumps(readable()["direct message"][1]).encode()
        forged = [
            await requests.post(body, "application/json", secret="another"),
            await requests.post(body, "application/json", age=600),
            await requests.post(body, "application/json", {"X-Slack-Request-Timestamp": "soon"}),
            await requests.post(body, "application/json", {"X-Slack-Signature": "v0=ä"}),
            await requests.post(b'{"type": ', "application/json"),
            await requests.post(b"[1]", "application/json"),
        ]
        assert [status for status, _, _ in forged] == [401, 401, 401, 401, 400, 400]
        requests.url = url.replace("/slack/events", "/readyz")
        assert (await requests.post(body, "application/json"))[0] == 404
        assert len(sink.items) == known
    assert sink.story[0] == "missed"
    assert "Traceback" not in caplog.text


async def test_a_port_that_is_taken_is_said_and_tried_again(
    slack: SlackServer, sink: RecordingSink, clock: Clock
) -> None:
    listen = {"port": slack.port}
    channel = SlackChannel(settings_for(slack, mode="http", listen=listen, signing_secret="s"), clock.times)
    await channel.start(sink)
    await clock.until(3)
    assert channel.health().detail.startswith(f"Requests of Slack cannot be taken at 127.0.0.1:{slack.port}: ")
    assert clock.pauses[:3] == [1.0, 2.0, 4.0]
    await channel.close()


# -- sending ---------------------------------------------------------------------------------------------------------


async def test_a_message_goes_to_its_thread_pings_nobody_and_loads_no_preview(
    slack: SlackServer, channel: SlackChannel
) -> None:
    room = slack.channel("general")
    said = slack.say(room, ALICE, "question")
    text = "<!channel> <@U0ALICE001> @here & https://example.org"
    result = await channel.send(outgoing(channel, text, place(room, said["ts"]), nonce=2**63 - 1))
    sent = slack.sent[-1]
    assert result == Sent(sent.ts)
    assert (sent.thread_ts, sent.pings, sent.fetched) == (said["ts"], frozenset(), ())
    assert sent.metadata is not None
    assert sent.metadata["event_payload"] == {"n": str(2**63 - 1)}
    assert "reply_broadcast" not in sent.args


async def test_buttons_are_shown_below_the_words_and_go_with_an_edit(slack: SlackServer, channel: SlackChannel) -> None:
    room = slack.channel("general")
    buttons = (Button("Allow once", "/approve 7f3 once"), Button("Deny", "n" * 2000), Button("l" * 90, "long"))
    result = await channel.send(outgoing(channel, "May I?", place(room), buttons=buttons))
    assert isinstance(result, Sent)
    (message,) = slack.messages(room)
    assert [(one["text"]["text"], one["value"]) for one in slack.buttons_of(message)] == [
        ("Allow once", "/approve 7f3 once"),
        ("Deny", "n" * 2000),
        ("l" * 74 + "…", "long"),
    ]
    assert slack.sent[-1].shown.startswith("May I?")
    mine = {"action": Action.EDIT, "target": result.platform_id}
    for _ in range(2):
        assert await channel.send(outgoing(channel, "allowed", place(room), **mine)) == result
    (message,) = slack.messages(room)
    assert (message["text"], slack.buttons_of(message)) == ("allowed", [])


async def test_an_edit_without_blocks_takes_the_buttons_away(slack: SlackServer, channel: SlackChannel) -> None:
    """Slack may refuse the blocks of a text; what is sent instead has none."""
    room = slack.channel("general")
    result = await channel.send(outgoing(channel, "May I?", place(room), buttons=(Button("Yes", "/yes"),)))
    assert isinstance(result, Sent)
    edit = outgoing(channel, "allowed", place(room), action=Action.EDIT, target=result.platform_id)
    assert await channel.send(replace(edit, body=as_body({"text": "allowed"}))) == result
    (message,) = slack.messages(room)
    assert (message["text"], slack.buttons_of(message)) == ("allowed", [])


async def test_reactions_and_deletions_succeed_again(slack: SlackServer, channel: SlackChannel, clock: Clock) -> None:
    room = slack.channel("general")
    question = slack.say(room, ALICE, "question")
    slack.react(room, question, "tada")
    sent = await channel.send(outgoing(channel, "first", place(room)))
    assert isinstance(sent, Sent)
    asked = {"action": Action.REACT, "target": question["ts"]}
    names = {
        "👀": "eyes",
        "👍🏽": "+1::skin-tone-4",
        ":party-parrot:": "party-parrot",
        "❤️": "heart",
        "🤔": "thinking_face",
    }
    for emoji in names:
        for _ in range(2):
            assert await channel.send(delivery(emoji, place(room), **asked)) == Sent(question["ts"])
    assert [one["name"] for one in slack.messages(room)[0]["reactions"]] == ["tada", *names.values()]
    for to in (place(room), place(room), place(room, question["ts"])):
        assert await channel.send(delivery("", to, **asked)) == Sent(question["ts"])
        assert [one["name"] for one in slack.messages(room)[0]["reactions"]] == ["tada"]
    for to in (place(room, question["ts"]), place(room)):
        assert await channel.send(delivery("👀", to, **asked)) == Sent(question["ts"])
        assert await channel.send(delivery("", to, **asked)) == Sent(question["ts"])
        assert [one["name"] for one in slack.messages(room)[0]["reactions"]] == ["tada"]
    for _ in range(2):
        gone = delivery("", place(room), action=Action.DELETE, target=sent.platform_id)
        assert await channel.send(gone) == Sent(sent.platform_id)
    assert len(slack.messages(room)) == 1


async def test_what_is_about_a_message_that_is_gone_or_cannot_be_read_is_given_up(
    slack: SlackServer, channel: SlackChannel
) -> None:
    slack.tolerate(Rule.BAD_VALUE)
    far = slack.channel("far", with_app=False)
    refused = await channel.send(outgoing(channel, "words", place(far)))
    assert refused == Refused("the bot is not in that channel; somebody there can /invite it")
    room = place(slack.channel("general"))
    sent = await channel.send(outgoing(channel, "a preview", room))
    assert isinstance(sent, Sent)
    for code in ("message_not_found", "cant_update_message", "edit_window_closed"):
        slack.fail_next("chat.update", code)
        final = outgoing(channel, "final", room, action=Action.EDIT, target=sent.platform_id)
        assert await channel.send(final) == Refused(code.replace("_", " "))
    for one in (
        delivery("👀", room, action=Action.REACT, target="1700000000.000001"),
        outgoing(channel, "words", room, action=Action.EDIT, target="1700000000.000001"),
        outgoing(channel, "words", room, action=Action.EDIT, target="no id"),
        delivery("no emoji at all", room, action=Action.REACT, target="1700000000.000001"),
        delivery("☃🗿x", room, action=Action.REACT, target="1700000000.000001"),
        delivery("no json", room),
        delivery("[]", room),
        outgoing(channel, "words", replace(room, chat="C0NOWHERE0")),
        delivery("", room, action=Action.FILE),
    ):
        assert isinstance(await channel.send(one), Refused), one


async def test_a_form_that_is_refused_is_to_be_sent_plain(slack: SlackServer, channel: SlackChannel) -> None:
    slack.tolerate(Rule.FORMATTING)
    room = place(slack.channel("general"))
    body = json.dumps({"text": "words", "blocks": [{"type": "unheard-of"}]})
    result = await channel.send(delivery(body, room))
    assert isinstance(result, NotSent)
    assert result.body is not None
    assert isinstance(await channel.send(delivery(result.body, room)), Sent)
    assert slack.texts() == ["words"]


@pytest.mark.parametrize("status", [500, 502, 503])
@pytest.mark.parametrize("after_apply", [False, True])
async def test_a_server_that_fails_or_a_connection_that_breaks_leaves_the_outcome_unknown_and_it_is_looked_up(
    slack: SlackServer, channel: SlackChannel, clock: Clock, status: int, after_apply: bool
) -> None:
    room = slack.channel("general")
    root = slack.say(room, ALICE, "question")["ts"]
    for number, to in enumerate((place(room), place(room, root), place(slack.im(ALICE.id)))):
        fault = {"drop": True} if status == 503 else {"status": status}
        slack.fail_next("chat.postMessage", after_apply=after_apply, **fault)
        asked = outgoing(channel, f"answer {number}", to, clock, nonce=number + 7)
        assert isinstance(await channel.send(asked), Unknown)
        clock.pauses.clear()
        settled = await channel.settle(asked)
        if after_apply:
            assert settled == Sent(slack.sent[-1].ts)
            assert clock.pauses == []
        else:
            assert isinstance(settled, NotSent)
            assert clock.pauses == [5.0], "looked for twice"


async def test_what_cannot_be_looked_up_yet_is_looked_up_later(
    slack: SlackServer, channel: SlackChannel, clock: Clock
) -> None:
    room = slack.channel("general")
    slack.fail_next("chat.postMessage", "fatal_error", after_apply=True)
    asked = outgoing(channel, "answer", place(room), clock)
    assert isinstance(await channel.send(asked), Unknown)
    slack.fail_next("conversations.history", status=502, times=2)
    assert await channel.settle(asked) == Sent(slack.sent[-1].ts)
    assert clock.pauses == [1.0, 2.0]
    slack.scopes -= {"channels:history"}
    assert isinstance(await channel.settle(asked), Unknown)


async def test_a_wire_that_is_cut_leaves_the_outcome_unknown_and_no_server_at_all_does_not(
    slack: SlackServer, sink: RecordingSink, clock: Clock
) -> None:
    room = slack.channel("general")
    async with FaultProxy(slack.port) as proxy:
        settings = settings_for(slack, base_url=f"http://127.0.0.1:{proxy.port}/api/")
        async with connected(settings, sink, clock) as channel:
            for number, (cut, after) in enumerate(
                [(proxy.cut_request, 0), (proxy.cut_request, 30), (proxy.cut_answer, 0), (proxy.cut_answer, 30)]
            ):
                cut(b"chat.postMessage", after=after, nth=1)
                result = await channel.send(outgoing(channel, f"answer {number}", place(room)))
                assert isinstance(result, Unknown), (number, result)
            assert slack.texts() == ["answer 2", "answer 3"]
            await channel.stop_intake()
            await slack.stop()
    async with connected_later(slack, clock) as channel:
        assert isinstance(await channel.send(outgoing(channel, "answer", place(room))), NotSent)


@asynccontextmanager
async def connected_later(slack: SlackServer, clock: Clock) -> AsyncIterator[SlackChannel]:
    """A channel that reaches nothing yet."""
    channel = SlackChannel(settings_for(slack), clock.times)
    await channel.start(RecordingSink(("slack", BOT)))
    yield channel
    await channel.close()


async def test_an_answer_that_is_too_slow_leaves_the_outcome_unknown(
    slack: SlackServer, sink: RecordingSink, clock: Clock
) -> None:
    room = slack.channel("general")
    time = LoopTime()
    async with connected(settings_for(slack), sink, clock) as channel:
        held = slack.hold_next("chat.postMessage", after_apply=True)
        sending = asyncio.create_task(channel.send(outgoing(channel, "answer", place(room))))
        await held.reached.wait()
        await time.advance(SlackAccount.request_timeout + 1)  # the library rounds it up
        assert isinstance(await sending, Unknown)
        held.release()
    assert slack.texts() == ["answer"]


async def test_429_waits_as_told_and_holds_back_that_conversation_alone(
    slack: SlackServer, channel: SlackChannel, clock: Clock
) -> None:
    room, other = slack.channel("general"), slack.channel("random")
    slack.fail_next("chat.postMessage", "ratelimited", retry_after=3)
    result = await channel.send(outgoing(channel, "answer", place(room)))
    assert isinstance(result, NotSent)
    assert result.retry_after == 3
    assert channel.pass_limit(place(room)) == 3
    assert channel.pass_limit(place(other)) == 0
    assert isinstance(await channel.send(outgoing(channel, "elsewhere", place(other))), Sent)
    clock.seconds += 3
    assert channel.pass_limit(place(room)) == 0


@pytest.mark.parametrize("why", ["five uses", "thirty minutes", "forgotten", "not Slack's"])
async def test_what_its_address_takes_no_more_of_is_for_that_persons_direct_messages(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel, clock: Clock, why: str
) -> None:
    """Slack's server has a rule for each: neither a sixth use nor a late one is tried."""
    room = slack.channel("general", ALICE, BOB)
    slack.slash(room, BOB, text="status")
    await slack.wait_acknowledged()
    respond = sink.messages[-1].respond
    private = 5 if why == "five uses" else 0
    if why == "thirty minutes":
        clock.seconds += 30 * 60 - 0.001
        private = 1
    if why == "forgotten":
        slack.response_urls.clear()
    if why == "not Slack's":
        respond = f"https://evil.example/hooks/1 {respond.partition(' ')[2]}"
    answers = [outgoing(channel, f"answer {number}", place(room), respond=respond) for number in range(private + 2)]
    for answer in answers[:private]:
        assert await channel.send(answer) == Sent()
    clock.seconds += 0.001
    for answer in answers[private:]:
        assert await channel.send(answer) == Elsewhere(place(slack.im(BOB.id)))
    assert [(one.shown, one.only_to) for one in slack.sent] == [(f"answer {n}", BOB.id) for n in range(private)]
    slack.fail_next("conversations.open", drop=True)
    assert isinstance(await channel.send(answers[-1]), NotSent), "nobody has seen anything of it"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [({"status": 500}, Unknown), ({"drop": True}, Unknown), ({"status": 429, "retry_after": 7}, NotSent)],
)
async def test_what_became_of_an_answer_that_one_person_sees(
    slack: SlackServer,
    sink: RecordingSink,
    channel: SlackChannel,
    fault: dict[str, Any],
    expected: type,
) -> None:
    room = slack.channel("general")
    slack.slash(room, text="status")
    await slack.wait_acknowledged()
    slack.fail_next("response_url", **fault)
    answer = outgoing(channel, "answer", place(room), respond=sink.messages[-1].respond)
    assert isinstance(await channel.send(answer), expected)
    assert isinstance(await channel.settle(answer), Unknown)


async def test_what_was_sent_five_times_is_not_sent_again(slack: SlackServer, channel: SlackChannel) -> None:
    sent = outgoing(channel, "answer", place(slack.channel("general")))
    assert isinstance(await channel.settle(replace(sent, attempts=4)), NotSent)
    assert isinstance(await channel.settle(replace(sent, attempts=5)), Unknown)


async def test_a_file_is_sent_with_its_words_and_never_twice(
    slack: SlackServer, channel: SlackChannel, tmp_path: Path
) -> None:
    room = slack.channel("general")
    root = slack.say(room, ALICE, "question")["ts"]
    path = tmp_path / "notes.txt"
    path.write_bytes(b"content")
    file = OutgoingFile(path=str(path), name="notes.txt")
    asked = delivery(shown(channel, "my notes"), place(room, root), action=Action.FILE, file=file)
    for method in ("files.getUploadURLExternal", "upload"):
        slack.fail_next(method, status=500)
        assert isinstance(await channel.send(asked), NotSent), "nobody has seen anything of it"
    assert await channel.send(asked) == Sent()
    (reply,) = slack.replies(room.id, root)
    assert (reply["text"], [one["name"] for one in reply["files"]]) == ("my notes", ["notes.txt"])
    slack.fail_next("files.completeUploadExternal", drop=True)
    assert isinstance(await channel.send(replace(asked, body="")), Unknown)
    assert isinstance(await channel.settle(asked), Unknown)
    path.unlink()
    assert isinstance(await channel.send(asked), Refused)


# -- history ---------------------------------------------------------------------------------------------------------


async def test_history_is_read_oldest_first_in_parts_with_the_keys_of_live_events(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel, clock: Clock
) -> None:
    room = slack.channel("general", ALICE, BOB)
    said = []
    for number in range(7):
        clock.seconds += 1
        said.append(slack.say(room, ALICE, f"message {number}"))
    for number in range(5):
        clock.seconds += 1
        slack.say(room, BOB, f"reply {number}", thread_ts=said[1]["ts"], broadcast=number == 4)
    await channel.send(outgoing(channel, "own", place(room)))
    await slack.wait_acknowledged()
    live = {one.event_key: one for one in sink.messages}
    for at in (place(room), place(room, said[1]["ts"])):
        read: list[Incoming] = []
        after, more = "", True
        while more:
            page = await channel.history(at, after, "", 3)
            read += page.batch
            assert len(page.batch) <= 3
            after, more = page.newest or after, page.more
        assert all(isinstance(one, InboundMessage) for one in read)
        texts = [one.text for one in read if isinstance(one, InboundMessage)]
        expected = "reply" if at.thread else "message"
        assert [text for text in texts if text.startswith(expected)] == [
            text for text in sink.texts if text.startswith(expected)
        ]
        for one in read:
            assert isinstance(one, InboundMessage)
            then = live[one.event_key]
            assert replace(one, origin=replace(one.origin, sender_name="", chat_name="")) == replace(
                then, origin=replace(then.origin, sender_name="", chat_name="")
            )
    part = await channel.history(place(room), said[1]["ts"], said[4]["ts"], 50)
    assert [one.text for one in part.batch if isinstance(one, InboundMessage)] == ["message 2", "message 3"]
    assert not part.more
    since = channel.position(int(float(said[5]["ts"]) * 1000) - 1)
    part = await channel.history(place(room), since, "", 50)
    assert [one.text for one in part.batch if isinstance(one, InboundMessage)][:2] == ["message 5", "message 6"]


async def test_history_is_read_over_several_pages(slack: SlackServer, channel: SlackChannel, clock: Clock) -> None:
    room = slack.channel("general")
    root = slack.say(room, ALICE, "root")["ts"]
    for number in range(450):
        slack.say(room, ALICE, f"message {number}")
        slack.say(room, ALICE, f"reply {number}", thread_ts=root)
    for thread in ("", root):
        page = await channel.history(place(room, thread), root, "", 100)
        texts = [one.text for one in page.batch if isinstance(one, InboundMessage)]
        assert texts == [f"{'reply' if thread else 'message'} {number}" for number in range(100)]
        assert page.more
    await slack.wait_acknowledged()


@pytest.mark.parametrize(
    ("fault", "again"),
    [
        ({"error": "ratelimited", "retry_after": 9}, 9),
        ({"status": 502}, 30),
        ({"error": "not_in_channel"}, None),
        ({"error": "missing_scope"}, None),
    ],
)
async def test_history_that_cannot_be_read_says_whether_it_ever_can(
    slack: SlackServer, channel: SlackChannel, fault: dict[str, Any], again: float | None
) -> None:
    slack.fail_next("conversations.history", **fault)
    with pytest.raises(NotReadable) as error:
        await channel.history(place(slack.channel("general")), "", "", 10)
    assert error.value.retry_after == again


# -- what the model asks for -----------------------------------------------------------------------------------------


def calls(slack: SlackServer, method: str) -> int:
    return [call.method for call in slack.calls].count(method)


async def test_the_model_reads_what_was_said_last_its_own_words_too(
    slack: SlackServer, channel: SlackChannel, clock: Clock
) -> None:
    room = slack.channel("general", ALICE, BOB)
    root = slack.say(room, BOB, "the *build*\n\nfails <https://example.org|here>", files={"log.txt": b"x"})
    replies = [slack.say(room, ALICE, f"reply {number}", thread_ts=root["ts"])["ts"] for number in range(1100)]
    slack.join(room, BOB)
    slack.post_as(room, "builds", "again")
    await channel.send(outgoing(channel, "I look", place(room)))
    clock.seconds += 60
    last = slack.say(room, ALICE, "x" * 1000)["ts"]
    await slack.wait_acknowledged()
    text = ""
    async with asyncio.timeout(PATIENCE):
        while "alice (" not in text or "Bob Baker (" not in text:  # names are asked for in the background
            text = await channel.perform("read", place(room), Arguments())
    lines = text.splitlines()
    assert [line.partition(": ")[2] for line in lines] == [
        "the *build* fails here (https://example.org) [file log.txt] [1100 replies]",
        "again",
        "I look",
        "x" * 399 + "…",
    ]
    assert lines[0].startswith(f"{root['ts']} · 2027-01-15 08:00Z · ")
    assert [line.partition(": ")[0].rpartition(" · ")[2] for line in lines] == [
        "Bob Baker (U0BOB00001)",
        "builds (U0BUILDS)",
        "you",
        "alice (U0ALICE001)",
    ]
    part = await channel.perform("read", place(room), Arguments(limit=2, before=last))
    assert part.splitlines() == lines[1:3]
    thread = await channel.perform("read", place(room), Arguments(limit=3, thread=root["ts"]))
    assert [line.split()[0] for line in thread.splitlines()] == replies[-3:]
    earlier = await channel.perform("read", place(room, root["ts"]), Arguments(limit=3, before=replies[1]))
    assert [line.split()[0] for line in earlier.splitlines()] == [root["ts"], replies[0]]
    assert await channel.perform("read", place(room), Arguments(before=root["ts"])) == "nothing was said there"
    for arguments, words in (
        (Arguments(before="yesterday"), "'yesterday' is no id of a message"),
        (Arguments(thread="1.1"), "thread not found"),
    ):
        with pytest.raises(ActionFailed, match=words):
            await channel.perform("read", place(room), arguments)


async def test_the_model_pins_and_asks_who_and_where(slack: SlackServer, channel: SlackChannel) -> None:
    room = slack.channel("general", ALICE, BOB, private=True)
    said = slack.say(room, ALICE, "important")["ts"]
    for name, pinned in (("pin", True), ("pin", True), ("unpin", False), ("unpin", False)):
        await channel.perform(name, place(room), Arguments(message_id=said))
        assert ("pinned_to" in slack.messages(room)[0]) is pinned
    about = await channel.perform("channel_info", place(room), Arguments())
    assert about.splitlines() == [f"id: {room.id}", "name: general", "is_private: True", "num_members: 3"]
    person = await channel.perform("user_info", place(room), Arguments(person=ALICE.id))
    assert person.splitlines()[:4] == [
        f"id: {ALICE.id}",
        "name: alice",
        "real_name: Alice Archer",
        "display_name: alice",
    ]
    assert "tz: Europe/Berlin" in person
    slack.scopes.remove("pins:write")
    for name, arguments, words in (
        ("user_info", Arguments(person="U0NOBODY1"), "user not found"),
        ("pin", Arguments(message_id=said), "the app lacks the scope pins:write: add it under OAuth & Permissions"),
        ("pin", Arguments(message_id="that one"), "'that one' is no id of a message"),
        ("dance", Arguments(), "dance is not possible here"),
    ):
        with pytest.raises(ActionFailed, match=words):
            await channel.perform(name, place(room), arguments)


async def test_names_are_found_and_never_the_wrong_person(
    slack: SlackServer, channel: SlackChannel, clock: Clock
) -> None:
    general, team = slack.channel("general", ALICE, BOB), slack.group_dm(ALICE, BOB)
    slack.channel("far", with_app=False)
    slack.meet(Person("U0ALEX0001", "alex", "Alex One"))
    slack.meet(Person("U0ALEX0002", "alexander", "Alex Two", "Alex"))
    slack.meet(Person("U0ALEX0003", "former", "Alexa", "Alexa", deleted=True))
    im = slack.im(ALICE.id)
    for wanted, found in (
        ("#general", place(general)),
        ("General", place(general)),
        (general.id, place(general)),
        (f"#{team.name}", place(team)),
        (im.id, place(im)),
        ("@alice", place(im)),
        ("@Alice Archer", place(im)),
        (ALICE.id, place(im)),
        ("#genral", ("#general",)),
        ("#far", ()),
        ("@alex", ("@alex one", "@alexander", "@alex (U0ALEX0001)", "@alex (U0ALEX0002)", "@alex two", "@alice")),
        ("@Alex (U0ALEX0002)", place(slack.im("U0ALEX0002"))),
        (
            "@alexa",
            (
                "@alex one",
                "@alexander",
                "@alex (U0ALEX0001)",
                "@alex (U0ALEX0002)",
                "@alex two",
                "@alice",
                "@alice archer",
            ),
        ),
        ("@nobody at all", ()),
    ):
        got = led_to(await channel.find(wanted))
        assert (got if isinstance(got, Place) else set(got)) == (found if isinstance(found, Place) else set(found)), (
            wanted
        )
    assert (calls(slack, "users.list"), calls(slack, "users.conversations")) == (1, 2), "once at the start"
    clock.seconds += 200
    slack.scopes -= {"im:write", "users:read"}
    for wanted, scope in ((ALICE.id, "im:write"), ("@alice", "users:read")):
        with pytest.raises(ActionFailed, match=f"the app lacks the scope {scope}: add it"):
            await channel.find(wanted)
    slack.fail_next("users.conversations", "ratelimited", retry_after=7)
    with pytest.raises(ActionFailed, match="too many calls, again in 7 s"):
        await channel.find("#general")


async def test_frames_are_few_enough_that_edits_that_people_wait_for_never_wait(
    slack: SlackServer, channel: SlackChannel, clock: Clock
) -> None:
    slack.limits = RateLimits(per_channel=(1000, 1.0))
    rooms = [place(slack.channel(name)) for name in ("one", "two")]
    previews = []
    for room in rooms:
        sent = await channel.send(outgoing(channel, f"preview {room.chat}", room))
        assert isinstance(sent, Sent)
        previews.append(sent.platform_id)
    shows = [await channel.frame(rooms[n % 2], previews[n % 2], shown(channel, f"frame {n}")) for n in range(60)]
    assert shows == [1.5] * 40 + [60.0] * 20
    assert [one.text for one in slack.sent[2:]] == [f"frame {n}" for n in range(40)]
    clock.seconds += 30
    for n in range(10):
        final = outgoing(channel, f"edit {n}", rooms[0], action=Action.EDIT, target=previews[0])
        assert isinstance(await channel.send(final), Sent)
    clock.seconds += 29
    assert await channel.frame(rooms[1], previews[1], shown(channel, "too early")) == 1.0
    clock.seconds += 1
    shows = [await channel.frame(rooms[1], previews[1], shown(channel, f"later {n}")) for n in range(40)]
    assert shows == [1.5] * 30 + [30.0] * 10
    assert slack.sent[-1].text == "later 29"


async def test_a_frame_stands_behind_no_send_holds_none_up_and_never_raises(
    slack: SlackServer, sink: RecordingSink, clock: Clock
) -> None:
    room, other = place(slack.channel("general")), place(slack.channel("random"))
    time = LoopTime()
    async with connected(settings_for(slack), sink, clock) as channel:
        sent = await channel.send(outgoing(channel, "preview", room))
        assert isinstance(sent, Sent)
        target, body = sent.platform_id, shown(channel, "frame")
        held = slack.hold_next("chat.postMessage")
        async with asyncio.TaskGroup() as group:
            group.create_task(channel.send(outgoing(channel, "more", room)))
            await held.reached.wait()
            assert await channel.frame(room, target, body) > 0
            assert calls(slack, "chat.update") == 0, "a call is under way there"
            held.release()
        held = slack.hold_next("chat.update")
        async with asyncio.TaskGroup() as group:
            frame = group.create_task(channel.frame(room, target, body))
            await held.reached.wait()
            await time.advance(SlackAccount.typing_timeout)
            final = outgoing(channel, "final", room, action=Action.EDIT, target=target)
            assert isinstance(await channel.send(final), Sent), "the frame was given up"
        assert frame.result() == 60.0
        for fault, again in (
            ({"error": "message_not_found"}, 60.0),
            ({"drop": True}, 60.0),
            ({"error": "ratelimited", "retry_after": 9}, 9.0),
        ):
            slack.fail_next("chat.update", **fault)  # type: ignore[arg-type]
            assert await channel.frame(room, target, body) == again
        assert channel.pass_limit(room) == channel.pass_limit(other) == 0, "what people wait for is not held"
        before = calls(slack, "chat.update")
        assert await channel.frame(other, target, body) == 9.0
        assert calls(slack, "chat.update") == before, "the whole workspace waits"
        held.release()


# -- working and files -----------------------------------------------------------------------------------------------


async def test_the_sign_of_work_is_shown_in_threads_and_not_again_where_it_was_refused(
    slack: SlackServer, channel: SlackChannel
) -> None:
    room = slack.channel("general")
    root = slack.say(room, ALICE, "question")["ts"]

    def asked() -> int:
        return [call.method for call in slack.calls].count("assistant.threads.setStatus")

    await channel.working(place(room))
    assert asked() == 0
    await channel.working(place(room, root))
    assert slack.statuses == {(room.id, root): "is thinking…"}
    held = slack.hold_next("assistant.threads.setStatus")
    async with asyncio.TaskGroup() as group:
        group.create_task(channel.working(place(room, root)))
        await asyncio.wait_for(held.reached.wait(), 5)
        sending = group.create_task(channel.send(outgoing(channel, "answer", place(room, root))))
        await channel.send(outgoing(channel, "elsewhere", place(room)))
        assert slack.texts() == ["elsewhere"], "a message waits for the sign before it"
        held.release()
    assert isinstance(sending.result(), Sent)
    assert slack.statuses == {}
    for fault in ({"status": 500}, {"error": "ratelimited"}, {"error": "missing_scope"}):
        slack.fail_next("assistant.threads.setStatus", **fault)  # type: ignore[arg-type]
        slack.advance(2)
        await channel.working(place(room, root))
    before = asked()
    await channel.working(place(room, root))
    assert asked() == before


async def read_all(channel: SlackChannel, attachment: Attachment) -> bytes:
    return b"".join([piece async for piece in channel.download(attachment)])


async def test_files_are_downloaded_with_the_token_and_an_expired_address_is_renewed_once(
    slack: SlackServer, sink: RecordingSink, channel: SlackChannel
) -> None:
    content = bytes(range(256)) * 1000
    slack.dm(ALICE, "", files={"data.bin": content})
    await slack.wait_acknowledged()
    (attachment,) = sink.messages[-1].attachments
    assert (attachment.name, attachment.size) == ("data.bin", len(content))
    assert await read_all(channel, attachment) == content
    file_id = attachment.ref.partition(" ")[0]
    assert await read_all(channel, replace(attachment, ref=file_id)) == content
    gone = f"{file_id} {slack.origin}/files-pri/T0HARKTEAM-F0NONE/x"
    assert await read_all(channel, replace(attachment, ref=gone)) == content
    slack.scopes -= {"files:read"}
    with pytest.raises(NotDownloaded, match="files:read"):
        await read_all(channel, attachment)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/x",
        "https://files.slack.com.evil.example/x",
        "https://evilslack.com/x",
        "http://files.slack.com/x",
        "https://user@evil.example:443/files.slack.com",
        "file:///etc/passwd",
        "no url",
    ],
)
async def test_the_token_goes_to_nobody_but_slack(channel: SlackChannel, url: str) -> None:
    with pytest.raises(NotDownloaded, match="own hosts"):
        await read_all(channel, Attachment(kind="file", ref=f"F1 {url}"))
