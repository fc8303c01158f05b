"""The life of a turn."""

import pytest

from agent.events import Outcome, ToolExecutionStart
from agent.journal import CallResult
from agent.message import Message, Text, ToolResult, Usage
from agent.tools.base import Ask
from bot.persistence.approvals import Request
from bot.persistence.deliveries import PlanIn
from bot.persistence.errors import StaleRun
from bot.persistence.turns import TurnState
from channels.message import InboundKind
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.persistence.contract import Opens, accept, answer, claim
from tests.bot.store.opened import KEY, answering


async def test_a_session_has_one_run_at_a_time_in_order(opens: Opens) -> None:
    async with opens() as store:
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


async def test_what_nobody_wrote_is_claimed_in_the_background(opens: Opens) -> None:
    async with opens() as store:
        await accept(store, "wake", kind=InboundKind.WAKE)
        assert await store.inbox.waiting_sessions(9) == [(KEY, True, "telegram:1")]
        assert await store.turns.claim(KEY, "one", answering) is None
        assert await store.turns.claim(KEY, "one", answering, background=True) is not None


@pytest.mark.parametrize("gone", ["given back", "stopped"])
async def test_a_run_that_lost_its_turn_writes_nothing(opens: Opens, gone: str) -> None:
    async with opens() as store:
        await accept(store, "one")
        turn = await claim(store)
        if gone == "stopped":
            assert await store.stops.abort(turn.turn_id)
            assert not await store.stops.abort(turn.turn_id)
        else:
            await store.turns.release(turn.run)
            assert (await claim(store)).run.attempt == turn.run.attempt + 1
        blocks = [Planned(source=sentence("b"), body="b", nonce=1)]
        start = ToolExecutionStart(run=turn.run, at=0, step=1, call_id="c1", name="act", arguments="{}")
        result = CallResult(ToolResult("c1", "act", "done"), "done")
        here, ask = PlanIn(turn.conv_id), Ask(digest="digest", subject="May it?")
        request = Request(approval_id="a1", approvers=(), expires=60_000)
        for write in (
            lambda: answer(store, turn),
            lambda: store.turns.plan(turn.run, here, blocks),
            lambda: store.turns.note(turn.run, Message("user", (Text("note"),))),
            lambda: store.turns.start_calls(turn.run, ["c1"], [start]),
            lambda: store.turns.process_started(turn.run, "c1", 1, "then"),
            lambda: store.turns.results(turn.run, [result], batch_done=True, events=()),
            lambda: store.turns.cut(turn.run, lambda cut: (), heard=None),
            lambda: store.approvals.park(turn.run, "c1", ask, request, here),
            lambda: store.turns.finish(
                turn.run, Outcome.FAILED, error_kind=None, error_message=None, where=here, blocks=blocks
            ),
        ):
            with pytest.raises(StaleRun):
                await write()
        await store.turns.release(turn.run)
        assert await store.deliveries.next(turn.conv_id) is None


async def test_what_was_planned_of_a_cut_answer_is_kept_as_said(opens: Opens) -> None:
    async with opens() as store:
        await accept(store, "one")
        turn = await claim(store)
        block = Planned(source=sentence(f"turn:{turn.turn_id}:s1:b0"), body="half", nonce=1, said="half", step=1)
        await store.turns.plan(turn.run, PlanIn(turn.conv_id), [block])
        cut = await store.turns.cut(turn.run, lambda cut: (), heard=None)
        assert cut.step == 1
        assert [line.kind for line in cut.entries] == ["assistant_cut", "note"]
        assert cut.entries[0].message.text == "half"
