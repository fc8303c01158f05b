"""The Telegram channel against a server that speaks the Bot API, with faults in its answers and on the wire."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from channels.base import CommandInfo, HealthState, NotDownloaded
from channels.message import Attachment, ChatKind, ChatMoved, InboundKind, InboundMessage, Place, UnreadEvent
from channels.outgoing import (
    Action,
    Button,
    Delivery,
    Moved,
    NotSent,
    OutgoingFile,
    Refused,
    SendResult,
    Sent,
    Unknown,
)
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import TelegramAccount
from tests.channels.sections import account
from tests.deliveries import delivery
from tests.standins.odd_updates import broken_updates, readable_updates
from tests.standins.proxy import FaultProxy
from tests.standins.telegram_ledger import Call, Rule
from tests.standins.telegram_server import TelegramServer
from tests.standins.telegram_updates import ALICE, BOT_ID, BOT_NAME, Room
from tests.watch import PATIENCE, LoopTime
from tests.wire.sink import Clock, RecordingSink

GROUP = Room(-4_000_111, "group", "Kitchen")
FORUM = Room(-1_001_222_333_444, "supergroup", "Workshop", topics=frozenset({7}))
SCOPE = f"telegram:{BOT_ID}"
READ_ANYWAY = {
    "text has half a surrogate pair",
    "entity beyond the text",
    "entities are a string",
    "entity without a type",
    "entity of an unknown type",
}
"""Broken updates whose text can be read all the same."""
UNKNOWN_KIND = "unknown kind"
"""The broken update that a later version of the Bot API might send to whoever asks for it."""


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


@pytest.fixture
def sink() -> RecordingSink:
    return RecordingSink()


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


def settings_for(telegram: TelegramServer, **more: Any) -> TelegramAccount:
    return account(TelegramAccount, **{"token": telegram.token, "base_url": telegram.base_url} | more)


@pytest.fixture
async def channel(telegram: TelegramServer, sink: RecordingSink, clock: Clock) -> AsyncIterator[TelegramChannel]:
    """A channel that receives."""
    channel = TelegramChannel(settings_for(telegram), clock.times)
    await channel.start(sink)
    await sink.until(lambda: bool(sink.ready))
    yield channel
    await channel.close()


def place(room: Room | None = None, thread: str = "") -> Place:
    kind = ChatKind.DIRECT if room is None else ChatKind.GROUP
    chat = str(room.id if room else ALICE.id)
    return Place(channel="telegram", account=str(BOT_ID), chat=chat, kind=kind, thread=thread)


def outgoing(body: str, to: Place | None = None, **fields: Any) -> Delivery:
    return delivery(body, to or place(), **fields)


async def say(channel: TelegramChannel, text: str, to: Place | None = None) -> list[SendResult]:
    return [await channel.send(outgoing(body, to)) for body in channel.render(text)]


# -- receiving -------------------------------------------------------------------------------------------------------


async def test_a_message_and_its_mark_are_stored_before_telegram_forgets_it(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    update = telegram.write("hello 😀")
    await telegram.wait_confirmed(update)
    (message,) = sink.items
    assert isinstance(message, InboundMessage)
    assert message.text == "hello 😀"
    assert message.origin.place == place()
    assert message.origin.sender == str(ALICE.id)
    assert message.origin.sender_name == "Alice Archer"
    assert message.event_key == f"m:{ALICE.id}:{update['message']['message_id']}"
    assert sink.marks == {SCOPE: str(update["update_id"] + 1)}
    assert channel.account == str(BOT_ID)
    assert channel.health().state is HealthState.READY
    assert channel.health().detail.startswith(f"receiving as @{BOT_NAME}")


async def test_it_is_ready_before_anybody_writes(sink: RecordingSink, channel: TelegramChannel) -> None:
    assert channel.health().state is HealthState.READY
    assert [channel for channel, _ in sink.ready] == ["telegram"]
    assert sink.batches == []


async def test_a_backlog_is_one_batch_in_order(telegram: TelegramServer, sink: RecordingSink, clock: Clock) -> None:
    for number in range(120):
        last = telegram.write(f"message {number}")
    channel = TelegramChannel(settings_for(telegram), clock.times)
    await channel.start(sink)
    await telegram.wait_confirmed(last)
    await channel.close()
    assert [len(batch) for batch in sink.batches] == [100, 20]
    assert sink.texts == [f"message {number}" for number in range(120)]


async def test_a_restart_goes_on_from_the_mark(telegram: TelegramServer, sink: RecordingSink, clock: Clock) -> None:
    first = telegram.write("first")
    channel = TelegramChannel(settings_for(telegram), clock.times)
    await channel.start(sink)
    await telegram.wait_confirmed(first)
    await channel.close()
    telegram.write("while away")
    polls = len(telegram.polls)
    again = TelegramChannel(settings_for(telegram), clock.times)
    await again.start(sink)
    await sink.until(lambda: "while away" in sink.texts)
    await again.close()
    assert telegram.polls[polls].offset == first["update_id"] + 1
    assert sink.texts == ["first", "while away"]


async def test_an_update_that_comes_twice_has_the_same_key(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    update = telegram.write("once")
    await telegram.wait_confirmed(update)
    telegram.repeat(update)
    await sink.until(lambda: len(sink.items) == 2)
    one, other = sink.items
    assert one == other


async def test_every_readable_update_is_taken_or_passed_over(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    for update in readable_updates().values():
        telegram.push_raw(update)
    await telegram.wait_confirmed(telegram.write("last"))
    assert not [item for item in sink.items if isinstance(item, UnreadEvent)]
    assert sink.texts[-1] == "last"
    assert "[location: 52.52, 13.405]" in sink.texts
    moved = ChatMoved(channel="telegram", account=str(BOT_ID), old_chat=str(GROUP.id), new_chat=str(FORUM.id))
    assert sink.items.count(moved) == 2


@pytest.mark.parametrize("name", sorted(broken_updates().keys() - READ_ANYWAY - {UNKNOWN_KIND}))
async def test_an_update_that_cannot_be_read_is_kept_and_passed_over(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel, name: str
) -> None:
    broken = telegram.push_raw(broken_updates()[name])
    await telegram.wait_confirmed(telegram.write("behind it"))
    kept, behind = sink.items
    assert isinstance(kept, UnreadEvent)
    assert json.loads(kept.raw) == broken
    assert kept.event_key == f"u:{broken['update_id']}"
    assert kept.error
    assert isinstance(behind, InboundMessage)
    assert behind.text == "behind it"


@pytest.mark.parametrize("name", sorted(READ_ANYWAY))
async def test_an_update_whose_text_can_be_read_is_taken(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel, name: str
) -> None:
    broken = telegram.push_raw(broken_updates()[name])
    await telegram.wait_confirmed(telegram.write("behind it"))
    assert sink.texts == [broken["message"]["text"].replace("\ud83d", "\ufffd"), "behind it"]


async def test_an_update_of_an_unknown_kind_is_passed_over(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    telegram.push_raw(broken_updates()[UNKNOWN_KIND])
    await telegram.wait_confirmed(telegram.write("behind it"))
    assert [type(item) for item in sink.items] == [InboundMessage]
    assert sink.texts == ["behind it"]


async def test_what_cannot_be_stored_is_not_confirmed_and_comes_again(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel, clock: Clock
) -> None:
    sink.refusing = True
    first = telegram.write("first")
    await sink.until(lambda: sink.refused > 2)
    assert channel.health().state is HealthState.DOWN
    assert channel.health().detail == "Messages cannot be stored, so none are taken from Telegram: disk full"
    assert telegram.confirmed < first["update_id"]
    assert clock.pauses[:2] == [1.0, 1.0]
    second = telegram.write("second")
    sink.refusing = False
    await telegram.wait_confirmed(second)
    assert sink.texts == ["first", "second"]
    assert channel.health().state is HealthState.READY


async def test_an_unexpected_error_of_the_store_is_not_confirmed(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    sink.raising = ["first"]
    poisoned = telegram.write("first")
    await sink.until(lambda: sink.refused > 0)
    assert telegram.confirmed < poisoned["update_id"]
    sink.raising = []
    await telegram.wait_confirmed(telegram.write("second"))
    assert sink.texts == ["first", "second"]


async def test_an_event_whose_handling_fails_three_times_is_kept_aside_and_the_rest_goes_on(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel, caplog: pytest.LogCaptureFixture
) -> None:
    sink.raising = ["poison"]
    held = telegram.hold_next("getUpdates")
    await held.reached.wait()
    before, poison, behind = (telegram.write(text) for text in ("before", "poison", "behind"))
    held.release()
    await telegram.wait_confirmed(behind)
    aside = [item for item in sink.items if isinstance(item, UnreadEvent)]
    assert [one.event_key for one in aside] == [f"m:{ALICE.id}:{poison['message']['message_id']}"]
    assert "poison" in aside[0].raw
    assert "a fault" in aside[0].error
    assert sink.marks[SCOPE] == str(behind["update_id"] + 1)
    assert list(dict.fromkeys(sink.texts)) == ["before", "behind"]
    assert before["update_id"] < poison["update_id"]
    (said,) = (one.getMessage() for one in caplog.records if "kept aside" in one.getMessage())
    assert aside[0].event_key in said
    assert channel.health().state is HealthState.READY


@pytest.mark.parametrize(("status", "pause"), [(500, 1.0), (502, 1.0), (429, 7.0), (403, 1.0)])
async def test_a_poll_that_fails_is_repeated(sink: RecordingSink, clock: Clock, status: int, pause: float) -> None:
    async with TelegramServer(clock=lambda: clock.seconds) as telegram:
        telegram.fail_next("getUpdates", status=status, retry_after=7)
        channel = TelegramChannel(settings_for(telegram), clock.times)
        await channel.start(sink)
        telegram.write("hello")
        await sink.until(lambda: sink.texts == ["hello"])
        await channel.close()
    assert clock.pauses[0] == pause


@pytest.mark.parametrize("after", [0, 40, 200])
async def test_updates_whose_answer_was_lost_come_again(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock, after: int
) -> None:
    async with FaultProxy(telegram.port) as proxy:
        proxy.cut_answer(b"getUpdates", after=after)
        telegram.write("hello")
        settings = settings_for(telegram, base_url=f"http://127.0.0.1:{proxy.port}/bot")
        channel = TelegramChannel(settings, clock.times)
        await channel.start(sink)
        await sink.until(lambda: sink.texts == ["hello"])
        await channel.close()
    assert clock.pauses[0] == 1.0


async def test_a_telegram_that_is_down_at_the_start_is_waited_for(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock
) -> None:
    await telegram.stop()
    channel = TelegramChannel(settings_for(telegram), clock.times)
    await channel.start(sink)
    await clock.until(7)
    assert channel.health().state is HealthState.DOWN
    assert channel.health().detail.startswith("Telegram cannot be reached")
    assert channel.account == ""
    assert clock.pauses[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    await telegram.start()
    telegram.write("hello")
    await sink.until(lambda: sink.texts == ["hello"])
    assert channel.health().state is HealthState.READY
    await channel.close()


async def test_a_second_poller_is_said_once_and_met_slowly(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    conflict = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    telegram.fail_next("getUpdates", status=409, description=conflict, times=5)
    telegram.write("hello")
    channel = TelegramChannel(settings_for(telegram), clock.times)
    with caplog.at_level(logging.WARNING, "channels"):
        await channel.start(sink)
        await sink.until(lambda: sink.texts == ["hello"])
    await channel.close()
    assert clock.pauses[:5] == [5.0, 10.0, 20.0, 30.0, 30.0]
    assert [record.getMessage() for record in caplog.records] == [
        "telegram: Another program receives the messages of this bot; only one may, so it has to be stopped "
        f"({conflict})"
    ]


async def test_after_another_poller_has_gone_it_receives_again(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel, clock: Clock
) -> None:
    telegram.tolerate(Rule.SECOND_POLLER)
    await telegram.wait_for(lambda: telegram.poll is not None, "a long poll")
    async with aiohttp.ClientSession() as other:
        await other.post(f"{telegram.base_url}{telegram.token}/getUpdates")
    telegram.write("hello")
    await sink.until(lambda: sink.texts == ["hello"])
    assert clock.pauses[0] == 5.0
    assert [channel for channel, _ in sink.ready] == ["telegram", "telegram"]


async def test_a_webhook_is_removed_and_what_waits_is_kept(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    telegram.webhook = {"url": "https://example.org/hook"}
    telegram.write("waiting")
    channel = TelegramChannel(settings_for(telegram), clock.times)
    with caplog.at_level(logging.WARNING, "channels"):
        await channel.start(sink)
        await sink.until(lambda: sink.texts == ["waiting"])
    await channel.close()
    assert telegram.webhook == {}
    assert "A webhook was set" in caplog.text


async def test_a_token_that_is_refused_is_said_without_the_token(
    telegram: TelegramServer, sink: RecordingSink, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "123456:wrong-token-of-nobody"
    clock = Clock(1000.0)
    with caplog.at_level(logging.DEBUG):
        settings = settings_for(telegram, token=wrong)
        channel = TelegramChannel(settings, clock.times)
        await channel.start(sink)
        await clock.until(5)
        result = await channel.send(outgoing(channel.render("hello")[0]))
        await channel.close()
    assert clock.pauses[:5] == [5.0, 10.0, 20.0, 30.0, 30.0]
    assert "@BotFather" in caplog.text
    assert isinstance(result, NotSent)
    for text in (caplog.text, repr(result), repr(settings), channel.health().detail):
        assert wrong not in text


async def test_the_token_is_in_no_log(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        channel = TelegramChannel(settings_for(telegram), clock.times)
        await channel.start(sink)
        await telegram.wait_confirmed(telegram.write("hello"))
        await say(channel, "hello")
        await channel.close()
    assert "sendMessage" in caplog.text
    assert telegram.token not in caplog.text


async def test_intake_stops_and_sends_still_work(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    await channel.stop_intake()
    telegram.write("too late")
    assert channel.health().state is HealthState.DOWN
    assert await say(channel, "still here") == [Sent(str(telegram.sent[-1].message_id))]
    assert sink.items == []
    await channel.close()
    assert await say(channel, "closed") == [NotSent(1.0, "not connected")]


async def test_health_is_down_when_no_poll_comes_back(channel: TelegramChannel, clock: Clock) -> None:
    clock.seconds += 49
    assert channel.health().state is HealthState.READY
    clock.seconds += 2
    assert channel.health().state is HealthState.DOWN


async def test_an_edit_is_an_event_of_its_own(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    update = telegram.write("helo")
    await telegram.wait_confirmed(telegram.edit(update, "hello"))
    message, edit = sink.items
    assert isinstance(message, InboundMessage)
    assert isinstance(edit, InboundMessage)
    assert (message.kind, edit.kind) == (InboundKind.MESSAGE, InboundKind.EDIT)
    assert edit.text == "hello"
    assert edit.origin.message_id == message.origin.message_id
    assert edit.event_key.startswith(f"e:{ALICE.id}:{message.origin.message_id}:")


async def test_a_topic_is_a_thread_and_is_answered_there(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    await telegram.wait_confirmed(telegram.write("in a topic", chat=FORUM, thread_id=7))
    (message,) = sink.items
    assert isinstance(message, InboundMessage)
    assert message.origin.place == place(FORUM, "7")
    await channel.working(message.origin.place)
    await say(channel, "answer", message.origin.place)
    assert telegram.sent[-1].thread_id == 7


# -- sending ---------------------------------------------------------------------------------------------------------


async def test_markdown_arrives_as_text_with_entities_and_without_preview(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    telegram.write("hello")
    (result,) = await say(
        channel, "# 😀 Title\n\n**bold** [link](https://example.org) https://example.org\n\n```py\nx\n```"
    )
    sent = telegram.sent[-1]
    assert result == Sent(str(sent.message_id))
    assert sent.text == "😀 Title\n\nbold link https://example.org\n\nx"
    assert [entity["type"] for entity in sent.entities] == ["bold", "bold", "text_link", "pre"]
    assert sent.params["link_preview_options"] == {"is_disabled": True}


async def test_a_long_answer_is_several_messages(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.write("hello")
    text = "\n\n".join(f"Paragraph {number} with *some* **words** 😀 and `code`." for number in range(400))
    results = await say(channel, text)
    assert len(results) == len(telegram.texts())
    assert all(isinstance(result, Sent) for result in results)
    joined = "\n\n".join(telegram.texts())
    assert joined == text.replace("*", "").replace("`", "")


async def test_no_link_that_a_model_writes_is_refused(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.write("hello")
    targets = ("http://localhost:3000", "https://your-domain/x", "http://", "http://a.org:0", "", "#top", "/x", "tel:1")
    more = ("mailto:a@b.org", "notes.md", "tg://user?id=1", "javascript:x()", "http://[::1]:8123/", "https://b.org/x")
    for number, target in enumerate((*targets, *more)):
        (result,) = await say(channel, f"{number}: [the **words**]({target}), please.")
        assert isinstance(result, Sent), target
    texts = telegram.texts()
    assert texts[0] == "0: the words (http://localhost:3000), please."
    assert texts[-1] == f"{len(texts) - 1}: the words, please."
    assert not any("](" in text for text in texts)


async def test_an_empty_block_is_no_message(channel: TelegramChannel) -> None:
    assert list(channel.render("")) == []
    assert list(channel.render("<!-- note -->")) == []
    assert list(channel.render("&nbsp; \u200b")) == []


async def test_429_waits_as_told_and_holds_that_chat_back(
    telegram: TelegramServer, channel: TelegramChannel, clock: Clock
) -> None:
    telegram.write("hello")
    telegram.fail_next("sendMessage", status=429, retry_after=3)
    (result,) = await say(channel, "answer")
    assert isinstance(result, NotSent)
    assert result.retry_after == 3
    assert channel.pass_limit(place()) == 3
    assert channel.pass_limit(place(GROUP)) == 0
    await channel.working(place())  # must not be called: the server refuses it as early
    clock.seconds += 3
    assert channel.pass_limit(place()) == 0


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("after_apply", [False, True])
async def test_a_server_that_fails_leaves_the_outcome_unknown(
    telegram: TelegramServer, channel: TelegramChannel, status: int, after_apply: bool
) -> None:
    telegram.write("hello")
    telegram.fail_next("sendMessage", status=status, after_apply=after_apply)
    (result,) = await say(channel, "answer")
    assert isinstance(result, Unknown)
    assert telegram.texts() == (["answer"] if after_apply else [])


@pytest.mark.parametrize(("attempts", "spaced"), [(1, 1.0), (2, 5.0), (3, 30.0)])
async def test_what_is_unknown_is_sent_again_once_telegram_has_answered(
    telegram: TelegramServer, channel: TelegramChannel, clock: Clock, attempts: int, spaced: float
) -> None:
    telegram.write("hello")
    telegram.fail_next("sendMessage", drop=True)
    telegram.fail_next("getMe", drop=True, times=2)
    telegram.fail_next("getMe", status=502)
    held = telegram.hold_next("getMe")
    await telegram.wait_for(lambda: telegram.poll is not None, "a long poll")
    (result,) = await say(channel, "answer")
    assert isinstance(result, Unknown)
    clock.pauses.clear()
    settling = asyncio.create_task(channel.settle(replace(outgoing("{}"), attempts=attempts)))
    await asyncio.wait_for(held.reached.wait(), 5)
    assert not settling.done()
    assert clock.pauses == [spaced, 1.0, 2.0, 4.0]
    held.release()
    assert isinstance(await settling, NotSent)


async def test_an_answered_poll_is_a_sign_of_life(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.fail_next("getMe", drop=True, times=1)
    held = telegram.hold_next("getMe")
    await telegram.wait_for(lambda: telegram.poll is not None, "a long poll")
    settling = asyncio.create_task(channel.settle(outgoing("{}")))
    await asyncio.wait_for(held.reached.wait(), 5)
    telegram.write("I am here")
    held.release()
    assert isinstance(await settling, NotSent)


async def test_what_was_sent_four_times_is_not_sent_again(channel: TelegramChannel) -> None:
    assert isinstance(await channel.settle(replace(outgoing("{}"), attempts=4)), Unknown)


@pytest.mark.parametrize("after_apply", [False, True])
async def test_a_connection_that_breaks_leaves_the_outcome_unknown(
    telegram: TelegramServer, channel: TelegramChannel, after_apply: bool
) -> None:
    telegram.write("hello")
    telegram.fail_next("sendMessage", drop=True, after_apply=after_apply)
    (result,) = await say(channel, "answer")
    assert isinstance(result, Unknown)
    assert telegram.texts() == (["answer"] if after_apply else [])


@pytest.mark.parametrize("after", [0, 30])
@pytest.mark.parametrize("part", ["request", "answer"])
async def test_a_wire_that_is_cut_leaves_the_outcome_unknown(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock, part: str, after: int
) -> None:
    telegram.write("hello")
    async with FaultProxy(telegram.port) as proxy:
        cut = proxy.cut_request if part == "request" else proxy.cut_answer
        cut(b"sendMessage", after=after)
        settings = settings_for(telegram, base_url=f"http://127.0.0.1:{proxy.port}/bot")
        channel = TelegramChannel(settings, clock.times)
        await channel.start(sink)
        (result,) = await say(channel, "answer")
        await channel.close()
    assert isinstance(result, Unknown)
    assert telegram.texts() == (["answer"] if part == "answer" else [])


async def test_an_answer_that_is_too_slow_leaves_the_outcome_unknown(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock
) -> None:
    telegram.write("hello")
    time = LoopTime()
    channel = TelegramChannel(settings_for(telegram), clock.times)
    await channel.start(sink)
    await sink.until(lambda: sink.texts == ["hello"])
    held = telegram.hold_next("sendMessage", after_apply=True)
    saying = asyncio.create_task(say(channel, "answer"))
    await held.reached.wait()
    await time.advance(TelegramAccount.request_timeout)
    (result,) = await saying
    held.release()
    await channel.close()
    assert isinstance(result, Unknown)
    assert telegram.texts() == ["answer"]


async def test_a_server_that_cannot_be_reached_has_not_sent(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock
) -> None:
    channel = TelegramChannel(settings_for(telegram), clock.times)
    await channel.start(sink)
    await channel.stop_intake()
    await telegram.stop()
    (result,) = await say(channel, "answer")
    await channel.close()
    assert isinstance(result, NotSent)
    assert result.retry_after == 1.0


async def test_a_person_who_blocked_the_bot_is_given_up(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.block()
    (result,) = await say(channel, "answer")
    assert result == Refused("Forbidden: bot was blocked by the user")


async def test_a_form_that_is_refused_is_to_be_sent_plain(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.write("hello")
    telegram.fail_next("sendMessage", status=400, description="Bad Request: entity URL is invalid")
    (result,) = await say(channel, "**see** [😀 it](https://example.org/x), *now*")
    assert isinstance(result, NotSent)
    assert result.body is not None
    assert json.loads(result.body)["text"] == "see 😀 it (https://example.org/x), now"
    assert isinstance(await channel.send(outgoing(result.body)), Sent)
    assert telegram.sent[0].entities == []
    telegram.fail_next("sendMessage", status=400, description="Bad Request: no")
    assert await channel.send(outgoing(result.body)) == Refused("Bad Request: no")


async def test_an_answer_of_something_in_between_is_not_telegram_s(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    telegram.write("hello")
    telegram.fail_next("sendMessage", status=413)
    (result,) = await say(channel, "answer")
    assert isinstance(result, Refused)


async def test_an_unknown_chat_is_given_up(channel: TelegramChannel) -> None:
    (result,) = await say(channel, "answer", replace(place(), chat="999"))
    assert isinstance(result, Refused)
    assert "chat not found" in result.reason


async def test_a_group_that_moved_is_told(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    new = telegram.upgrade(GROUP)
    (result,) = await say(channel, "answer", place(GROUP))
    assert result == Moved(str(new.id))
    await sink.until(lambda: bool(sink.items))
    moved = ChatMoved(channel="telegram", account=str(BOT_ID), old_chat=str(GROUP.id), new_chat=str(new.id))
    assert set(sink.items) == {moved}


async def test_what_cannot_be_read_is_given_up(channel: TelegramChannel) -> None:
    for unreadable in (
        outgoing("no json"),
        outgoing("{}", action=Action.EDIT, target="no number"),
        outgoing("", action=Action.DELETE),
    ):
        assert isinstance(await channel.send(unreadable), Refused)


# -- other actions ---------------------------------------------------------------------------------------------------


def shown(channel: TelegramChannel, text: str) -> str:
    """The body of a short message."""
    (body,) = channel.render(text)
    return body


async def test_an_answer_is_shown_below_its_question_with_its_buttons(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    asked = telegram.write("may I?")["message"]["message_id"]
    buttons = (Button("Allow once", "/approve 7f3 once"), Button("Deny", "/approve 7f3 deny"))
    result = await channel.send(outgoing(shown(channel, "*Sure?*"), reply_to=str(asked), buttons=buttons))
    sent = telegram.sent[-1]
    assert result == Sent(str(sent.message_id))
    assert (sent.text, sent.reply_to) == ("Sure?", asked)
    assert sent.params["reply_markup"]["inline_keyboard"] == [
        [{"text": "Allow once", "callback_data": "/approve 7f3 once"}],
        [{"text": "Deny", "callback_data": "/approve 7f3 deny"}],
    ]


async def test_an_answer_to_a_message_that_was_deleted_is_sent(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    telegram.write("hello")
    assert isinstance(await channel.send(outgoing(shown(channel, "answer"), reply_to="9999")), Sent)
    assert telegram.texts() == ["answer"]


async def test_a_message_is_edited_reacted_to_and_deleted_and_again_without_harm(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    question = str(telegram.write("hello")["message"]["message_id"])
    ((sent,),) = [await say(channel, "first")]
    assert isinstance(sent, Sent)
    mine = {"target": sent.platform_id}
    deliveries = [
        outgoing(shown(channel, "**second**"), action=Action.EDIT, buttons=(Button("Yes", "yes"),), **mine),
        outgoing("👀", action=Action.REACT, target=question),
        outgoing("", action=Action.REACT, target=question),
        outgoing("", action=Action.DELETE, **mine),
    ]
    for one in deliveries[:3]:
        for _ in range(2):  # what became of it was not known
            assert await channel.send(one) == Sent(one.target)
    for _ in range(2):
        assert await channel.send(deliveries[3]) == Sent(sent.platform_id)
    seen = [(one.method, one.message_id) for one in telegram.sent[1:]]
    mine_id, question_id = int(sent.platform_id), int(question)
    reactions = [("setMessageReaction", question_id)] * 4
    assert seen == [("editMessageText", mine_id), *reactions, ("deleteMessage", mine_id)]
    assert telegram.sent[1].text == "second"
    assert telegram.sent[1].params["reply_markup"] == {"inline_keyboard": [[{"text": "Yes", "callback_data": "yes"}]]}
    assert [one.params["reaction"] for one in telegram.sent[2:5:2]] == [[{"type": "emoji", "emoji": "👀"}], []]


@pytest.mark.parametrize("action", [Action.EDIT, Action.REACT])
async def test_what_is_about_a_message_that_is_gone_is_given_up(
    telegram: TelegramServer, channel: TelegramChannel, action: Action
) -> None:
    telegram.write("hello")
    body = shown(channel, "words") if action is Action.EDIT else "👀"
    result = await channel.send(outgoing(body, action=action, target="9999"))
    assert isinstance(result, Refused)
    assert result.reason.endswith("not found")


# -- typing ----------------------------------------------------------------------------------------------------------


async def test_a_message_waits_for_the_typing_call_before_it(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    telegram.write("hello")
    held = telegram.hold_next("sendChatAction")
    async with asyncio.TaskGroup() as group:
        group.create_task(channel.working(place()))
        await asyncio.wait_for(held.reached.wait(), 5)
        sending = group.create_task(say(channel, "answer"))
        # Another chat is not held up, and its answer is the proof that the first send still waits.
        telegram.meet(GROUP)
        await say(channel, "elsewhere", place(GROUP))
        assert telegram.texts() == ["elsewhere"]
        held.release()
    assert isinstance(sending.result()[0], Sent)
    assert telegram.ledger.timeline[-2:] == [(ALICE.id, "typing"), (ALICE.id, "out")]


async def test_no_typing_begins_while_a_message_is_being_sent(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    telegram.write("hello")
    held = telegram.hold_next("sendMessage")
    async with asyncio.TaskGroup() as group:
        group.create_task(say(channel, "answer"))
        await asyncio.wait_for(held.reached.wait(), 5)
        await channel.working(place())
        held.release()
    assert [call.method for call in telegram.ledger.calls].count("sendChatAction") == 0


@pytest.mark.parametrize("status", [400, 403, 429, 500, 502])
async def test_a_typing_sign_that_fails_is_no_matter(
    telegram: TelegramServer, channel: TelegramChannel, status: int
) -> None:
    telegram.write("hello")
    telegram.fail_next("sendChatAction", status=status)
    await channel.working(place())
    await channel.working(place(GROUP))  # a chat that does not exist
    await channel.working(place())
    assert len(calls(telegram, "sendChatAction")) == (2 if status == 429 else 3)
    assert isinstance((await say(channel, "the answer"))[0], Sent)


def calls(telegram: TelegramServer, method: str) -> list[Call]:
    return [call for call in telegram.ledger.calls if call.method == method]


async def test_a_click_is_stored_and_then_acknowledged(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    telegram.meet(GROUP)
    body = channel.render("Tea?")[0]
    sent = await channel.send(outgoing(body, place(GROUP), buttons=(Button("Tea", "/drink tea"),)))
    assert isinstance(sent, Sent)
    held = telegram.hold_next("answerCallbackQuery")
    telegram.click(int(sent.platform_id), "/drink tea", chat=GROUP)
    await held.reached.wait()
    (click,) = sink.items
    assert isinstance(click, InboundMessage)
    assert (click.kind, click.text, click.reply_to) == (InboundKind.BUTTON, "/drink tea", sent.platform_id)
    telegram.write("next")  # an acknowledgement that takes its time holds nothing up
    await sink.until(lambda: sink.texts[1:] == ["next"])
    held.release()
    await telegram.wait_for(lambda: all(telegram.clicks.values()))


async def test_a_click_that_is_too_old_to_be_acknowledged_counts(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    telegram.write("hello")
    (sent,) = await say(channel, "Tea?")
    assert isinstance(sent, Sent)
    telegram.click(int(sent.platform_id), "/drink tea")
    telegram.clicks.clear()  # nobody waits for it any more
    telegram.write("next")
    await sink.until(lambda: sink.texts == ["hello", "/drink tea", "next"])
    assert channel.health().state is HealthState.READY


async def test_the_menu_is_set_when_it_is_another_one(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock
) -> None:
    sink.listed = [CommandInfo("help", "What you can type.", ()), CommandInfo("stop", "Stop the run.", ())]
    for count in (1, 1, 2):
        if count == 2:
            sink.listed = sink.listed[:1]
        channel = TelegramChannel(settings_for(telegram), clock.times)
        sink.ready.clear()
        await channel.start(sink)
        await sink.until(lambda: bool(sink.ready))
        await channel.close()
        assert len(calls(telegram, "setMyCommands")) == count
    ((menu),) = telegram.commands.values()
    assert menu == [{"command": "help", "description": "What you can type."}]


async def test_a_bot_without_its_menu_works(telegram: TelegramServer, sink: RecordingSink, clock: Clock) -> None:
    sink.listed = [CommandInfo("help", "What you can type.", ())]
    telegram.fail_next("setMyCommands", status=400, description="Bad Request: BOT_COMMAND_INVALID")
    channel = TelegramChannel(settings_for(telegram), clock.times)
    await channel.start(sink)
    await sink.until(lambda: bool(sink.ready))
    assert "privacy mode" in channel.health().detail
    await channel.close()


async def test_files_are_read_piece_by_piece_and_asked_for_anew(
    telegram: TelegramServer, sink: RecordingSink, channel: TelegramChannel
) -> None:
    telegram.attach("document", b"x" * 100_000)
    await sink.until(lambda: bool(sink.items))
    (item,) = sink.items
    assert isinstance(item, InboundMessage)
    (file,) = item.attachments
    assert b"".join([piece async for piece in channel.download(file)]) == b"x" * 100_000
    for lost in (Attachment(kind="file", ref="unknown"), Attachment(kind="file", ref=file.ref, size=21 * 1024 * 1024)):
        with pytest.raises(NotDownloaded):
            _ = [piece async for piece in channel.download(lost)]


async def test_files_are_sent_as_what_they_are(
    telegram: TelegramServer, channel: TelegramChannel, tmp_path: Path
) -> None:
    telegram.write("hello")
    (caption,) = channel.render("**look**")
    for name, mime, body, method in (
        ("a.png", "image/png", caption, "sendPhoto"),
        ("a.pdf", "application/pdf", "", "sendDocument"),
    ):
        (tmp_path / name).write_bytes(name.encode())
        file = OutgoingFile(str(tmp_path / name), name, mime)
        sent = await channel.send(outgoing(body, action=Action.FILE, file=file))
        assert isinstance(sent, Sent)
        assert telegram.sent[-1].method == method
        assert telegram.uploads[-1] == (name, name.encode())
    assert telegram.sent[0].text == "look"
    (tmp_path / "a.ogg").write_bytes(b"OggS")
    voice = OutgoingFile(str(tmp_path / "a.ogg"), "answer.ogg", "audio/ogg", says="hello")
    assert isinstance(await channel.send(outgoing("", action=Action.FILE, file=voice)), Sent)
    assert (telegram.sent[-1].method, telegram.uploads[-1]) == ("sendVoice", ("answer.ogg", b"OggS"))
    (tmp_path / "a.pdf").unlink()
    assert isinstance(await channel.send(outgoing("", action=Action.FILE, file=file)), Refused)


async def test_a_silent_message_makes_no_sound(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.write("hello")
    await channel.send(outgoing(channel.render("first")[0]))
    await channel.send(outgoing(channel.render("second")[0], silent=True))
    loud, silent = (call.params for call in calls(telegram, "sendMessage"))
    assert ("disable_notification" in loud, "disable_notification" in silent) == (False, True)


async def test_a_webhook_stores_before_it_acknowledges(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock
) -> None:
    listen = {"port": 0, "path": "/hook"}
    settings = settings_for(telegram, mode="webhook", listen=listen, webhook_url="https://bot.example/hook")
    channel = TelegramChannel(settings, clock.times)
    await channel.start(sink)
    await sink.until(lambda: bool(sink.ready))
    assert telegram.webhook == {"url": "https://bot.example/hook", "max_connections": 1}
    address = f"http://127.0.0.1:{channel._receiver._listener.port}/hook"
    telegram.write("one")
    update = telegram.write("two")
    assert await telegram.bring(address) == [200, 200]
    assert sink.texts == ["one", "two"]
    async with aiohttp.ClientSession() as session:
        answers = []
        for headers, body in (
            ({}, update),
            ({"X-Telegram-Bot-Api-Secret-Token": "wrong"}, update),
            ({"X-Telegram-Bot-Api-Secret-Token": telegram.webhook_secret}, "no object"),
        ):
            async with session.post(address, json=body, headers=headers) as answer:
                answers.append(answer.status)
        async with session.get(address) as answer:
            answers.append(answer.status)
    assert answers == [403, 403, 200, 405]
    assert [type(item) for item in sink.items[2:]] == [UnreadEvent]
    sink.refusing = True
    telegram.write("three")
    assert await telegram.bring(address) == [503]
    sink.refusing = False
    assert await telegram.bring(address) == [200]
    assert sink.texts == ["one", "two", "three"]
    await channel.close()
    assert telegram.webhook, "what comes meanwhile waits for the next start"


async def test_a_webhook_that_telegram_cannot_reach_is_said(
    telegram: TelegramServer, sink: RecordingSink, clock: Clock
) -> None:
    settings = settings_for(telegram, mode="webhook", listen={"port": 0}, webhook_url="https://bot.example/hook")
    channel = TelegramChannel(settings, clock.times)
    await channel.start(sink)
    await sink.until(lambda: bool(sink.ready))
    telegram.write("lost on the way")
    telegram.webhook["last_error_message"] = "Connection timed out"
    await telegram.wait_for(lambda: channel.health().state is HealthState.DOWN)
    assert "Connection timed out" in channel.health().detail
    await channel.close()


async def test_a_webhook_whose_port_is_taken_says_so_and_listens_once_it_is_free(
    telegram: TelegramServer, sink: RecordingSink
) -> None:
    paused = asyncio.Event()

    class Noted(Clock):
        async def sleep(self, seconds: float) -> None:
            paused.set()
            await super().sleep(seconds)

    with socket.create_server(("127.0.0.1", 0)) as other:
        listen = {"port": other.getsockname()[1]}
        settings = settings_for(telegram, mode="webhook", listen=listen, webhook_url="https://bot.example/hook")
        channel = TelegramChannel(settings, Noted().times)
        await channel.start(sink)
        await asyncio.wait_for(paused.wait(), PATIENCE)
        assert channel.health().state is HealthState.DOWN
        assert "The webhook cannot listen" in channel.health().detail
    await sink.until(lambda: bool(sink.ready))
    await channel.close()
