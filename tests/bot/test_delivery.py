"""What becomes of deliveries over time: limits, age, times to wait, also across a restart, and faults of an adapter."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from bot import service, wording
from bot.clock import Clock
from bot.outbox import Outbox
from bot.people.people import People
from bot.persistence.deliveries import PlanIn
from channels.message import InboundKind
from channels.outgoing import Delivery, NotSent, Planned, SendResult, Sent, Unknown
from channels.sources import sentence
from tests.bot.store.opened import accept, accept_and_claim, opened
from tests.service import Hark, RecordingChannel, running, session_of
from tests.stored import Stored
from tests.watch import Watch

HOUR = 3600.0


def states(hark: Hark, chat: str = "1") -> list[str]:
    """States of what was planned in a chat, in its order."""
    return [state for (state,) in hark.stored.deliveries("state", chat=chat)]


async def answered(hark: Hark, text: str) -> None:
    """Person 1 writes, and the answer is planned."""
    before = len(hark.ends(session_of("1")))
    await hark.write(text)
    await hark.until(lambda: len(hark.ends(session_of("1"))) > before, f"the end of {text!r}")


@pytest.mark.parametrize("text", ["hello", "/help"])
async def test_a_rate_limit_is_passed_before_a_send_is_begun(text: str, hark: Hark) -> None:
    """A crash while it waits leaves nothing in doubt."""
    hark.channel.wait = 7.0
    await hark.write(text)
    await hark.time.until_pause(7)
    assert states(hark) == ["planned"]
    assert hark.channel.texts() == []
    hark.channel.wait = 0.0
    hark.time.advance(7)
    await hark.delivered()
    assert states(hark) == ["sent"]
    assert len(hark.channel.texts()) == 1


async def test_a_plan_that_fails_leaves_its_conversation_to_what_comes_meanwhile(tmp_path: Path) -> None:
    watch = Watch()
    channel = RecordingChannel(watch)
    async with opened(tmp_path) as store:
        outbox = Outbox(store, Clock(), 60_000, People(store, ()))
        outbox.add_channel(channel)
        seq = await accept(store, "/help", InboundKind.COMMAND)
        block = Planned(source=sentence("a"), body="words", nonce=1)
        kept = await store.commands.answer(seq, [block])
        place = kept.deliveries[0].place
        with suppress(RuntimeError), outbox.planning(kept.deliveries[0].conv_id, place, [block]) as where:
            assert where.sending
            outbox.send(kept.deliveries)
            raise RuntimeError("disk full")
        await watch.until(channel.texts, "the send")
        await outbox.close(1)


async def test_what_is_planned_behind_something_open_is_not_begun_before_it(tmp_path: Path) -> None:
    """Whoever plans may believe that nothing is open, and be told by the store that it is."""
    async with opened(tmp_path) as store:
        turn = await accept_and_claim(store)
        blocks = [
            Planned(source=sentence(f"block {number}"), body="words", nonce=number, step=1) for number in range(3)
        ]
        here = PlanIn(turn.conv_id, sending=True)
        await store.turns.plan(turn.run, here, blocks[:2])
        await store.turns.plan(turn.run, here, blocks[2:])
    found = Stored(tmp_path).deliveries("source", "state")
    assert found == [("block 0", "sending"), ("block 1", "planned"), ("block 2", "planned")]


async def test_what_could_not_be_delivered_for_too_long_is_given_up(tmp_path: Path) -> None:
    async with running(tmp_path, config={"delivery": {"max_age": "2h"}}) as hark:
        connected = False

        async def send(delivery: Delivery) -> SendResult:
            return Sent("1") if connected else NotSent(None, "not connected")

        hark.channel.on_send = send
        hark.model.add("Too old by then.")
        hark.model.add("Young enough.")
        begun = hark.time.now()
        await answered(hark, "first")
        hark.time.advance(HOUR)
        await answered(hark, "second")
        hark.time.advance(HOUR + 1)
        connected = True
        assert hark.channel.sink is not None
        hark.channel.sink.can_send("telegram", "bot")
        await hark.delivered()
        told = wording.missed(hark.service.parts.clock.stamp(begun))
        assert hark.channel.texts() == ["Young enough.", told]
        assert states(hark) == ["expired", "sent", "sent"]
        await hark.write("/status")
        status = (await hark.until_texts(3))[-1]
        assert "0 uncertain, 1 late" in status
        assert "not delivered: older than `delivery.max_age`" in status


async def test_what_tells_of_it_waits_as_long_as_the_chat_cannot_be_reached_and_comes_once(tmp_path: Path) -> None:
    async def away(delivery: Delivery) -> SendResult:
        return NotSent(None, "not connected")

    async with running(tmp_path, config={"delivery": {"max_age": "2h"}}) as hark:
        hark.channel.on_send = away
        begun = hark.time.now()
        await answered(hark, "one")
        await answered(hark, "two")
        hark.time.advance(3 * HOUR)
        assert hark.channel.sink is not None
        hark.channel.sink.can_send("telegram", "bot")
        await hark.until(lambda: states(hark) == ["expired", "expired", "planned"], "the end of what is too old")
        await answered(hark, "three")  # behind what tells of it
    hark.time.advance(30 * HOUR)
    async with running(tmp_path, config={"delivery": {"max_age": "2h"}}, time=hark.time) as hark:
        await hark.delivered()
        assert hark.channel.texts() == [wording.missed(hark.service.parts.clock.stamp(begun))]
        assert states(hark) == ["expired", "expired", "sent", "expired"]
        await hark.say("and now?")
        assert len(hark.channel.texts()) == 2


@pytest.mark.parametrize("told_once", [True, False])
async def test_what_stays_uncertain_is_told_with_the_next_message_that_arrives(tmp_path: Path, told_once: bool) -> None:
    """told_once: whether what tells of it arrives itself."""
    lost = ["Lost."] if told_once else ["Lost.", "may not"]

    async def lose(delivery: Delivery) -> SendResult:
        if any(word in delivery.body for word in lost):
            return Unknown("no answer")
        return Sent(str(delivery.delivery_id))

    async with running(tmp_path) as hark:
        hark.channel.on_send = lose
        begun = hark.time.now()
        hark.model.add("Lost.")
        hark.model.add("Found.")
        await answered(hark, "first")
        await hark.delivered()
        assert states(hark) == ["uncertain"], "nothing is sent into the same trouble"
        hark.time.advance(60)
        await answered(hark, "second")
        await hark.delivered()
        missed = wording.missed(hark.service.parts.clock.stamp(begun))
        assert hark.channel.texts() == ["Found.", missed][: 1 + told_once]
        lost = []
        await hark.say("third", sender="2")
        assert len(hark.channel.texts("2")) == 1, "other chats are not told"
        await hark.say("fourth")
        assert hark.channel.texts().count(missed) == 1
        await hark.say("fifth")
        assert hark.channel.texts().count(missed) == 1


async def test_a_time_to_wait_that_the_platform_told_holds_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "OUTBOX_GRACE", 0.0)
    tried = 0

    async def flooded(delivery: Delivery) -> SendResult:
        nonlocal tried
        tried += 1
        return NotSent(600, "too many requests")

    async with running(tmp_path) as hark:
        hark.channel.on_send = flooded
        hark.model.add("Later.")
        await answered(hark, "hello")
        await hark.time.until_pause(600)
    assert tried == 1
    async with running(tmp_path) as hark:
        await hark.time.until_pause(600)
        hark.time.advance(599)
        await hark.write("hello", sender="2", answers=["At once."])
        assert await hark.until_texts(1, "2") == ["At once."], "other chats are not held up"
        assert hark.channel.texts() == []
        assert states(hark) == ["planned"]
        hark.time.advance(1)
        assert await hark.until_texts(1) == ["Later."]
        await hark.delivered()


async def test_a_fault_of_an_adapter_is_a_send_of_unknown_outcome(hark: Hark) -> None:
    """Nobody knows how far it came, so it is not repeated without end, and what is behind it is delivered."""
    tried = 0

    async def send(delivery: Delivery) -> SendResult:
        nonlocal tried
        if delivery.body == "Broken.":
            tried += 1
            raise RuntimeError("a fault of the adapter, after the platform had it")
        return Sent("1")

    hark.channel.on_send = send
    await hark.write("first", answers=["Broken."])
    await hark.until(lambda: tried)
    assert hark.channel.sink is not None
    hark.model.default = "Here."
    for count in range(1, 9):  # time passes, and the platform is seen alive
        await hark.write("are you there?", sender="2")
        await hark.until_texts(count, "2")
        await hark.channel.sink.accept([], None)
        hark.channel.sink.can_send("telegram", "bot")
        hark.time.advance(60)
        for _ in range(5):
            await asyncio.sleep(0)
    await hark.write("second")
    assert await hark.until_texts(1) == ["Here."]
    assert 1 < tried <= 3
    await hark.delivered()
