"""A chat whose id changes (a group that becomes a supergroup) takes along what is to be said in it."""

import asyncio
from pathlib import Path

import pytest

from bot.persistence.deliveries import OwnerNotice
from bot.store.store import Store
from channels.console.adapter import PLACE as CONSOLE
from channels.message import ChatMoved, InboundKind
from channels.outgoing import Delivery, DeliveryState, Moved, NotSent, Planned, Refused, SendResult, Sent, Unknown
from channels.sources import sentence
from tests.bot.replies.test_showing import Previewing, previewed, streaming
from tests.bot.store.opened import accept
from tests.service import Hark, running, session_of
from tests.standins.script import Gate, Say

OLD, NEW = "1", "-100"
AGE = 10**9
NOBODY = OwnerNotice((), CONSOLE, lambda place: ())
EVENT = ChatMoved(channel="telegram", account="bot", old_chat=OLD, new_chat=NEW)


@pytest.mark.parametrize("told_by_event", [True, False], ids=["an event tells it", "a refused send tells it"])
async def test_words_of_a_run_follow_a_chat_that_moves_meanwhile(told_by_event: bool, hark: Hark) -> None:
    moved = False
    refused = 0

    async def send(delivery: Delivery) -> SendResult:
        nonlocal refused
        if not moved or delivery.place.chat != OLD:
            return Sent("1")
        refused += 1
        return Moved(NEW)

    hark.channel.on_send = send
    gate = Gate()
    await hark.write("hello", answers=[(Say("first\n\n" * 200), Say("last", gate=gate))])
    await hark.until_texts(1)
    await hark.delivered()
    moved = True
    if told_by_event:
        await hark.service.parts.pipeline.accept([EVENT], None)
    gate.open()
    await hark.until(lambda: any("last" in text for text in hark.channel.texts(NEW)), "the last words")
    await hark.delivered()
    assert refused == (0 if told_by_event else 1), "where it is, is known from the first refusal on"


async def test_words_on_their_way_are_not_sent_again_where_the_chat_goes_meanwhile(hark: Hark) -> None:
    arrived = asyncio.Event()

    async def send(delivery: Delivery) -> SendResult:
        if delivery.place.chat == OLD:
            await arrived.wait()
        return Sent("1")

    hark.channel.on_send = send
    await hark.write("hello", answers=["words"])
    await hark.until(lambda: hark.stored.deliveries(state="sending"), "the send")
    pauses = len(hark.time.asked)
    await hark.service.parts.pipeline.accept([EVENT], None)
    await hark.until(lambda: hark.channel.texts(NEW) or hark.time.asked[pauses:], "a look from the new place")
    arrived.set()
    await hark.delivered()
    assert (hark.channel.texts(OLD), hark.channel.texts(NEW)) == (["words"], [])
    hark.time.advance(1)  # or the end would wait for who looks from there


async def test_what_waits_to_be_sent_follows_a_chat_that_moved(hark: Hark) -> None:
    hark.model.add("words")

    async def send(delivery: Delivery) -> SendResult:
        return NotSent(None, "not connected") if delivery.place.chat == OLD else Sent("1")

    hark.channel.on_send = send
    await hark.write("hello")
    await hark.until(lambda: hark.ends(session_of(OLD)), "the end")
    await hark.service.parts.pipeline.accept([EVENT], None)
    await hark.until_texts(1, NEW)


@pytest.mark.parametrize(
    "result", [NotSent(0.0, "429"), Moved(NEW), Unknown("cut")], ids=["not sent", "moved", "unknown"]
)
@pytest.mark.parametrize(
    "told", [True, False], ids=["an event came during the call", "nothing but the answer tells it"]
)
async def test_a_call_that_came_to_nothing_is_gone_on_with_where_the_chat_is_now(
    result: SendResult, told: bool, store: Store
) -> None:
    seq = await accept(store, "/help", InboundKind.COMMAND)
    blocks = [Planned(source=sentence(f"cmd{number}"), body="help", nonce=number) for number in (1, 2)]
    first, _ = (await store.commands.answer(seq, blocks)).deliveries
    begun = await store.deliveries.begin(first.delivery_id, first.conv_id, AGE)
    assert begun is not None
    if told:
        await store.inbox.accept([EVENT])
        ((now, _),) = await store.deliveries.open_conversations()
        following = await store.deliveries.next(now)
        assert following is not None
        assert (following.source.key, following.state) == ("cmd1", DeliveryState.SENDING), "the second waits behind it"
    await store.deliveries.settle(begun, result, NOBODY)
    (where,) = await store.deliveries.open_conversations()
    assert where[1].chat == (NEW if told or isinstance(result, Moved) else OLD)
    following = await store.deliveries.next(where[0])
    assert following is not None
    assert (following.source.key, following.place.chat) == ("cmd1", where[1].chat)
    assert following.attempts == (1 if isinstance(result, Unknown) else 0)


async def test_a_preview_that_comes_to_nothing_is_taken_away_where_the_chat_is_now(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, config=streaming(mode="preview"), made=Previewing) as hark:
        asked: list[str] = []

        async def send(delivery: Delivery) -> SendResult:
            asked.append(f"{delivery.action} {delivery.place.chat}")
            moved = delivery.place.chat == OLD and len(asked) > 1
            return Refused("again and again") if len(asked) > 9 else Moved(NEW) if moved else Sent(str(len(asked)))

        hark.channel.on_send = send
        text = "The answer begins here and is long enough. The end."
        await hark.write("a question", answers=[Say(text, chunks=[text[:42], text[42:]], gate=gate)])
        await previewed(hark, gate, 1)
        await hark.delivered()
        await hark.service.parts.pipeline.accept([EVENT], None)
        await hark.write("/stop")
        await hark.until(lambda: hark.stored.turns(state="stopped"), "the stop")
        hark.time.advance(60)  # found by the sweep
        await hark.delivered()
        assert sorted(asked) == [f"delete {NEW}", f"delete {OLD}", f"send {NEW}", f"send {OLD}"]


async def test_a_delivery_is_begun_only_where_it_is(store: Store) -> None:
    """It has moved between being found and being begun: who serves its new place sends it, nobody else."""
    seq = await accept(store, "/help", InboundKind.COMMAND)
    kept = await store.commands.answer(seq, [Planned(source=sentence("cmd"), body="help", nonce=1)])
    (delivery,) = kept.deliveries
    await store.inbox.accept([EVENT])
    assert await store.deliveries.begin(delivery.delivery_id, delivery.conv_id, AGE) is None
    ((moved_to, place),) = await store.deliveries.open_conversations()
    assert place.chat == NEW
    assert await store.deliveries.begin(delivery.delivery_id, moved_to, AGE) is not None
