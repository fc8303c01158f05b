"""A run whose turn was given to another one writes nothing more: each of its writes names its epoch."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.events import Outcome, RunRef, ToolExecutionStart
from agent.journal import CallResult
from agent.message import Message, Text, ToolCall, ToolResult
from agent.tools.base import Ask
from bot.clock import Clock
from bot.persistence.approvals import Request
from bot.persistence.deliveries import PlanIn
from bot.persistence.errors import StaleRun
from bot.persistence.turns import Turn
from bot.store.store import Store
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, accept_and_claim, answering, claim, opened, whole
from tests.stored import Stored

HERE = PlanIn(1)
BLOCKS = [Planned(source=sentence("stale"), body="words of nobody", nonce=1, said="words of nobody", step=1)]
CALL = ToolResult("call", "act", "result of nobody")
WRITES: dict[str, Callable[[Store, RunRef], Awaitable[Any]]] = {
    "plan": lambda store, run: store.turns.plan(run, HERE, BLOCKS),
    "step": lambda store, run: store.turns.step(run, whole(run, Text("words of nobody")), HERE, BLOCKS),
    "note": lambda store, run: store.turns.note(run, Message("user", (Text("note of nobody"),))),
    "start_calls": lambda store, run: store.turns.start_calls(run, ["call"], ()),
    "process_started": lambda store, run: store.turns.process_started(run, "call", 1, "then"),
    "results": lambda store, run: store.turns.results(run, [CallResult(CALL, "done")], batch_done=True, events=()),
    "cut": lambda store, run: store.turns.cut(run, lambda cut: (), heard=None),
    "finish": lambda store, run: store.turns.finish(
        run,
        Outcome.FAILED,
        error_kind="network",
        error_message=None,
        where=HERE,
        blocks=BLOCKS,
    ),
    "park": lambda store, run: store.approvals.park(
        run, "call", Ask(digest="digest", subject="May it?"), Request(approval_id="a1", approvers=(), expires=1), HERE
    ),
}


async def asking(store: Store) -> RunRef:
    """A run whose model has asked for a call."""
    await accept(store)
    run = (await claim(store)).run
    await store.turns.step(run, whole(run, ToolCall("call", "act", "{}")), HERE, ())
    return run


async def refuses(store: Store, home: Path, name: str, run: RunRef) -> None:
    """A write of a run, and giving it back, change nothing."""
    before = Stored(home).everything()
    with pytest.raises(StaleRun):
        await WRITES[name](store, run)
    await store.turns.release(run)
    assert Stored(home).everything() == before


@pytest.mark.parametrize("name", WRITES)
async def test_a_stale_run_is_refused_and_changes_nothing(tmp_path: Path, name: str, store: Store) -> None:
    stale = await asking(store)
    await store.turns.release(stale)
    present = await claim(store)
    assert (present.turn_id, present.run.attempt) == (stale.turn_id, 2)
    await refuses(store, tmp_path, name, stale)
    assert await store.turns.claim(KEY, "worker", answering) is None, "it still runs"
    await WRITES[name](store, present.run)


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("name", WRITES)
async def test_a_run_that_has_ended_is_refused_and_changes_nothing(
    tmp_path: Path, name: str, stopped: bool, store: Store
) -> None:
    run = await asking(store)
    if stopped:
        assert await store.stops.abort(run.turn_id)
        assert not await store.stops.abort(run.turn_id)
    else:
        await WRITES["finish"](store, run)
    await refuses(store, tmp_path, name, run)


# The clock of a turn: it runs while an attempt does, and neither a pause nor a restart counts.


class Time:
    """Milliseconds that a test sets."""

    def __init__(self) -> None:
        self.at = 1_000_000

    def clock(self) -> Clock:
        return Clock(now=lambda: self.at)


async def answer(store: Store, turn: Turn, *calls: ToolCall) -> float | None:
    """Store an answer; returns the duration that the end of the turn tells, if it ended."""
    kept, _ = await store.turns.step(turn.run, whole(turn.run, Text("yes"), *calls), PlanIn(turn.conv_id), ())
    return kept.end.duration if kept.end else None


async def last_event(store: Store) -> str:
    """The newest kept event."""
    last = await store.reads.last_event()
    (event,) = await store.reads.events_after(last - 1, last, None, None, 1)
    return event.body


async def test_attempts_are_summed_and_pauses_do_not_count(tmp_path: Path) -> None:
    time = Time()
    async with opened(tmp_path, time.clock()) as store:
        await accept(store)
        time.at += 50_000  # it waited for its turn
        turn = await claim(store)
        assert turn.ran == 0
        time.at += 4_000
        await store.turns.release(turn.run)
        time.at += 900_000
        turn = await claim(store)
        assert turn.ran == 4_000
        time.at += 1_500
        assert await answer(store, turn) == 5.5


async def test_a_run_that_had_stopped_working_when_it_was_given_back(tmp_path: Path) -> None:
    time = Time()
    async with opened(tmp_path, time.clock()) as store:
        turn = await accept_and_claim(store)
        time.at += 4_000
        stopped_at = time.at
        time.at += 900_000  # the store could not write
        await store.turns.release(turn.run, until=stopped_at)
        assert (await claim(store)).ran == 4_000


@pytest.mark.parametrize("sign", ["nothing", "a block", "an event"])
async def test_an_attempt_that_crashed_ran_until_its_last_sign(tmp_path: Path, sign: str) -> None:
    time = Time()
    async with opened(tmp_path, time.clock()) as store:
        turn = await accept_and_claim(store)
        time.at += 2_000
        if sign == "a block":
            block = Planned(source=sentence("b"), body="yes", nonce=1, said="yes", step=1)
            await store.turns.plan(turn.run, PlanIn(turn.conv_id), (block,))
        elif sign == "an event":
            await answer(store, turn, ToolCall("c", "act", "{}"))
            begun = ToolExecutionStart(
                run=turn.run,
                at=time.at,
                id=f"{turn.turn_id}/1/c/start",
                step=1,
                call_id="c",
                name="act",
                arguments="",
            )
            await store.turns.start_calls(turn.run, ("c",), (begun,))
        time.at += 3_000
    time.at += 900_000
    async with opened(tmp_path, time.clock()) as store:
        assert await store.recovery.recover(turn.turn_id, "next", ())
        time.at += 900_000
        turn = await claim(store)
        assert turn.ran == (0 if sign == "nothing" else 2_000)
    async with opened(tmp_path, time.clock()) as store:
        assert not await store.recovery.recover(turn.turn_id, "next", ())
        assert f'"duration":{0.0 if sign == "nothing" else 2.0}' in await last_event(store)


async def test_a_turn_that_waits_to_go_on_and_is_stopped(tmp_path: Path) -> None:
    time = Time()
    async with opened(tmp_path, time.clock()) as store:
        turn = await accept_and_claim(store)
        time.at += 4_000
        await store.turns.release(turn.run)
        time.at += 900_000
        assert await store.stops.abort(turn.turn_id)
        assert '"duration":4.0' in await last_event(store)


async def test_a_clock_that_is_set_back(tmp_path: Path) -> None:
    time = Time()
    async with opened(tmp_path, time.clock()) as store:
        turn = await accept_and_claim(store)
        time.at -= 500_000
        assert await answer(store, turn) == 0.0
