"""One damaged row costs what was in it, and nothing else: the check of the whole file does not see it."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.context import Context
from agent.journal import CallResult
from agent.message import Message, Text, ToolCall, ToolResult
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.turns import Turn, TurnState
from bot.store.store import Store
from channels.message import InboundKind
from tests.bot.store.opened import KEY, accept, accept_and_claim, answering, claim, message, opened, whole
from tests.stored import Stored

SPOILT = [b'{"role": "us', b"\xff\xfe{", b'{"role": "user", "parts": [{"type": "text", "text": 1}]}']


def spoil(home: Path, row: str, value: bytes) -> None:
    """Put bytes in place of a text, behind the back of the store; row: its column and which."""
    column, which = row.split(" WHERE ")
    table, column = column.split(".")
    Stored(home).spoil(f"UPDATE {table} SET {column}=CAST(? AS TEXT) WHERE {which}", value)


async def step(store: Store, claimed: Turn, message: Message) -> None:
    await store.turns.step(claimed.run, whole(claimed.run, *message.parts), PlanIn(claimed.conv_id), ())


@pytest.mark.parametrize("value", SPOILT)
async def test_a_damaged_line_is_passed_over(tmp_path: Path, value: bytes) -> None:
    async with opened(tmp_path) as store:
        await accept(store, "one")
        await step(store, await claim(store), Message("assistant", (Text("answer"),)))
        await accept(store, "two")
    spoil(tmp_path, "entry.body WHERE seq=1", value)
    async with opened(tmp_path) as store:
        assert store.salvage is None
        claimed = await claim(store)
        lines = await store.reads.context(claimed.transcript_id)
        assert [line.message.text for line in lines] == ["answer", "two"]
        assert [line.seq for line in lines] == [2, 3]


async def test_a_damaged_result_does_not_let_its_call_run_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        claimed = await accept_and_claim(store, "do both")
        calls = (ToolCall("a", "exec", "{}"), ToolCall("b", "exec", "{}"))
        await step(store, claimed, Message("assistant", calls))
        results = [CallResult(ToolResult(call.call_id, "exec", "did it"), "done") for call in calls]
        await store.turns.results(claimed.run, results, batch_done=True, events=())
    spoil(tmp_path, "entry.body WHERE seq=3", SPOILT[0])
    async with opened(tmp_path) as store:
        context = Context(await store.reads.context(claimed.transcript_id))
        assert context.open_calls() == ()
        results_shown = [part for part in context.messages()[-1].parts if isinstance(part, ToolResult)]
        assert [result.call_id for result in results_shown] == ["a", "b"]
        assert results_shown[0].is_error
        assert results_shown[1].text == "did it"


@pytest.mark.parametrize("value", SPOILT)
async def test_a_damaged_message_does_not_block_its_session(tmp_path: Path, value: bytes) -> None:
    async with opened(tmp_path) as store:
        seq = await accept(store, "one")
        asked = await accept(store, "over HTTP", turn_id="t1")
        await accept(store, "three")
    spoil(tmp_path, f"inbox.payload WHERE seq IN ({seq},{asked})", value)
    async with opened(tmp_path) as store:
        assert (await claim(store)).messages[0].text == "three"
        found = Stored(tmp_path).messages("state", "reason")
        assert found == [("dropped", "unreadable"), ("dropped", "unreadable"), ("taken", None)]
        view = await store.reads.turn("t1")
        assert view is not None
        assert view.state is TurnState.FAILED


async def test_a_turn_that_goes_on_is_ended_when_its_message_is_damaged(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        seq = await accept(store, "one")
        claimed = await claim(store)
        await store.turns.release(claimed.run)
        await accept(store, "two")
    spoil(tmp_path, f"inbox.payload WHERE seq={seq}", SPOILT[0])
    async with opened(tmp_path) as store:
        assert (await claim(store)).messages[0].text == "two"
        assert await store.turns.claim(KEY, "worker", answering) is None


async def test_a_damaged_steering_text_does_not_end_the_run(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await accept(store, "one", turn_id="t1")
        assert await store.inbox.steer("t1", message("more"))
    spoil(tmp_path, "inbox.payload WHERE state='steering'", SPOILT[0])
    async with opened(tmp_path) as store:
        assert [line.message.text for line in (await claim(store)).entries] == ["one"]


async def test_a_damaged_command_does_not_hide_the_others(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        seq = await accept(store, "/stop", InboundKind.COMMAND)
        other = await accept(store, "/new", InboundKind.COMMAND)
    spoil(tmp_path, f"inbox.payload WHERE seq={seq}", SPOILT[0])
    async with opened(tmp_path) as store:
        assert [found for found, _, _ in await store.inbox.open_commands()] == [other]


async def test_an_edit_replaces_a_damaged_message(tmp_path: Path) -> None:
    asked = message("one")
    async with opened(tmp_path) as store:
        await store.inbox.accept([AcceptedMessage(message=asked, session_key=KEY)])
    spoil(tmp_path, "inbox.payload WHERE seq=1", SPOILT[0])
    async with opened(tmp_path) as store:
        edit = replace(asked, kind=InboundKind.EDIT, event_key="e:1", text="another")
        await store.inbox.accept([AcceptedMessage(message=edit, session_key=KEY)])
        claimed = (await claim(store)).messages[0]
        assert (claimed.text, claimed.kind) == ("another", InboundKind.MESSAGE)
