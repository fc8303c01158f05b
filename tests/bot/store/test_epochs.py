"""A run whose turn was given to another one writes nothing more: each of its writes names its epoch."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.events import Outcome, RunRef
from agent.journal import CallResult
from agent.message import Message, Text, ToolCall, ToolResult
from bot.persistence.deliveries import PlanIn
from bot.persistence.errors import StaleRun
from bot.store.store import Store
from bot.store.turns import Turns
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, answering, claim, opened, whole
from tests.stored import Stored

HERE = PlanIn(1)
BLOCKS = [Planned(source=sentence("stale"), body="words of nobody", nonce=1, said="words of nobody", step=1)]
CALL = ToolResult("call", "act", "result of nobody")
WRITES: dict[str, Callable[[Turns, RunRef], Awaitable[Any]]] = {
    "plan": lambda turns, run: turns.plan(run, HERE, BLOCKS),
    "step": lambda turns, run: turns.step(run, whole(run, Text("words of nobody")), HERE, BLOCKS),
    "note": lambda turns, run: turns.note(run, Message("user", (Text("note of nobody"),))),
    "start_calls": lambda turns, run: turns.start_calls(run, ["call"], ()),
    "process_started": lambda turns, run: turns.process_started(run, "call", 1, "then"),
    "results": lambda turns, run: turns.results(run, [CallResult(CALL, "done")], batch_done=True, events=()),
    "cut": lambda turns, run: turns.cut(run, lambda cut: (), heard=None),
    "finish": lambda turns, run: turns.finish(
        run,
        Outcome.FAILED,
        error_kind="network",
        error_message=None,
        where=HERE,
        blocks=BLOCKS,
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
        await WRITES[name](store.turns, run)
    await store.turns.release(run)
    assert Stored(home).everything() == before


@pytest.mark.parametrize("name", WRITES)
async def test_a_stale_run_is_refused_and_changes_nothing(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as store:
        stale = await asking(store)
        await store.turns.release(stale)
        present = await claim(store)
        assert (present.turn_id, present.run.attempt) == (stale.turn_id, 2)
        await refuses(store, tmp_path, name, stale)
        assert await store.turns.claim(KEY, "worker", answering) is None, "it still runs"
        await WRITES[name](store.turns, present.run)


@pytest.mark.parametrize("name", WRITES)
async def test_a_run_that_has_ended_is_refused_and_changes_nothing(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as store:
        run = await asking(store)
        await WRITES["finish"](store.turns, run)
        await refuses(store, tmp_path, name, run)
