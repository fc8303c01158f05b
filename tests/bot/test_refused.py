"""What a platform refuses for good counts as said to nobody, and an owner is told where it can be seen."""

import asyncio
from pathlib import Path

import pytest

from agent.context import CUT_NOTE
from agent.events import Notice
from channels.outgoing import Action, Delivery, NotSent, Planned, Refused, SendResult, Sent, Unknown
from channels.sources import sentence
from tests.bot.test_actions import deliver
from tests.service import Hark, running
from tests.standins.script import Break, Fail, Hang, Say
from tests.stored import Like


def notices(hark: Hark) -> list[tuple[str, str, str]]:
    """Where owners were told of a refusal, and what became of it."""
    return hark.stored.deliveries("channel", "chat", "state", source=Like("refused:%"))


async def refuse(delivery: Delivery) -> SendResult:
    """A platform that does not want some words."""
    return Refused("unwanted words") if "bad" in delivery.body else Sent("1")


async def test_after_a_cut_a_refused_block_is_not_said_to_have_been_delivered(tmp_path: Path) -> None:
    async with running(tmp_path, config={"channels": {"telegram": {"streaming": {"max_chars": 1200}}}}) as hark:
        hark.channel.on_send = refuse
        text = "bad " * 300 + "\n\n" + "good " * 300 + "\n\n" + "lost " * 200
        reply = await hark.say("tell me", answers=[(Say(text, chunks=10), Break(after_chunks=9)), "The end."])
        assert "bad" not in "".join(reply.texts)
        cut, note = hark.model.requests[-1].messages[-2:]
        assert note.text.endswith(CUT_NOTE)
        assert cut.text.split()[:2] == ["good", "good"]
        ((turn_id,),) = hark.stored.turns("turn_id")
        view = await hark.service.parts.api.turn(turn_id)
        assert view is not None
        assert view.text.startswith("good good")
        assert view.text.endswith("The end.")


async def test_an_owner_who_cannot_be_reached_is_told_in_the_terminal_once(hark: Hark) -> None:
    hark.channel.on_send = refuse
    await hark.write("hi", answers=["bad " * 300 + "\n\n" + "bad " * 300])
    await hark.until(lambda: len(hark.stored.deliveries(state="failed")) == 2, "both refusals")
    assert notices(hark) == [("console", "local", "sent")]
    (told,) = [event.detail for event in hark.events if isinstance(event, Notice)]
    assert told.startswith("Telegram refused a message to chat 1, so it was not delivered: unwanted words.")


async def test_a_refused_notice_is_told_to_nobody(tmp_path: Path) -> None:
    async def nothing(delivery: Delivery) -> SendResult:
        return Refused("no" + "o" * delivery.delivery_id)  # for another reason each time

    async with running(tmp_path, config={"owners": ["telegram:2"]}) as hark:
        await hark.say("hello", sender="2")
        hark.channel.on_send = nothing
        await hark.write("hi")
        await hark.until(lambda: len(hark.stored.deliveries(state="failed")) == 2, "both refusals")
        await hark.delivered()
        assert notices(hark) == [("telegram", "2", "failed")]


async def test_refused_reactions_are_only_logged(tmp_path: Path) -> None:
    async def no_reactions(delivery: Delivery) -> SendResult:
        return Refused("REACTION_INVALID") if delivery.action is Action.REACT else Sent("1")

    async with running(tmp_path, config={"channels": {"telegram": {"ack": {"emoji": "👀"}}}}) as hark:
        hark.channel.on_send = no_reactions
        for number in range(5):
            await hark.say(f"message {number}")
        assert len(hark.stored.deliveries(state="failed", action="react")) == 10
        assert notices(hark) == []
        await hark.write("/status")
        status = (await hark.until_texts(6))[-1]
        assert "0 open, 0 refused" in status
        assert "REACTION_INVALID" not in status


async def test_of_refused_messages_an_owner_is_told_once_an_hour_and_kind(tmp_path: Path) -> None:
    reasons: list[str] = []

    async def no_strangers(delivery: Delivery) -> SendResult:
        return Sent("1") if delivery.place.chat == "1" else Refused(reasons[-1])

    async with running(tmp_path) as hark:
        hark.channel.on_send = no_strangers
        await hark.say("hello")
        for reason, seconds in [("gone 17", 0), ("gone 9", 60), ("too long", 0), ("gone 17", 3600)]:
            reasons.append(reason)
            hark.time.advance(seconds)
            await hark.say("hi", sender="2")
        told = [text.partition(": ")[2].partition(".")[0] for text in (await hark.until_texts(4))[1:]]
        assert told == ["gone 17", "too long", "gone 17"]


async def test_of_failures_where_others_read_an_owner_is_told_once_an_hour_and_kind(hark: Hark) -> None:
    await hark.say("hello")
    kinds = [(404, 0), (404, 0), (451, 0), (404, 3600)]
    for status, seconds in kinds:
        hark.time.advance(seconds)
        hark.model.add(Fail(status, {404: "not_found_error", 451: "unavailable"}[status]))
        assert len((await hark.say("hi", sender="2")).texts) == 1
    await hark.delivered()
    told = [text for text in hark.channel.texts() if text.startswith("An answer on telegram (chat 2) failed.")]
    assert ["name" in text for text in told] == [True, False, True]


async def lose(delivery: Delivery) -> SendResult:
    """A platform that does not answer for some words."""
    return Unknown("no answer") if "words" in delivery.body else Sent("1")


async def test_an_unknown_outcome_holds_back_its_own_conversation_only(tmp_path: Path) -> None:
    looked = asyncio.Event()

    async def look(delivery: Delivery) -> SendResult:
        await looked.wait()
        return Sent("1")

    async with running(tmp_path) as hark:
        hark.channel.on_send, hark.channel.on_settle = lose, look
        await hark.write("hi", answers=["words"])
        await hark.until(lambda: hark.stored.deliveries(state="unknown"), "the unknown send")
        await hark.write("/status")
        await hark.until(lambda: hark.stored.deliveries(state="planned"), "the reply that waits")
        await hark.write("hi", sender="2", answers=["Hello, you."])
        assert await hark.until_texts(1, "2") == ["Hello, you."]
        assert hark.channel.texts() == []
        looked.set()
        await hark.until_texts(1)
        await hark.delivered()
        assert set(hark.stored.deliveries("state")) == {("sent",)}


async def test_what_is_stopped_while_its_outcome_is_unknown_stays_uncertain(tmp_path: Path) -> None:
    looked = asyncio.Event()

    async def look(delivery: Delivery) -> SendResult:
        await looked.wait()
        return NotSent(0.0, "to be sent again")

    async with running(tmp_path) as hark:
        hark.channel.on_send, hark.channel.on_settle = lose, look
        await hark.write("hi", answers=[("words " * 300 + "\n\nmore", Hang())])
        await hark.until(lambda: hark.stored.deliveries(state="unknown"), "the unknown send")
        await hark.write("/stop")
        await hark.until(lambda: hark.stored.deliveries(state="uncertain"), "the stop")
        looked.set()
        assert await hark.until_texts(1) == ["Stopped."]
        await hark.delivered()
        assert hark.stored.deliveries("state", "attempts") == [("uncertain", 1), ("sent", 1)]


@pytest.mark.parametrize("action", [Action.SEND, Action.EDIT])
async def test_what_grew_old_while_its_outcome_was_unknown_is_uncertain(tmp_path: Path, action: Action) -> None:
    """A message is looked for; a change would be made once more, and grows too old for that."""

    async def grow_old(delivery: Delivery) -> SendResult:
        hark.time.advance(3601)
        return Unknown("no answer")

    async with running(tmp_path, config={"delivery": {"max_age": "1h"}}) as hark:
        hark.channel.on_send = grow_old
        await deliver(hark, Planned(source=sentence("a"), body="words", nonce=1, action=action, target="7"))
        if action is Action.EDIT:
            await hark.time.until_pause(2.0)
            hark.time.advance(2.0)
        await hark.until(lambda: hark.stored.deliveries(state="uncertain"), "the end of it")
        assert hark.stored.deliveries("attempts")[0] == (1,)
