"""Turns that wait for a person."""

import asyncio

import pytest

from bot.persistence.approvals import Choice
from bot.persistence.turns import TurnState
from channels.message import InboundKind
from tests.bot.persistence.contract import Opens, Time, accept, claim, parked
from tests.bot.store.opened import KEY, answering


@pytest.mark.parametrize("state", ["once", "denied"])
async def test_of_all_decisions_one_wins_and_is_used_once(opens: Opens, state: str) -> None:
    async with opens() as store:
        await accept(store, "one", "two")
        turn = await claim(store)
        approval = await parked(store, turn)
    async with opens() as store:
        assert await store.turns.claim(KEY, "two", answering) is None, "it waits"
        assert await store.recovery.cut_turns("two") == []
        decided = await asyncio.gather(
            *(store.approvals.decide(approval, Choice(verdict=state), f"telegram:{n}") for n in range(3))  # type: ignore[arg-type]
        )
        assert [found for found in decided if found] == [(KEY, False)]
        resumed = await claim(store, "two")
        assert (resumed.turn_id, resumed.run.attempt) == (turn.turn_id, 2)
        assert [(call, found.state) for call, found in resumed.decisions.items()] == [("c1", state)]
        await store.turns.start_calls(resumed.run, ["c1"], ())
        await store.turns.release(resumed.run)
        assert (await claim(store, "two")).decisions == {}, "used by the call that it allowed"


async def test_nobody_can_decide_too_late(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        await accept(store, "one")
        approval = await parked(store, await claim(store), seconds=60)
        time.at += 60_000
        assert await store.approvals.decide(approval, Choice(verdict="once"), "telegram:1") is None
        (decision,) = (await claim(store)).decisions.values()
        assert decision.state == "expired"


async def test_a_turn_goes_on_without_a_decision_once_its_time_is_over(opens: Opens) -> None:
    time = Time()
    async with opens(time.clock()) as store:
        await accept(store, "one")
        await parked(store, await claim(store), seconds=60)
        time.at += 59_999
        assert await store.turns.claim(KEY, "two", answering) is None
        time.at += 1
        (decision,) = (await claim(store, "two")).decisions.values()
        assert decision.state == "expired"


async def test_a_stop_ends_a_turn_that_waits(opens: Opens) -> None:
    async with opens() as store:
        await accept(store, "one")
        turn = await claim(store)
        approval = await parked(store, turn)
        (seq,) = await accept(store, "/stop", kind=InboundKind.COMMAND)
        kept = await store.stops.stop(seq, KEY, lambda stopped: ())
        assert kept.stopped.turns == (turn.turn_id,)
        assert await store.approvals.decide(approval, Choice(verdict="once"), "telegram:1") is None
        view = await store.reads.turn(turn.turn_id)
        assert view is not None
        assert view.state is TurnState.STOPPED
