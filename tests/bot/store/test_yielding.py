"""A beat or job gives its session to a person, and goes on: what the store makes of it, one transaction at a time."""

from pathlib import Path

import pytest

from agent.context import INTERRUPTED, Context
from agent.journal import CallResult
from agent.message import Text, ToolCall, ToolResult
from agent.tools.base import Ask
from bot.persistence.approvals import Choice, Request
from bot.persistence.deliveries import PlanIn
from bot.persistence.errors import StaleRun
from bot.persistence.inbox import AcceptedMessage, Fresh
from bot.persistence.turns import Turn
from bot.store.store import Store
from channels.message import InboundKind
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, accept_and_claim, answering, claim, message, whole
from tests.stored import Stored

BEAT, JOB = InboundKind.WAKE, InboundKind.JOB
CALLS = (ToolCall("c1", "act", "{}"), ToolCall("c2", "act", "{}"))


async def behind(store: Store, worker: str = "worker") -> Turn | None:
    """Claim what the background has to do."""
    return await store.turns.claim(KEY, worker, answering, background=True)


async def begun(store: Store, kind: InboundKind = BEAT, *calls: ToolCall) -> Turn:
    """A beat or job that runs behind an exchange, with calls of which the first runs."""
    turn = await accept_and_claim(store)
    await store.turns.step(turn.run, whole(turn.run, Text("hi")), PlanIn(turn.conv_id), ())
    await accept(store, "look", kind)
    turn = await behind(store)  # type: ignore[assignment]
    if calls:
        await store.turns.step(turn.run, whole(turn.run, *calls), PlanIn(turn.conv_id), ())
        await store.turns.start_calls(turn.run, [calls[0].call_id], ())
    return turn


async def end(store: Store, turn: Turn) -> None:
    await store.turns.step(turn.run, whole(turn.run, Text("fine")), PlanIn(turn.conv_id), ())


async def lines(store: Store, turn: Turn) -> list[str]:
    """What the model reads in a turn, which every provider takes."""
    messages = Context(await store.reads.context(turn.transcript_id)).messages()
    return [
        one.text or " ".join(part.text for part in one.parts if isinstance(part, ToolResult)) or "calls"
        for one in messages
    ]


def result(text: str = "done") -> CallResult:
    return CallResult(ToolResult("c1", "act", text), "done")


@pytest.mark.parametrize("kind", [BEAT, JOB])
async def test_what_was_written_comes_first(kind: InboundKind, store: Store) -> None:
    beat = await begun(store, kind)
    assert await store.turns.claim(KEY, "worker", answering) is None  # nobody has written
    turn = await accept_and_claim(store, "question")
    assert (turn.messages[0].text, turn.behind, turn.ends) == ("question", True, beat.turn_id)
    assert await lines(store, turn) == ["hello", "hi", "question"]
    with pytest.raises(StaleRun):
        await end(store, beat)
    assert await behind(store) is None
    await end(store, turn)
    again = await behind(store)
    assert again is not None
    assert (again.turn_id, again.run.attempt, again.entries) == (beat.turn_id, 2, ())
    assert await lines(store, again) == ["hello", "hi", "question", "fine", "look"]


async def test_no_call_begins_and_the_result_of_one_that_runs_is_kept(tmp_path: Path, store: Store) -> None:
    beat = await begun(store, BEAT, *CALLS)
    turn = await accept_and_claim(store, "question")
    assert turn.ends == ""  # its run has a call to finish
    with pytest.raises(StaleRun):
        await store.turns.start_calls(beat.run, ["c2"], ())
    await store.turns.process_started(beat.run, "c1", 4242, "then")
    kept = await store.turns.results(beat.run, [result()], batch_done=False, events=())
    assert kept.end is not None
    assert await lines(store, turn) == ["hello", "hi", "question"]
    assert Stored(tmp_path).entries("hidden", turn_id=beat.turn_id) == [(1,)] * 3
    with pytest.raises(StaleRun):
        await store.turns.results(beat.run, [result("twice")], batch_done=False, events=())
    await store.turns.release(beat.run)
    await end(store, turn)
    again = await behind(store)
    assert again is not None
    context = Context(await store.reads.context(again.transcript_id))
    assert [call.call_id for call in context.open_calls()] == ["c2"]
    assert (await lines(store, again))[-2:] == ["calls", f"done {INTERRUPTED}"]
    assert Stored(tmp_path).calls("state") == [("done",), ("asked",)]


async def test_it_waits_for_its_call_as_long_as_its_worker_lives(tmp_path: Path, store: Store) -> None:
    await begun(store, BEAT, *CALLS)
    await accept(store, "question")
    await end(store, await claim(store))
    await accept(store, "another beat", BEAT)
    assert await behind(store) is None
    again = await behind(store, "the next worker")
    assert again is not None
    assert (await lines(store, again))[-1] == f"{INTERRUPTED} {INTERRUPTED}"
    assert Stored(tmp_path).calls("state") == [("cut",), ("asked",)]


async def test_a_run_that_ends_without_the_result_closes_its_call(tmp_path: Path, store: Store) -> None:
    beat = await begun(store, BEAT, *CALLS)
    turn = await accept_and_claim(store, "question")
    await store.turns.release(beat.run)
    assert Stored(tmp_path).calls("state") == [("cut",), ("asked",)]
    assert await lines(store, turn) == ["hello", "hi", "question"]
    await end(store, turn)
    assert await behind(store) is not None


async def test_every_message_goes_before_it(store: Store) -> None:
    """Also one that is not ready yet, and what people wrote before it was due."""
    await begun(store)
    await accept(store, "first")
    await accept(store, "second", delay=60_000)
    await end(store, await claim(store))
    assert await behind(store) is None
    assert await store.turns.claim(KEY, "worker", answering) is None
    await end(store, await store.turns.claim(KEY, "worker", answering, until=2**62))  # type: ignore[arg-type]
    assert await behind(store) is not None


async def test_what_is_not_ready_cuts_nothing(store: Store) -> None:
    beat = await begun(store)
    await accept(store, "later", delay=60_000)
    assert await store.turns.claim(KEY, "worker", answering) is None
    await end(store, beat)


async def test_a_turn_of_a_person_gives_way_to_nobody(store: Store) -> None:
    await accept_and_claim(store)
    await accept(store, "question")
    await accept(store, "look", BEAT)
    assert await store.turns.claim(KEY, "worker", answering) is None
    assert await behind(store) is None


async def test_a_turn_that_was_cut_goes_before_it(store: Store) -> None:
    await begun(store)
    turn = await accept_and_claim(store, "question")
    await store.turns.release(turn.run)
    again = await behind(store)
    assert again is not None
    assert again.turn_id == turn.turn_id


async def test_it_waits_for_its_decision_without_its_session(store: Store) -> None:
    beat = await begun(store)
    await store.turns.step(beat.run, whole(beat.run, CALLS[0]), PlanIn(beat.conv_id), ())
    ask = Ask(digest="digest", subject="May it?")
    blocks = [Planned(source=sentence("ask:a1"), body=ask.subject, nonce=1)]
    request = Request(approval_id="a1", approvers=("telegram:1",), expires=60_000, blocks=blocks)
    await store.approvals.park(beat.run, "c1", ask, request, PlanIn(beat.conv_id))
    (answer,) = await store.inbox.accept([AcceptedMessage(message=message("question"), session_key=KEY)])
    assert isinstance(answer, Fresh)
    assert answer.waits_for is None
    turn = await claim(store)
    assert await lines(store, turn) == ["hello", "hi", "question"]
    await end(store, turn)
    assert await behind(store) is None
    assert await store.approvals.decide("a1", Choice(verdict="once"), "telegram:1") == (KEY, True)
    again = await behind(store)
    assert again is not None
    assert again.decisions["c1"].state == "once"
    assert (await lines(store, again))[:5] == ["hello", "hi", "question", "fine", "look"]


async def test_one_that_waits_to_go_on_is_not_read_either(store: Store) -> None:
    beat = await begun(store, BEAT, *CALLS)
    await store.turns.release(beat.run)  # as a drain does
    turn = await accept_and_claim(store, "question")
    assert await lines(store, turn) == ["hello", "hi", "question"]
    await end(store, turn)
    assert await behind(store) is not None


async def test_what_is_stopped_meanwhile_stands_whole_in_the_transcript(tmp_path: Path, store: Store) -> None:
    beat = await begun(store, BEAT, *CALLS)
    turn = await accept_and_claim(store, "question")
    await end(store, turn)
    assert await store.stops.abort(beat.turn_id)
    found = Stored(tmp_path).entries("hidden", "kind", turn_id=beat.turn_id)
    assert [kind for _, kind in found] == ["user", "assistant", "tool_result", "tool_result", "note"]
    assert len({hidden for hidden, _ in found}) == 1
    with pytest.raises(StaleRun):
        await store.turns.results(beat.run, [result()], batch_done=False, events=())
