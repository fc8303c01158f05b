"""The loop of a run in the real service: events, tools, limits of steps, steering, what the model is shown."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agent.events import (
    AgentEnd,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Notice,
    Outcome,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from agent.loop import LIMIT_NOTE
from agent.message import ToolResult
from bot import wording
from bot.people.access import OWNER
from tests.scripted_model import USAGE, ScriptedModel, texts
from tests.service import Hark, ScriptedTool, running
from tests.standins.script import Call, Fail, Gate, Say, Stop, Think
from tests.watch import Watch

Tools = Callable[[Watch], list[ScriptedTool]]


def tool(name: str, run: Callable[[str], Awaitable[str]], *, parallel_safe: bool = False) -> Tools:
    """One tool that does what `run` does."""
    return lambda watch: [ScriptedTool(name, run, watch, parallel_safe=parallel_safe)]


async def answer_label(label: str) -> str:
    return f"did {label}"


def results(hark: Hark, number: int) -> list[ToolResult]:
    """All tool results in a request, numbered from 1."""
    found = [message.parts for message in hark.model.requests[number - 1].messages if message.role == "tool"]
    return [part for parts in found for part in parts if isinstance(part, ToolResult)]


def names(events: list[Any]) -> list[str]:
    """Types of events, updates of one kind in a row once."""
    found: list[str] = []
    for event in events:
        if not (isinstance(event, MessageUpdate | ToolExecutionUpdate) and found[-1:] == [event.type]):
            found.append(event.type)
    return found


async def test_a_plain_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        reply = await hark.say("hello", answers=[(Think("hm"), "Good day.")])
        turn = reply.end.run.turn_id
        stored = [(event["id"], event["type"]) for event in hark.stored.events()]
    assert reply.texts == ["Good day."]
    assert names(reply.events) == ["agent_start", "message_start", "message_update", "message_end", "agent_end"]
    kept = [event for event in reply.events if not isinstance(event, MessageUpdate)]
    assert [event.id for event in kept] == [f"{turn}/start", f"{turn}/1/0", f"{turn}/1/1", f"{turn}/end"]
    assert stored == [(event.id, event.type) for event in kept]
    assert {(event.run.run_id, event.run.session_key, event.run.attempt) for event in reply.events} == {
        (turn, "agent:main:telegram:direct:1", 1)
    }
    assert [(update.part, update.delta) for update in reply.of(MessageUpdate)] == [
        ("thinking", "hm"),
        ("text", "Good "),
        ("text", "day."),
    ]
    assert (reply.outcome, reply.end.usage, reply.end.error_kind) == (Outcome.COMPLETED, USAGE, None)


async def test_a_tool_call(tmp_path: Path) -> None:
    async with running(tmp_path, tools=tool("act", answer_label)) as hark:
        reply = await hark.say("do it", answers=[("Let me see.", Call("act", {"label": "a"}, id="one")), "Done."])
        turn = reply.end.run.turn_id
        stored = [event["id"] for event in hark.stored.events()]
    assert reply.texts == ["Let me see.", "Done."]
    assert names(reply.events) == [
        "agent_start",
        *("message_start", "message_update", "message_end"),
        *("tool_execution_start", "tool_execution_update", "tool_execution_end"),
        *("message_start", "message_update", "message_end"),
        "agent_end",
    ]
    ids = ["start", "1/0", "1/1", "1/one/start", "1/one/end", "2/0", "2/1", "end"]
    assert stored == [f"{turn}/{part}" for part in ids]
    (start,), (update,), (end,) = (
        reply.of(ToolExecutionStart),
        reply.of(ToolExecutionUpdate),
        reply.of(ToolExecutionEnd),
    )
    assert (start.name, start.arguments, update.text) == ("act", '{"label": "a"}', "doing a")
    assert (end.state, end.text) == ("done", "did a")
    assert results(hark, 2) == [ToolResult("one", "act", "did a")]
    assert reply.end.usage == USAGE + USAGE


async def test_calls_that_are_safe_in_parallel_give_results_in_call_order(tmp_path: Path) -> None:
    turns = {label: asyncio.Event() for label in "abcd"}
    turns["c"].set()

    async def one_after_the_other(label: str) -> str:
        """Ends only when the one asked for after it has ended."""
        await turns[label].wait()
        if label != "a":
            turns[chr(ord(label) - 1)].set()
        return f"did {label}"

    async with running(tmp_path, tools=tool("act", one_after_the_other, parallel_safe=True)) as hark:
        hark.model.add(*(Call("act", {"label": label}, id=label) for label in "abc"))
        reply = await hark.say("do it", answers=["Done."])
    assert [(result.call_id, result.text) for result in results(hark, 2)] == [(c, f"did {c}") for c in "abc"]
    assert [event.call_id for event in reply.of(ToolExecutionStart)] == ["a", "b", "c"]
    assert [event.call_id for event in reply.of(ToolExecutionEnd)] == ["a", "b", "c"]


async def test_only_neighbours_that_are_safe_run_side_by_side(tmp_path: Path) -> None:
    at_work: set[str] = set()
    seen: dict[str, set[str]] = {}

    async def note_company(label: str) -> str:
        at_work.add(label)
        for _ in range(20):
            await asyncio.sleep(0)
        seen[label] = set(at_work)
        for _ in range(20):
            await asyncio.sleep(0)
        at_work.discard(label)
        return label

    def both(watch: Watch) -> list[ScriptedTool]:
        return [
            ScriptedTool("safe", note_company, watch, parallel_safe=True),
            ScriptedTool("alone", note_company, watch),
        ]

    async with running(tmp_path, tools=both) as hark:
        asked = (("safe", "a"), ("safe", "b"), ("alone", "c"), ("alone", "d"), ("safe", "e"), ("nobody", "f"))
        hark.model.add(*(Call(name, {"label": label}, id=label) for name, label in asked))
        await hark.say("do it", answers=["Done."])
    assert seen == {"a": {"a", "b"}, "b": {"a", "b"}, "c": {"c"}, "d": {"d"}, "e": {"e"}}
    assert [result.call_id for result in results(hark, 2)] == list("abcdef")


async def test_a_call_is_stored_as_running_before_it_runs_and_never_both(tmp_path: Path) -> None:
    states: list[list[tuple[str, str]]] = []

    async def look(label: str) -> str:
        states.append(hark.stored.calls("call_id", "state"))
        return label

    async with running(tmp_path, tools=tool("look", look)) as hark:
        await hark.say("do it", answers=[(Call("look", id="a"), Call("look", id="b")), "Done."])
        states.append(hark.stored.calls("call_id", "state"))
    assert states == [
        [("a", "running"), ("b", "asked")],
        [("a", "done"), ("b", "running")],
        [("a", "done"), ("b", "done")],
    ]


async def test_what_goes_wrong_with_a_call_is_told_to_the_model(tmp_path: Path) -> None:
    async def fail(label: str) -> str:
        raise OSError("the disk is on fire")

    async with running(tmp_path, tools=tool("act", fail)) as hark:
        hark.model.add(
            Call("act", '{"label": ', id="cut"),
            Call("act", {"lable": "x"}, id="typo"),
            Call("act", "[1]", id="list"),
            Call("atc", {}, id="unknown"),
            Call("act", {"label": "x"}, id="raises"),
        )
        hark.model.add("I see.")
        reply = await hark.say("do it")
    by_id = {result.call_id: result for result in results(hark, 2)}
    assert all(result.is_error for result in by_id.values())
    assert "not valid JSON" in by_id["cut"].text
    assert "label" in by_id["typo"].text
    assert "lable" in by_id["typo"].text
    assert "one JSON object" in by_id["list"].text
    assert by_id["unknown"].text.startswith("There is no tool named 'atc'. Tools: act, ask_person, ")
    assert by_id["raises"].text == "OSError: the disk is on fire"
    assert reply.texts == ["I see."]
    assert reply.outcome is Outcome.COMPLETED


async def test_a_tool_that_cancels_itself_is_an_error_and_not_a_stop(tmp_path: Path) -> None:
    async def give_up(label: str) -> str:
        raise asyncio.CancelledError

    async with running(tmp_path, tools=tool("act", give_up)) as hark:
        reply = await hark.say("do it", answers=[Call("act", id="a"), "I see."])
        assert reply.texts == ["I see."]
        assert reply.end.run.attempt == 1
    (result,) = results(hark, 2)
    assert result.is_error


async def test_call_ids_are_unique_whatever_the_model_writes(tmp_path: Path) -> None:
    async with running(tmp_path, tools=tool("act", answer_label)) as hark:
        hark.model.add(Call("act", {"label": "a"}, id="x"), Call("act", {"label": "b"}, id="x"))
        hark.model.add(Call("act", {"label": "c"}, id="x"), Call("act", {"label": "d"}, id=""))
        hark.model.add("Done.")
        await hark.say("do it")
        await hark.say("once more", answers=[Call("act", {"label": "e"}, id="x"), "Done again."])
    found = results(hark, 5)
    assert [result.text for result in found] == ["did a", "did b", "did c", "did d", "did e"]
    assert len({result.call_id for result in found}) == 5
    assert found[0].call_id == "x"


async def test_call_ids_are_unique_when_the_first_has_left_the_context(tmp_path: Path) -> None:
    async def long(label: str) -> str:
        return label * 4000

    model = ScriptedModel(context_window=6000, max_output=100)
    async with running(tmp_path, model=model, tools=tool("act", long)) as hark:
        for label in "abcdefgh":
            hark.model.add(Call("act", {"label": label}, id="x"))
        hark.model.whenever("Write a summary", "The letters were acted upon.")
        reply = await hark.say("do it", answers=["Done."])
        assert reply.texts == ["Done."]
    assert len(results(hark, 9)) < 8


async def test_the_limit_of_steps_ends_with_words(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_steps": 2}}, tools=tool("act", answer_label)) as hark:
        hark.model.add(Call("act", {"label": "a"}))
        hark.model.add("On it.", Call("act", {"label": "b"}))
        hark.model.add("Two things are done, one is open.", Call("act", {"label": "c"}))
        reply = await hark.say("do three things")
        assert reply.texts == ["On it.", "Two things are done, one is open."]
        assert reply.outcome is Outcome.LIMIT
        assert [event.call_id for event in reply.of(ToolExecutionStart)] == ["call-1", "call-2"]
        last = hark.model.requests[2]
        assert [request.allow_calls for request in hark.model.requests] == [True, True, False]
        assert last.tools == hark.model.requests[0].tools
        assert texts(last, "user")[1:] == [LIMIT_NOTE]

        after = await hark.say("and now?", answers=["Hello again."])
        assert (after.texts, after.outcome) == (["Hello again."], Outcome.COMPLETED)
        assert hark.model.requests[3].allow_calls


async def test_an_answer_at_the_limit_that_needs_no_call_is_complete(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_steps": 1}}) as hark:
        assert (await hark.say("hello")).outcome is Outcome.COMPLETED


async def test_an_empty_answer_is_asked_for_again_and_then_said(hark: Hark) -> None:
    reply = await hark.say("hello", answers=[Say(""), "Here I am."])
    assert (reply.texts, [notice.kind for notice in reply.of(Notice)]) == (["Here I am."], ["retry"])

    reply = await hark.say("hello?", answers=[Think("nothing comes to mind"), Say("  \n")])
    assert reply.texts == [wording.failure("unknown", reply.end.error_message)]
    assert (reply.outcome, reply.end.error_kind) == (Outcome.FAILED, "unknown")

    assert (await hark.say("and now?")).outcome is Outcome.COMPLETED


async def test_an_empty_ending_after_words_is_fine(tmp_path: Path) -> None:
    async with running(tmp_path, tools=tool("act", answer_label)) as hark:
        reply = await hark.say("do it", answers=[("I do it.", Call("act")), Say("")])
        assert (reply.texts, reply.outcome) == (["I do it."], Outcome.COMPLETED)
        assert (await hark.say("thanks", answers=["Yes?"])).texts == ["Yes?"]


async def test_an_empty_ending_without_words_is_not_an_answer(tmp_path: Path) -> None:
    """Also not when the run was resumed, so that the step count alone says nothing about words."""
    block = asyncio.Event()

    async def wait(label: str) -> str:
        await block.wait()
        return label

    async with running(tmp_path, tools=tool("act", wait)) as hark:
        await hark.write("do it", answers=[Call("act")])
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
    async with running(tmp_path, model=_silent_twice(), tools=tool("act", wait)) as hark:
        await hark.until_texts(1)
        assert hark.channel.texts()[0].startswith(wording.failure("unknown"))


def _silent_twice() -> ScriptedModel:
    model = ScriptedModel()
    model.add(Say(""))
    model.add(Say(""))
    return model


async def test_a_refusal_is_told(hark: Hark) -> None:
    reply = await hark.say("something bad", answers=[Stop("refusal")])
    assert reply.texts == [wording.failure("content_filter", reply.end.error_message)]
    assert (reply.outcome, reply.end.error_kind) == (Outcome.FAILED, "content_filter")
    reply = await hark.say("something bad", answers=[("I would rather not.", Stop("refusal"))])
    assert reply.texts == ["I would rather not.", wording.ENDED_EARLY["refusal"]]


async def test_half_a_surrogate_pair_in_what_names_a_call(tmp_path: Path) -> None:
    async with running(tmp_path, tools=tool("act", answer_label)) as hark:
        hark.model.add(Call("act", {"label": "a"}, id="one\ud800"))
        hark.model.add("Done.")
        assert (await hark.say("do it")).texts == ["Done."]
        assert hark.stored.calls("call_id") == [("one\ufffd",)]


async def test_steering_stands_behind_the_results_and_skips_calls_that_have_not_begun(tmp_path: Path) -> None:
    block = asyncio.Event()

    async def wait(label: str) -> str:
        if label == "a":
            await block.wait()
        return f"did {label}"

    async with running(tmp_path, tools=tool("act", wait)) as hark:
        hark.model.add(Call("act", {"label": "a"}), Call("act", {"label": "b"}))
        hark.model.add("Blue it is.")
        await hark.write("paint it red")
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
        (turn,) = [event.run.turn_id for event in hark.events if isinstance(event, AgentStart)]
        assert await hark.service.parts.api.steer(turn, "no, blue", OWNER)
        block.set()
        assert await hark.until_texts(1) == ["Blue it is."]
        await hark.until(lambda: hark.ends("agent:main:telegram:direct:1"))
        assert not await hark.service.parts.api.steer(turn, "too late", OWNER)
    last = hark.model.requests[1]
    assert [message.role for message in last.messages] == ["user", "assistant", "tool", "user"]
    did, skipped = results(hark, 2)
    assert (did.text, skipped.is_error, skipped.text.partition(":")[0]) == ("did a", True, "Not executed")
    assert hark.stored.calls("state") == [("done",), ("denied",)]
    assert last.messages[-1].text.endswith("no, blue")
    assert len(hark.model.requests) == 2


async def test_steering_during_the_last_answer_is_answered_in_the_same_turn(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        await hark.write("paint it red", answers=[Say("Red it is.", gate=gate), "Blue it is."])
        await gate.reached()
        (turn,) = [event.run.turn_id for event in hark.events if isinstance(event, AgentStart)]
        assert await hark.service.parts.api.steer(turn, "no, blue", OWNER)
        gate.open()
        assert await hark.until_texts(2) == ["Red it is.", "Blue it is."]
        await hark.until(lambda: hark.ends("agent:main:telegram:direct:1"))
    assert [message.role for message in hark.model.requests[1].messages] == ["user", "assistant", "user"]
    assert len([event for event in hark.events if isinstance(event, AgentEnd)]) == 1


async def test_steering_a_turn_that_waits_is_in_front_of_its_first_call(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        await hark.write("one", answers=[Say("First.", gate=gate), "Both."])
        await gate.reached()
        turn = await submitted(hark, "two", session="agent:main:telegram:direct:1")
        assert await hark.service.parts.api.steer(turn, "and three", OWNER)
        gate.open()
        view = await hark.service.parts.api.wait(turn, 5)
        assert view is not None
        assert view.text == "Both."
    assert [message.text.rpartition("\n")[2] for message in hark.model.requests[1].messages] == [
        "one",
        "First.",
        "two",
        "and three",
    ]
    assert len(hark.model.requests) == 2


async def submitted(hark: Hark, text: str, session: str = "agent:main:http:direct:x", key: str | None = None) -> str:
    """A turn asked for over the interface for programs; returns its id."""
    from channels.message import ChatKind, Place

    place = Place(channel="http", account="", chat="x", kind=ChatKind.API)
    return (await hark.service.parts.api.submit(text, session, place, "program", key)).turn_id


async def test_usage_counts_every_answer_of_the_turn(tmp_path: Path) -> None:
    async with running(tmp_path, tools=tool("act", answer_label)) as hark:
        await hark.write("do it", answers=[Say(""), Call("act"), Fail(529), "Done."])
        await hark.time.until_pause(2)
        hark.time.advance(2)
        await hark.until(lambda: hark.ends("agent:main:telegram:direct:1"))
        (end,) = hark.ends("agent:main:telegram:direct:1")
    assert end.usage == USAGE + USAGE + USAGE
    assert [event.step for event in hark.events if isinstance(event, MessageStart)] == [1, 1, 2, 2]
    assert [event.step for event in hark.events if isinstance(event, MessageEnd)] == [1, 2]
