"""The ledger: in order, each once."""

from dataclasses import replace

import pytest

from bot.persistence.deliveries import OwnerNotice, PlanIn
from bot.persistence.inbox import AcceptedMessage
from bot.store.store import Store
from channels.console.adapter import PLACE
from channels.message import ChatMoved
from channels.outgoing import DeliveryState, Moved, NotSent, Planned, Refused, Sent, Unknown
from channels.sources import refused, sentence, tool_message
from tests.bot.persistence.contract import DAY, NOBODY, Opens, Time, accept, answer, claim, settled
from tests.bot.store.opened import KEY, accept_and_claim, answering, message


async def test_they_are_made_in_the_order_of_planning_each_once(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    await answer(store, turn, said=("a", "b"))
    ((conv_id, place),) = await store.deliveries.open_conversations()
    assert (conv_id, place.chat) == (turn.conv_id, "1")
    first = await store.deliveries.next(conv_id)
    assert first is not None
    assert (first.body, first.place, first.state) == ("a", place, DeliveryState.PLANNED)
    second = await settled(store, first, Sent("p1"))
    assert second is not None
    assert second.body == "b"
    assert await store.deliveries.begin(first.delivery_id, conv_id, DAY) is None
    assert await settled(store, second, Sent("p2")) is None
    assert await store.deliveries.open_conversations() == []


async def test_what_was_certainly_not_sent_is_no_attempt(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        turn = await accept_and_claim(store, "one")
        await answer(store, turn, said=("a",))
        first = await store.deliveries.next(turn.conv_id)
        assert first is not None
        again = await settled(store, first, NotSent(2.0, "too many"))
        assert again is not None
        assert (again.state, again.attempts, again.not_before) == (DeliveryState.PLANNED, 0, time.at + 2_000)


async def test_an_outcome_that_nobody_told_is_settled_and_not_repeated(opens: Opens) -> None:
    async with opens() as store:
        turn = await accept_and_claim(store, "one")
        await answer(store, turn, said=("a", "b"))
        first = await store.deliveries.next(turn.conv_id)
        assert first is not None
        assert await store.deliveries.begin(first.delivery_id, turn.conv_id, DAY) is not None
    async with opens() as store:
        await store.deliveries.recover()
        unknown = await store.deliveries.next(turn.conv_id)
        assert unknown is not None
        assert (unknown.body, unknown.state, unknown.attempts) == ("a", DeliveryState.UNKNOWN, 1)
        await store.deliveries.settle(unknown, Unknown("never told"), NOBODY)
        following = await store.deliveries.next(turn.conv_id)
        assert following is not None
        assert following.body == "b"
        assert [lost.state for lost in await store.reads.lost_deliveries(9)] == [DeliveryState.UNCERTAIN]


async def test_what_is_too_old_expires(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        turn = await accept_and_claim(store, "one")
        await answer(store, turn, said=("a",))
        first = await store.deliveries.next(turn.conv_id)
        assert first is not None
        time.at += DAY + 1
        assert await store.deliveries.begin(first.delivery_id, turn.conv_id, DAY) is None
        assert await store.deliveries.next(turn.conv_id) is None


async def test_a_refusal_is_told_to_the_owner_once(opens: Opens) -> None:
    notice = OwnerNotice(
        (("telegram", "1"),),
        PLACE,
        lambda place: (Planned(source=refused("x", 1), body=f"refused, told in {place.chat}", nonce=9),),
    )
    async with opens() as store:
        other = message("hello", chat="2")
        await store.inbox.accept([AcceptedMessage(message=other, session_key=KEY)])
        first = await claim(store)
        await accept(store, "one")
        await answer(store, first)
        turn = await claim(store)
        await answer(store, turn, said=("a",))
        delivery = await store.deliveries.next(turn.conv_id)
        assert delivery is not None
        begun = await store.deliveries.begin(delivery.delivery_id, turn.conv_id, DAY)
        assert begun is not None
        await store.deliveries.settle(begun, Refused("blocked"), notice)
        await store.deliveries.tell_owner(notice)
        told = await store.deliveries.next(first.conv_id)
        assert told is not None
        assert told.body == "refused, told in 2"
        assert await settled(store, told, Sent("p")) is None


async def test_a_chat_that_moves_takes_everything_along(store: Store) -> None:
    await accept(store, "one", "two")
    turn = await claim(store)
    await answer(store, turn, said=("a", "b"))
    first = await store.deliveries.next(turn.conv_id)
    assert first is not None
    begun = await store.deliveries.begin(first.delivery_id, turn.conv_id, DAY)
    assert begun is not None
    await store.deliveries.settle(begun, Moved("100"), NOBODY)
    ((conv_id, place),) = await store.deliveries.open_conversations()
    assert (conv_id != turn.conv_id, place.chat) == (True, "100")
    assert (await claim(store)).place.chat == "100"
    again = ChatMoved(channel="telegram", account="bot", old_chat="1", new_chat="100")
    await store.inbox.accept([again])
    assert [found[1].chat for found in await store.deliveries.open_conversations()] == ["100"]


async def test_a_turn_speaks_only_where_it_answers(store: Store) -> None:
    """Unless the row names the call of a tool that chose another place."""
    turn = await accept_and_claim(store, "private")
    await store.inbox.accept([AcceptedMessage(message=message("group", chat="-100"), session_key="other")])
    elsewhere = await store.turns.claim("other", "one", answering)
    assert elsewhere is not None
    where = PlanIn(elsewhere.conv_id)
    block = Planned(source=sentence(f"turn:{turn.turn_id}:s1:b0"), body="secret", nonce=1, said="secret", step=1)
    with pytest.raises(ValueError, match="answers in conversation"):
        await store.turns.plan(turn.run, where, [block])
    assert await store.deliveries.next(elsewhere.conv_id) is None
    chosen = replace(block, source=tool_message(turn.turn_id, "c1"), step=None)
    (planned,) = await store.turns.plan(turn.run, where, [chosen])
    assert planned.place.chat == "-100"
