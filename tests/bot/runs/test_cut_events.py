"""What is cut has an end among the events, stored with the repair and told where the service lives on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent.events import AgentEnd, MessageEnd, MessageStart, Notice, Outcome, ToolExecutionEnd, ToolExecutionUpdate
from bot.bus import Published, Subscription
from tests.scripted_model import ScriptedModel, Watch
from tests.service import Hark, ScriptedTool, running, session_of
from tests.standins.script import Break, Call, Hang, Say

FIRST = "A sentence that stands. " * 60


def answers(*texts: str) -> ScriptedModel:
    model = ScriptedModel(Watch())
    for text in texts:
        model.add(text)
    return model


async def forever(label: str) -> str:
    await asyncio.Event().wait()
    return label


def stuck(watch: Watch) -> list[ScriptedTool]:
    return [ScriptedTool("act", forever, watch)]


async def begin_call(hark: Hark) -> None:
    await hark.write("do it", answers=[Call("act", {"label": "a"}, id="one")])
    await hark.until(lambda: any(isinstance(event, ToolExecutionUpdate) for event in hark.events), "the call")


def check_cut_call(hark: Hark, *, told: bool) -> None:
    ids = [event["id"] for event in hark.stored.events() if "/one/" in event["id"]]
    assert [event_id.split("/", 1)[1] for event_id in ids] == ["1/one/start", "1/one/end"]
    ends = [event for event in hark.events if isinstance(event, ToolExecutionEnd)]
    assert [(end.id, end.state) for end in ends] == ([(ids[1], "cut")] if told else [])


async def test_a_stopped_call_has_an_end(tmp_path: Path) -> None:
    async with running(tmp_path, tools=stuck) as hark:
        await begin_call(hark)
        await hark.write("/stop")
        await hark.until(lambda: hark.ends(session_of("1")))
        check_cut_call(hark, told=True)
        assert isinstance(hark.events[-1], AgentEnd)


async def test_a_call_that_takes_too_long_has_an_end(tmp_path: Path) -> None:
    config = {"agent": {"timeout_seconds": 0.2}}
    async with running(tmp_path, tools=stuck, config=config) as hark:
        await begin_call(hark)
        await hark.until(lambda: hark.ends(session_of("1")))
        assert hark.ends(session_of("1"))[0].outcome is Outcome.TIMEOUT
        check_cut_call(hark, told=True)


async def test_a_drained_call_has_an_end(tmp_path: Path) -> None:
    async with running(tmp_path, tools=stuck) as hark:
        await begin_call(hark)
    check_cut_call(hark, told=True)


async def begin_answer(hark: Hark) -> None:
    await hark.write("write", answers=[(Say(f"{FIRST}\n\nand a rest that"), Hang())])
    await hark.until_texts(1)


def check_cut_answer(hark: Hark, *, told: bool) -> None:
    start, end = (event for event in hark.stored.events() if event.get("step") == 1)
    assert [event["id"].split("/", 1)[1] for event in (start, end)] == ["1/0", "1/1"]
    assert end["cut"]
    assert end["text"].strip()
    assert FIRST.startswith(end["text"].strip())
    ends = [event for event in hark.events if isinstance(event, MessageEnd)]
    assert [(event.id, event.cut) for event in ends] == ([(end["id"], True)] if told else [])


async def test_a_stopped_answer_has_start_and_end(hark: Hark) -> None:
    await begin_answer(hark)
    await hark.write("/stop")
    await hark.until(lambda: hark.ends(session_of("1")))
    check_cut_answer(hark, told=True)


async def test_a_drained_answer_has_start_and_end_and_the_rest_has_its_own(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await begin_answer(hark)
    check_cut_answer(hark, told=True)
    async with running(tmp_path, model=answers("The end.")) as hark:
        await hark.until(lambda: hark.ends(session_of("1")))
        rest = [event["id"] for event in hark.stored.events() if event.get("step") == 2]
    assert [event_id.split("/", 1)[1] for event_id in rest] == ["2/0.2.1", "2/1"]


def waiting(subscription: Subscription) -> Sequence[Published]:
    """What a reader could take without waiting."""
    batch = subscription.batch()
    try:
        batch.send(None)
    except StopIteration as found:
        told: Sequence[Published] = found.value
        return told
    finally:
        batch.close()
    return ()


async def test_progress_is_told_at_once(tmp_path: Path) -> None:
    seen: list[str] = []

    async def look(label: str) -> str:
        seen.extend("kept" if isinstance(told, range) else told.type for told in waiting(subscription))
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", look, watch)]) as hark:
        subscription = hark.service.parts.bus.subscribe()
        await hark.say("do it", answers=[Call("act", {"label": "a"}, id="one"), "Done."])
    assert seen[-1] == "tool_execution_update"


# An answer that breaks off ends with an event, so that whoever shows it live knows what of it counts.


async def test_a_broken_answer_ends_with_what_was_planned_of_it(hark: Hark) -> None:
    reply = await hark.say("write", answers=[(Say(f"{FIRST}\n\nand a rest that"), Break()), "The end."])
    kinds = (MessageStart, MessageEnd, Notice)
    assert [type(event) for event in reply.events if isinstance(event, kinds)] == [
        *(MessageStart, MessageEnd, Notice),
        *(MessageStart, MessageEnd),
    ]
    cut, whole = reply.of(MessageEnd)
    assert (cut.cut, cut.step, whole.cut, whole.step) == (True, 1, False, 2)
    assert cut.text.strip() == "\n".join(reply.texts[:-1]).strip()
    kept = [event["id"] for event in hark.stored.events() if event["type"] == "message_end"]
    assert kept == [cut.id, whole.id]


async def test_a_broken_answer_of_which_nothing_was_planned_never_existed(hark: Hark) -> None:
    reply = await hark.say("write", answers=[(Say("a rest that"), Break()), "The end."])
    assert [end.cut for end in reply.of(MessageEnd)] == [False]
