"""The life of a turn."""

import asyncio

import pytest

from agent.events import AgentStart, Outcome, load
from agent.message import Usage
from bot.persistence.approvals import Choice
from bot.persistence.deliveries import PlanIn
from bot.persistence.events import PersistedAt, Subscriber
from bot.persistence.turns import TurnState
from bot.store.store import Store
from channels.message import InboundKind
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.persistence.contract import CALL, Opens, Time, accept, answer, claim, parked
from tests.bot.store.opened import KEY, accept_and_claim, answering


async def test_a_session_has_one_run_at_a_time_in_order(store: Store) -> None:
    await accept(store, "one", "two")
    turn = await claim(store)
    assert ([found.text for found in turn.messages], turn.more) == (["one"], True)
    assert await store.turns.claim(KEY, "two", answering) is None
    end = await answer(store, turn, said=("fi", "ne"))
    assert end is not None
    assert end.outcome is Outcome.COMPLETED
    view = await store.reads.turn(turn.turn_id)
    assert view is not None
    assert (view.state, view.text, view.usage) == (TurnState.DONE, "fine", Usage(1, 2))
    following = await claim(store)
    assert ([found.text for found in following.messages], following.more) == (["two"], False)
    lines = await store.reads.context(following.transcript_id)
    assert [(line.kind, line.message.text) for line in lines] == [
        ("user", "one"),
        ("assistant", "fine"),
        ("user", "two"),
    ]


async def test_what_nobody_wrote_is_claimed_in_the_background(store: Store) -> None:
    await accept(store, "wake", kind=InboundKind.WAKE)
    assert await store.inbox.waiting_sessions(9) == [(KEY, True, "http:owner")]
    assert await store.turns.claim(KEY, "one", answering) is None
    assert await store.turns.claim(KEY, "one", answering, background=True) is not None


async def test_what_was_planned_of_a_cut_answer_is_kept_as_said(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    block = Planned(source=sentence(f"turn:{turn.turn_id}:s1:b0"), body="half", nonce=1, said="half", step=1)
    await store.turns.plan(turn.run, PlanIn(turn.conv_id), [block])
    cut = await store.turns.cut(turn.run, lambda cut: (), heard=None)
    assert cut.step == 1
    assert [line.kind for line in cut.entries] == ["assistant_cut", "note"]
    assert cut.entries[0].message.text == "half"


# Turns that wait for a person.


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


async def test_a_stop_ends_a_turn_that_waits(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    approval = await parked(store, turn)
    (seq,) = await accept(store, "/stop", kind=InboundKind.COMMAND)
    kept = await store.stops.stop(seq, KEY, lambda stopped: ())
    assert kept.stopped.turns == (turn.turn_id,)
    assert await store.approvals.decide(approval, Choice(verdict="once"), "telegram:1") is None
    view = await store.reads.turn(turn.turn_id)
    assert view is not None
    assert view.state is TurnState.STOPPED


# What a worker left that is gone.


async def test_only_turns_whose_lease_is_gone_are_taken(opens: Opens) -> None:
    async with opens() as store:
        await accept(store, "one")
        turn = await claim(store, "one")
        assert await store.recovery.cut_turns("one") == []
        assert not await store.recovery.recover(turn.turn_id, "one", ())
        await answer(store, turn, CALL)
        await store.turns.start_calls(turn.run, ["c1"], ())
        await store.turns.process_started(turn.run, "c1", 4711, "then")
        assert await store.recovery.leftovers("one") == []
    async with opens() as store:
        assert [found.pid for found in await store.recovery.leftovers("two")] == [4711]
        await store.recovery.forget(await store.recovery.leftovers("two"))
        assert await store.recovery.leftovers("two") == []
        (found,) = await store.recovery.cut_turns("two")
        assert (found.turn_id, found.channel) == (turn.turn_id, "telegram")
        assert await store.recovery.recover(found.turn_id, "two", ())
        assert await store.recovery.cut_turns("two") == []
        again = await claim(store, "two")
        assert (again.turn_id, again.run.attempt) == (turn.turn_id, 2)
        (result,) = (line for line in await store.reads.context(turn.transcript_id) if line.kind == "tool_result")
        assert "unknown" in result.message.parts[0].text  # type: ignore[union-attr]


async def test_twice_the_same_turn_is_the_end_of_it(store: Store) -> None:
    await accept(store, "one")
    for worker, follower in (("one", "two"), ("two", "three")):
        turn = await claim(store, worker)
        sorry = Planned(source=sentence(f"turn:{turn.turn_id}:error"), body="sorry", nonce=1)
        assert await store.recovery.recover(turn.turn_id, follower, [sorry]) is (worker == "one")
    view = await store.reads.turn(turn.turn_id)
    assert view is not None
    assert (view.state, view.error_kind) == (TurnState.FAILED, "crash")
    said = await store.deliveries.next(turn.conv_id)
    assert said is not None
    assert said.body == "sorry"
    assert await store.reads.last_failure() is not None


# Kept events, by position.


async def test_positions_rise_and_are_published_before_the_writer_is_answered(opens: Opens) -> None:
    published: list[PersistedAt] = []
    subscriber: Subscriber = published.extend
    async with opens(subscriber=subscriber) as store:
        turn = await accept_and_claim(store, "one")
        assert published, "before the claim is answered"
        end = await answer(store, turn)
        assert end is not None
        assert published[-1].ended
        newest = await store.reads.last_event()
        kept = await store.reads.events_after(0, newest, KEY, turn.turn_id, 99)
        assert [found.seq for found in kept] == [found.seq for found in published]
        assert [found.seq for found in kept] == sorted({found.seq for found in kept})
        events = [load(found.body) for found in kept]
        assert isinstance(events[0], AgentStart)
        assert events[-1] == end
        assert {event.run for event in events} == {turn.run}
        assert await store.reads.first_event(turn.turn_id) == kept[0].seq
        assert await store.reads.end_of(turn.turn_id) == kept[-1].seq
        assert await store.reads.events_after(0, newest, "agent:main:other", None, 9) == []
        assert await store.reads.events_after(0, newest, None, None, 9, "agent:main:http:") == []


async def test_answers_under_way_are_found(store: Store) -> None:
    turn = await accept_and_claim(store, "one")
    newest, begun = await store.reads.under_way(KEY, "")
    assert newest == await store.reads.last_event()
    assert [found.type for found in begun] == ["message_start"]
    await answer(store, turn)
    assert (await store.reads.under_way(None, ""))[1] == []


async def test_it_says_what_it_holds(store: Store) -> None:
    assert (store.failure, store.salvage) == (None, None)
    await accept(store, "one", "two")
    await answer(store, await claim(store), said=("a",))
    totals = await store.reads.totals()
    assert (totals.sessions, totals.waiting, totals.undelivered, totals.begun) == (1, 1, 1, 0)
    assert await store.try_write()
    await store.prune()
    assert (await store.reads.totals()) == totals
    exchange = await store.reads.last_exchange(KEY, await store.reads.last_event())
    assert exchange is not None
    assert exchange.question == "one"
