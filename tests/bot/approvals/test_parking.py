"""A turn that waits for a person: it holds nothing meanwhile, and goes on with exactly one decision."""

import asyncio
from pathlib import Path

import pytest

from agent.events import AgentEnd, AgentStart, Outcome, ToolExecutionEnd, ToolExecutionStart
from agent.message import ToolResult
from bot.people.access import OWNER
from bot.persistence.approvals import Choice
from bot.persistence.inbox import AcceptedMessage
from channels.message import InboundKind
from tests.asking import ASKED, OTHERWISE, AskingTool, approval, said
from tests.bot.store.opened import answering
from tests.scripted_model import texts
from tests.service import Hark, ScriptedTool, running, session_of, starts
from tests.standins.script import Call
from tests.watch import LoopTime, lanes_idle

KEY = session_of("1")


def results(hark: Hark) -> list[str]:
    """What the model was told of the calls, in the newest request."""
    last = hark.model.requests[-1].messages[-1]
    return [part.text for part in last.parts if isinstance(part, ToolResult)]


async def over(hark: Hark) -> AgentEnd:
    """The end of the one turn there is, everything delivered."""
    await hark.until(lambda: [end for end in hark.ends(KEY) if end.is_last], "the end of the turn")
    await hark.delivered()
    return hark.ends(KEY)[-1]


async def told(hark: Hark) -> None:
    """Every request that was settled shows it, everything delivered."""
    await hark.until(lambda: all(is_told for _, is_told in settled(hark)), "what requests show")
    await hark.delivered()


def settled(hark: Hark) -> list[tuple[str, int]]:
    """State of each request that is not open, and whether its messages are made to show it."""
    return [(state, is_told) for state, is_told in hark.stored.approvals("state", "told") if state != "open"]


async def test_a_call_that_is_allowed_runs_once(tmp_path: Path) -> None:
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "done"])
        ident = await approval(hark)
        await hark.delivered()
        assert said(hark) == [ASKED]
        assert hark.stored.deliveries("source", "state") == [(f"ask:{ident}", "sent")]
        assert (tool.begun, hark.stored.calls("state")) == ([], [("waiting",)])
        assert hark.stored.messages("state") == [("taken",)]
        assert hark.service.parts.lanes.active == 0

        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        end = await over(hark)
        assert (tool.begun, results(hark), said(hark)) == (["it"], ["did it"], [ASKED, "done"])
        assert end.outcome is Outcome.COMPLETED
        assert [(state, used is not None) for state, used in hark.stored.calls("state", "used_at")] == [("done", True)]
        assert hark.stored.approvals("state", "decided_by") == [("once", "telegram:1")]
        assert hark.stored.turns("state", "outcome") == [("done", "completed")]


async def test_parking_is_told_and_is_no_end(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "done"])
        await hark.service.parts.requests.decide(await approval(hark), Choice(verdict="once"), "telegram:1")
        await over(hark)
        run = hark.events[0].run.run_id
        told = [event for event in hark.events if isinstance(event, AgentStart | AgentEnd)]
        assert [event.id for event in told] == [f"{run}/start", f"{run}/end.1", f"{run}/start.2", f"{run}/end"]
        assert [end.outcome for end in hark.ends(KEY)] == [Outcome.PARKED, Outcome.COMPLETED]
        stored = [event["id"] for event in hark.stored.events() if event["type"] in ("agent_start", "agent_end")]
        assert stored == [event.id for event in told]


@pytest.mark.parametrize(
    ("state", "reason", "told"),
    [
        ("denied", "not on a Friday", "A person denied this call; it was not executed. They said: not on a Friday"),
        ("denied", "", "A person denied this call; it was not executed."),
        ("expired", "", OTHERWISE),
        ("expired", "The house was empty.", "The house was empty."),
    ],
)
async def test_a_call_that_is_not_allowed(tmp_path: Path, state: str, reason: str, told: str) -> None:
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "so be it"])
        ident = await approval(hark)
        assert await hark.service.parts.requests.decide(ident, Choice(verdict=state, reason=reason), "telegram:1")  # type: ignore[arg-type]
        await over(hark)
        assert (tool.begun, results(hark), hark.stored.calls("state")) == ([], [told], [("denied",)])
        (ended,) = [event for event in hark.events if isinstance(event, ToolExecutionEnd)]
        assert ended.state == "denied"
        assert not [event for event in hark.events if isinstance(event, ToolExecutionStart)]


async def test_of_two_decisions_at_once_one_wins(tmp_path: Path) -> None:
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "done"])
        ident = await approval(hark)
        decide = hark.service.parts.requests.decide
        won = await asyncio.gather(
            *(decide(ident, Choice(verdict="once"), f"telegram:{n}") for n in range(5)),
            decide(ident, Choice(verdict="denied"), "x"),
        )
        assert won.count(True) == 1
        await over(hark)
        assert not await decide(ident, Choice(verdict="denied"), "telegram:1"), "too late"
        assert not await decide("no such one", Choice(verdict="once"), "telegram:1")
        assert len(tool.begun) == (hark.stored.approvals("state") == [("once",)])
        assert len(starts(hark.events)) == 2


async def test_calls_beside_one_that_asks(tmp_path: Path) -> None:
    """Those before it have their results when the turn parks; those behind it are looked at again."""
    asking = AskingTool()

    async def quick(label: str) -> str:
        return f"quick {label}"

    async with running(
        tmp_path, tools=lambda watch: [asking, ScriptedTool("quick", quick, watch, parallel_safe=True)]
    ) as hark:
        labels = [("quick", "a"), ("ask", "free"), ("ask", "b"), ("quick", "c"), ("ask", "d"), ("nope", "e")]
        hark.model.add(*[Call(name, {"label": label}) for name, label in labels])
        await hark.write("do it", answers=["done"])
        ident = await approval(hark)
        states = [state for (state,) in hark.stored.calls("state")]
        assert states == ["done", "done", "waiting", "asked", "waiting", "asked"]
        choice = Choice(verdict="once", picked=(2,))
        assert await hark.service.parts.requests.decide(ident, choice, "telegram:1")
        await over(hark)
        assert asking.begun == ["free", "d"]
        names = sorted(one.name for one in hark.model.requests[0].tools)
        assert [text.split(";")[0] for text in results(hark)] == [
            *("quick a", "did free", "A person denied this call", "quick c", "did d"),
            f"There is no tool named 'nope'. Tools: {', '.join(names)}.",
        ]
        assert [end.outcome for end in hark.ends(KEY)] == [Outcome.PARKED, Outcome.COMPLETED]


async def test_a_parked_turn_outlives_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"})])
        ident = await approval(hark)
        await hark.delivered()
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        hark.model.add("done")
        await lanes_idle()
        assert hark.stored.turns("state", "crashes") == [("parked", 0)]
        assert hark.model.requests == []
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        await over(hark)
        assert (tool.begun, said(hark)) == (["it"], ["done"])
        assert [event.id.partition("/")[2] for event in starts(hark.events)] == ["start.2"]


async def test_what_was_decided_while_nobody_could_tell_the_lanes(tmp_path: Path) -> None:
    """A decision is a row: it needs no signal, and a drain before the call began does not use it up."""
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"})])
        ident = await approval(hark)
        await lanes_idle()
        assert await hark.service.parts.store.approvals.decide(ident, Choice(verdict="once"), "telegram:1") == (
            KEY,
            False,
        )
        claimed = await hark.service.parts.store.turns.claim(KEY, "worker", answering)
        assert claimed is not None
        assert [decision.state for decision in claimed.decisions.values()] == ["once"]
        await hark.service.parts.store.turns.release(claimed.run)
        assert hark.stored.calls("state") == [("waiting",)]
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        hark.model.add("done")
        await over(hark)
        assert tool.begun == ["it"]
        assert starts(hark.events) == [], "it was told when the turn was claimed, before the drain"


async def test_a_decision_counts_for_what_was_shown(tmp_path: Path) -> None:
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "done"])
        first = await approval(hark)
        tool.where = "elsewhere"
        assert await hark.service.parts.requests.decide(first, Choice(verdict="once"), "telegram:1")
        second = await approval(hark, 2)
        assert (second != first, tool.begun, hark.stored.calls("state")) == (True, [], [("waiting",)])
        assert await hark.service.parts.requests.decide(second, Choice(verdict="once"), "telegram:1")
        await over(hark)
        assert tool.begun == ["it"]


async def test_a_parked_turn_leaves_its_place_and_keeps_its_session(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_concurrent": 1}}, tools=lambda watch: [AskingTool()]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"})])
        ident = await approval(hark)
        assert (await hark.say("hello", "2", answers=["for the other"])).texts == ["for the other"]
        await hark.write("and this")
        await lanes_idle()
        assert len(hark.model.requests) == 2, "a message of the session waits"
        hark.model.add("done")
        hark.model.add("this, too")
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        await hark.until(lambda: "this, too" in said(hark), "both answers")
        assert said(hark) == [ASKED, "done", "this, too"]


@pytest.mark.parametrize("command", ["/stop", "/new", "abort"])
async def test_stopping_a_parked_turn(tmp_path: Path, command: str) -> None:
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[(Call("ask", {"label": "it"}), Call("ask", {"label": "more"}))])
        ident = await approval(hark)
        ((run,),) = hark.stored.turns("turn_id")
        hark.model.add("hello again")
        if command == "abort":
            assert await hark.service.parts.api.abort(run)
            await hark.write("next")
        else:
            await hark.write(command, "next")
        await hark.until(lambda: "hello again" in said(hark), "the next answer")
        assert not await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        assert (tool.begun, hark.stored.calls("state")) == ([], [("cut",), ("cut",)])
        assert hark.stored.approvals("state") == [("expired",)]
        assert hark.stored.turns("state", "outcome", turn_id=run) == [("stopped", "aborted")]
        ended = [end.outcome for end in hark.ends(KEY) if end.run.turn_id == run]
        assert ended == [Outcome.PARKED, Outcome.ABORTED]
        if command != "/new":
            assert "was stopped before this call" in texts(hark.model.requests[-1], "tool")[0]


@pytest.mark.parametrize("command", ["/stop", "abort"])
async def test_what_waited_behind_a_turn_that_was_parked_and_stopped(tmp_path: Path, command: str) -> None:
    """It is answered at once: no sweep comes while the clock stands."""
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        parts = hark.service.parts
        await hark.write("do it", answers=[Call("ask", {"label": "it"})])
        await approval(hark)
        ((run,),) = hark.stored.turns("turn_id")
        if command == "/stop":  # accepted, and not carried out yet
            stop = hark.message(command, kind=InboundKind.COMMAND)
            await parts.store.inbox.accept([AcceptedMessage(message=stop, session_key=KEY)])
        await hark.write("next")
        await lanes_idle()
        hark.model.add("hello again")
        if command == "/stop":
            await parts.commands.recover()
        else:
            assert await parts.api.abort(run)
        await hark.until(lambda: "hello again" in said(hark), "the next answer")


async def test_nobody_decides_in_time(tmp_path: Path) -> None:
    tool = AskingTool(seconds=60)
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "then not"])
        ident = await approval(hark)
        hark.time.advance(59)
        await hark.service.parts.lanes.sweep()
        await lanes_idle()
        assert hark.stored.turns("state") == [("parked",)]
        hark.time.advance(1)
        assert not await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1"), (
            "a second too late"
        )
        await hark.service.parts.lanes.sweep()
        await over(hark)
        assert (tool.begun, results(hark), said(hark)) == ([], [OTHERWISE], [ASKED, "then not"])
        assert hark.stored.approvals("state") == [("expired",)]


async def test_only_running_time_counts(tmp_path: Path) -> None:
    """The turn may run for 100 seconds: 60 before a day of waiting, and 30 behind it."""
    loop = LoopTime()

    async def passes(label: str) -> str:
        hark.time.advance(float(label))
        await loop.advance(float(label))
        return "passed"

    async with running(
        tmp_path,
        config={"agent": {"timeout_seconds": 100}},
        tools=lambda watch: [AskingTool(seconds=100_000), ScriptedTool("wait", passes, watch)],
    ) as hark:
        hark.model.add(Call("wait", {"label": "60"}), Call("ask", {"label": "it"}), Call("wait", {"label": "30"}))
        hark.model.add("done")
        await hark.write("do it")
        ident = await approval(hark)
        await hark.until(lambda: hark.ends(KEY), "the end of the run")
        assert hark.ends(KEY)[0].duration == 60
        hark.time.advance(80_000)
        await loop.advance(80_000)
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        end = await over(hark)
        assert (end.outcome, end.duration) == (Outcome.COMPLETED, 90)


async def test_the_sign_of_work_stops(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool()], channel={"typing_seconds": 5}) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"})])
        await approval(hark)
        await hark.delivered()
        shown = len(hark.channel.log)
        assert said(hark) == [ASKED]
        await LoopTime().advance(30)
        assert len(hark.channel.log) == shown


async def test_a_tool_that_fails_to_ask_is_not_run(tmp_path: Path) -> None:
    class Broken(AskingTool):
        async def asks(self, parameters: object, context: object) -> None:  # type: ignore[override]
            raise RuntimeError("no idea")

    tool = Broken()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        assert (await hark.say("do it", answers=[Call("ask", {"label": "it"}), "a pity"])).texts == ["a pity"]
        assert (tool.begun, results(hark)) == ([], ["RuntimeError: no idea"])


async def test_a_text_for_a_parked_turn_is_read_behind_its_results(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"}), "done"])
        ident = await approval(hark)
        ((run,),) = hark.stored.turns("turn_id")
        assert await hark.service.parts.api.steer(run, "and be quick", OWNER)
        await lanes_idle()
        assert hark.stored.turns("state") == [("parked",)]
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        await over(hark)
        roles = [message.role for message in hark.model.requests[-1].messages]
        assert roles == ["user", "assistant", "tool", "user"]
        assert hark.model.requests[-1].messages[-1].text.endswith("and be quick")


async def test_an_approval_that_was_lost_is_asked_for_anew(tmp_path: Path) -> None:
    """A damaged store may give back the turn and not what it waits for."""
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        await hark.write("do it", answers=[Call("ask", {"label": "it"})])
        lost = await approval(hark)
        await hark.delivered()
    hark.stored.spoil("DELETE FROM approval")
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        ident = await approval(hark)
        assert ident != lost
        hark.model.add("done")
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        await over(hark)
        assert tool.begun == ["it"]
