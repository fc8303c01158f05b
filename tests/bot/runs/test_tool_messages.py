"""Messages that a tool sends: rows of the ledger, which know more than the tool does when that is cut off."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.context import INTERRUPTED
from agent.message import ToolCall, ToolResult
from bot.persistence.deliveries import PlanIn
from bot.store.store import Store
from channels.outgoing import Action, Planned, Refused, SendResult, Sent
from channels.sources import tool_message
from tests.asking import SendingTool
from tests.bot.store.opened import accept_and_claim, opened
from tests.bot.store.test_epochs import Time, answer
from tests.service import Hark, running
from tests.standins.script import Call
from tests.stored import Like, Stored


async def test_a_message_of_a_tool_is_a_delivery_in_its_order(tmp_path: Path) -> None:
    def settled() -> list[str]:
        """The turns of what was settled; what refusals say to an owner belongs to none."""
        return [turn for (turn,) in hark.stored.deliveries("turn_id", state={"sent", "failed"}) if turn]

    async def then() -> None:
        await hark.until(lambda: len(settled()) == 3, "the sends")

    tool = SendingTool(lambda: hark.service, then)

    async def refuses(outgoing: object) -> SendResult:
        return Refused("no") if "two" in str(outgoing) else Sent("7")

    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        hark.channel.on_send = refuses  # type: ignore[assignment]
        await hark.say("send them", answers=[("First.", Call("send", {"label": "one two"})), "Done."])
        assert hark.channel.texts() == ["First.", "one", "Done."]
        assert tool.fate == "not sent"
        ((turn, call),) = hark.stored.calls("turn_id", "call_id")
        key = tool_message(turn, call).key
        assert hark.stored.deliveries("source", "piece")[1:3] == [(key, 0), (key, 1)]


async def test_a_run_that_takes_too_long_tells_what_its_call_has_sent(tmp_path: Path) -> None:
    async def forever() -> None:
        await hark.delivered()
        await asyncio.Event().wait()

    async with running(
        tmp_path,
        config={"agent": {"timeout_seconds": 0.2}},
        tools=lambda watch: [SendingTool(lambda: hark.service, forever)],
    ) as hark:
        await hark.say("send it", answers=[Call("send", {"label": "hello"})])
        await hark.say("was it sent?", answers=["yes"])
        told = [part for message in hark.model.requests[-1].messages for part in message.parts]
        (result,) = [part for part in told if isinstance(part, ToolResult)]
        assert result.text.endswith("Its message was sent.")
        assert not result.is_error
        assert hark.channel.texts().count("hello") == 1


async def test_what_is_not_sent_when_a_run_is_stopped(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [SendingTool(lambda: hark.service, asyncio.Event().wait)]) as hark:
        hark.channel.wait = 100.0  # its rate limit
        await hark.write("send it", answers=[Call("send", {"label": "hello"})])
        await hark.until(lambda: hark.stored.deliveries(source=Like("tool:%")), "the plan")
        await hark.write("/stop")
        await hark.until(lambda: hark.stored.turns(state="stopped"), "the stop")
        ((told,),) = hark.stored.results().values()
        assert told.endswith("Its message was not sent (stop).")
        hark.channel.wait = 0.0
        hark.time.advance(100)  # or the end would wait for it


async def cut_call(
    home: Path, store: Store, call_id: str, *states: str, action: Action = Action.SEND
) -> tuple[str, bool]:
    """A process dies while a call runs that has sent pieces of these states; what the model is told."""
    turn = await accept_and_claim(store)
    calls = [ToolCall(one, "send", "{}") for one in ("c", "c:1")]
    await answer(store, turn, *calls)
    await store.turns.start_calls(turn.run, ["c", "c:1"], ())
    for number, state in enumerate(states):
        source = tool_message(turn.turn_id, call_id)
        planned = Planned(source=source, piece=number, body="x", nonce=1, action=action)
        await store.turns.plan(turn.run, PlanIn(turn.conv_id), [planned])
        Stored(home).spoil("UPDATE delivery SET state=? WHERE source=? AND piece=?", state, source.key, number)
    await store.recovery.recover(turn.turn_id, "next", ())
    entries = await store.reads.context(turn.transcript_id)
    found = {p.call_id: p for entry in entries for p in entry.message.parts if isinstance(p, ToolResult)}
    other = found["c:1" if call_id == "c" else "c"]
    assert (other.text, other.is_error) == (INTERRUPTED, True), "the other call has sent nothing"
    result = found[call_id]
    return result.text.partition("Its ")[2], result.is_error


UNKNOWN = "may have been sent, which nobody knows"


@pytest.mark.parametrize("call_id", ["c", "c:1"])
@pytest.mark.parametrize(
    ("states", "told", "is_error"),
    [
        (["sent"], "message was sent.", False),
        (["planned"], "message will be sent.", False),
        (["sending"], f"message {UNKNOWN}.", True),
        (["unknown"], f"message {UNKNOWN}.", True),
        (["uncertain"], f"message {UNKNOWN}.", True),
        (["failed"], "message was not sent.", True),
        (["sent", "expired"], "message was not sent.", True),
        (["sent", "planned"], "message will be sent.", False),
    ],
)
async def test_a_cut_call_is_told_what_became_of_its_messages(
    tmp_path: Path, call_id: str, states: Sequence[str], told: str, is_error: bool
) -> None:
    async with opened(tmp_path, Time().clock()) as store:
        assert await cut_call(tmp_path, store, call_id, *states) == (told, is_error)


@pytest.mark.parametrize(
    ("action", "state", "told", "is_error"),
    [
        (Action.EDIT, "sent", "edit was made.", False),
        (Action.DELETE, "sending", "deletion will be made.", False),
        (Action.REACT, "failed", "reaction was not made.", True),
    ],
)
async def test_a_cut_call_is_told_what_became_of_what_it_changed(
    tmp_path: Path, action: Action, state: str, told: str, is_error: bool
) -> None:
    async with opened(tmp_path, Time().clock()) as store:
        assert await cut_call(tmp_path, store, "c", state, action=action) == (told, is_error)


# A task list is one message of its turn, which is edited in place.


def tasks(*states: str) -> dict[str, object]:
    return {"tasks": [{"text": f"step {n}", "state": state} for n, state in enumerate(states, 1)]}


async def test_it_is_sent_once_and_then_edited(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        for call in (tasks("doing", "open"), tasks("done", "doing")):
            hark.model.add(Call("task_list", call))
        await hark.write("do both", answers=["All is done."])
        await hark.until(lambda: hark.channel.texts()[-1:] == ["All is done."], "the answer")
        await hark.delivered()
    sent = [(one.action, one.target, one.silent, one.body) for one in hark.channel.sent]
    assert sent == [
        (Action.SEND, "", True, "- ▶ **step 1**\n- ☐ step 2"),
        (Action.EDIT, "1", True, "- ☑ step 1\n- ▶ **step 2**"),
        (Action.SEND, "", False, "All is done."),
    ]


async def test_each_turn_has_its_own(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        for number in (1, 2):
            await hark.write(f"do {number}", answers=[Call("task_list", tasks("doing")), f"Answer {number}."])
            await hark.until(lambda n=number: hark.channel.texts()[-1:] == [f"Answer {n}."], "the answer")  # type: ignore[misc]
    assert [one.action for one in hark.channel.sent] == [Action.SEND] * 4


async def test_it_is_one_message(hark: Hark) -> None:
    hark.channel.rendered = lambda text: (text[:20], text[20:]) if "step" in text else (text,)
    await hark.write("do both", answers=[Call("task_list", tasks("doing", "open")), "Well."])
    await hark.until(lambda: hark.channel.texts() == ["Well."], "the answer")
