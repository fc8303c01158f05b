"""What happens to a call, in which order, in the real service: hooks, policy, approval, secrets, circles, crashes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import field_validator

from agent.calls.loop_guard import NOTE, OVER_NOTE, REFUSAL
from agent.errors import ToolError
from agent.events import Outcome, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from agent.hooks import BeforeToolCall, Hook, ToolResultPersist
from agent.message import ToolOutput, ToolResult
from agent.tools.base import Ask, CallContext, Parameters, Refused, Tool
from bot.persistence.approvals import Choice
from bot.telemetry.redact import MASK
from tests.asking import approval
from tests.scripted_model import texts
from tests.service import Hark, Reply, running, session_of
from tests.standins.script import Call, Hang

TOKEN = "123456-abcdefghijkl"
SECRET: Mapping[str, Any] = {"gateway": {"token": TOKEN}}


class Trace(Parameters):
    """Notes that it was validated."""

    label: str = ""

    @field_validator("label")
    @classmethod
    def _seen(cls, label: str) -> str:
        STEPS.append(f"validated {label}")
        return label


STEPS: list[str] = []


class TracingTool(Tool[Trace]):
    """Notes what is asked of it. tells: what it reports meanwhile. says: its results, the last one again and again."""

    description = "Traces."
    parameters = Trace
    changes = True

    def __init__(self, name: str = "act", *, asks: bool = False, tells: Sequence[str] = (), says: str = "") -> None:
        self.name = name
        self.wanted = asks
        self.tells = tells
        self.says = says
        STEPS.clear()

    async def asks(self, parameters: Trace, context: CallContext) -> Ask | None:
        """See Tool."""
        STEPS.append(f"asked {parameters.label}")
        if parameters.label == "refused":
            raise Refused("Not this one.")
        return Ask(digest=parameters.label, subject=parameters.label, grants=("own",)) if self.wanted else None

    async def run(self, parameters: Trace, context: CallContext) -> ToolOutput:
        """See Tool."""
        STEPS.append(f"ran {parameters.label}")
        for text in self.tells:
            context.update(text)
        if parameters.label == "fails":
            raise ToolError("It went wrong.")
        return ToolOutput(text=self.says or f"did {parameters.label}")


def tracing(name: str = "hook", *, changes: bool = True) -> list[Hook]:
    """Hooks that put `+` behind labels before (changes), and their name behind results after."""

    async def before(call: BeforeToolCall) -> object:
        label = call.tool_input.get("label")
        STEPS.append(f"{name} before {label}")
        match label:
            case "stop":
                return {"block": True, "reason": "A hook says no."}
            case "break":
                raise ValueError("the hook is broken")
            case str() if changes:
                return {"tool_input": {"label": f"{label}+"}}
        return None

    async def after(call: ToolResultPersist) -> object:
        STEPS.append(f"{name} after {call.tool_input.get('label')}")
        if "odd" in call.text:
            raise ValueError("the hook is broken")
        return {"text": f"{call.text} ({name})"}

    return [
        Hook(point=one.point, name=name, call=of) for one, of in ((BeforeToolCall, before), (ToolResultPersist, after))
    ]


def results(hark: Hark) -> list[ToolResult]:
    """Of the calls of the last step."""
    last = hark.model.requests[-1].messages[-1]
    return [part for part in last.parts if isinstance(part, ToolResult)]


async def act(hark: Hark, name: str, arguments: Mapping[str, Any], **fields: Any) -> tuple[str, Reply]:
    """What the model is told of one call."""
    reply = await hark.say("go", answers=[Call(name, dict(arguments), **fields), "done"])
    return results(hark)[0].text, reply


def states(hark: Hark) -> list[str]:
    return [state for (state,) in hark.stored.calls("state")]


async def test_the_order_of_the_steps(tmp_path: Path) -> None:
    tool = TracingTool()
    hooks = (*tracing("first"), *tracing("second"))
    async with running(tmp_path, tools=lambda watch: [tool], hooks=hooks) as hark:
        told, reply = await act(hark, "functions.ACT", {"label": "it"})
        assert STEPS == [
            "first before it",
            "second before it+",
            "validated it++",
            "asked it++",
            "ran it++",
            "first after it++",
            "second after it++",
        ]
        assert told == "did it++ (first) (second)"
        (call,) = hark.model.requests[-1].messages[-2].tool_calls
        assert (call.name, json.loads(call.arguments)) == ("functions.ACT", {"label": "it"}), "as the model wrote it"
        (start,), (end,) = reply.of(ToolExecutionStart), reply.of(ToolExecutionEnd)
        assert (start.name, json.loads(start.arguments)) == ("act", {"label": "it++"}), "as it ran"
        assert (end.name, end.text, end.state) == ("act", told, "done")


@pytest.mark.parametrize(
    ("arguments", "config", "told", "state", "steps"),
    [
        ({"label": "stop"}, {}, "Not executed: A hook says no.", "denied", ["hook before stop"]),
        (
            {"label": "break"},
            {},
            "Not executed: a hook has failed (hook: ValueError: the hook is broken).",
            "denied",
            ["hook before break"],
        ),
        ({"label": "x"}, {"deny": ["*"]}, "act was not executed: not allowed by `tools.deny`.", "denied", 1),
        (
            {"label": "x"},
            {"by_sender": {"telegram:*": {"allow": []}}},
            "act was not executed: not allowed by `tools.by_sender.telegram:*.allow`.",
            "denied",
            1,
        ),
        ({"label": 5}, {}, "Wrong arguments for act; it was not called.", "failed", 1),
        ({"label": "fails"}, {}, "It went wrong. (hook)", "failed", 5),
        ({"label": "odd"}, {}, "did odd+", "done", 5),
    ],
)
async def test_a_call_is_refused_at_its_step(
    tmp_path: Path, arguments: dict[str, Any], config: dict[str, Any], told: str, state: str, steps: list[str] | int
) -> None:
    tool = TracingTool()
    async with running(
        tmp_path,
        tools=lambda watch: [tool],
        hooks=tracing(changes=arguments["label"] != "fails"),
        config={"tools": config},
    ) as hark:
        said, reply = await act(hark, "act", arguments)
        assert said.split("\n")[0] == told
        assert states(hark) == [state]
        assert steps == STEPS if isinstance(steps, list) else len(STEPS) == steps
        assert bool(reply.of(ToolExecutionStart)) == (steps == 5), "a call that is refused has never been running"


async def test_a_tool_may_refuse_and_any_step_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path, tools=lambda watch: [TracingTool()]) as hark:
        assert (await act(hark, "act", {"label": "refused"}))[0] == "Not this one."
        assert states(hark) == ["denied"]

        def broken(*_: Any) -> None:
            raise RuntimeError("the cellar is full")

        monkeypatch.setattr("agent.calls.loop_guard.Repeats.check", broken)
        told, reply = await act(hark, "act", {"label": "x"})
        assert (told, reply.texts) == ("RuntimeError: the cellar is full", ["done", *reply.texts[1:]])
        assert sorted(states(hark)) == ["denied", "failed"]


async def test_what_a_person_allows_is_what_hooks_have_made_of_it(tmp_path: Path) -> None:
    tool = TracingTool()
    config = {"tools": {"require_approval": ["a*"]}}
    async with running(tmp_path, tools=lambda watch: [tool], hooks=tracing(), config=config) as hark:
        await hark.write("go", answers=[Call("act", {"label": "it"}), "done"])
        ident = await approval(hark)
        await hark.delivered()
        assert 'act {"label":"it+"}' in hark.channel.texts()[0]
        assert "ran it+" not in STEPS
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        await hark.until(lambda: [end for end in hark.ends(session_of("1")) if end.is_last], "the end")
        assert STEPS.count("hook before it") == 2, "it begins anew at the first step"
        assert STEPS.count("ran it+") == 1
        assert states(hark) == ["done"]


async def test_what_is_allowed_always_is_allowed_for_these_arguments_here(tmp_path: Path) -> None:
    config = {"tools": {"require_approval": ["a*"], "by_sender": {"telegram:2": {"profile": "full"}}}}

    async def parked(hark: Hark, label: str, count: int, sender: str = "1") -> str:
        await hark.write("go", sender=sender, answers=[Call("act", {"label": label})])
        return await approval(hark, count)

    async with running(tmp_path, tools=lambda watch: [TracingTool()], config=config) as hark:
        ident = await parked(hark, "a", 1)
        hark.model.add("done")
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="always"), "telegram:1")
        await hark.until(lambda: [end for end in hark.ends(session_of("1")) if end.is_last], "the end")
        assert (await act(hark, "act", {"label": "a"}))[0] == "did a"
        ident = await parked(hark, "b", 2)
        hark.model.add("then not")
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="denied"), "telegram:1")
        await hark.until(lambda: "then not" in hark.channel.texts(), "the answer")
        await parked(hark, "a", 3, sender="2")
        assert [step for step in STEPS if step.startswith("ran")] == ["ran a", "ran a"]


@pytest.mark.parametrize("verdict", ["once", "always"])
async def test_a_tool_that_asks_itself_is_asked_about_once(tmp_path: Path, verdict: Any) -> None:
    """Also where what it was allowed for always is all that it would have asked."""
    config = {"tools": {"require_approval": ["a*"]}}
    tool = TracingTool(asks=True)
    async with running(tmp_path, tools=lambda watch: [tool], config=config) as hark:
        await hark.write("go", answers=[Call("act", {"label": "it"}), "done"])
        ident = await approval(hark)
        tool.wanted = verdict == "once"
        assert await hark.service.parts.requests.decide(ident, Choice(verdict=verdict), "telegram:1")
        await hark.until(lambda: [end for end in hark.ends(session_of("1")) if end.is_last], "the end")
        assert len(hark.stored.approvals()) == 1
        assert STEPS[-1] == "ran it"


async def test_what_is_allowed_for_always_holds_for_the_turn_that_asked_however_soon_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lane may find the decision in the store before whoever decided has made it known."""
    tool = TracingTool(asks=True)
    config = {"tools": {"require_approval": ["a*"]}}
    async with running(tmp_path, tools=lambda watch: [tool], config=config) as hark:
        await hark.write("go", answers=[Call("act", {"label": "it"}), "done"])
        ident = await approval(hark)
        tool.wanted = False
        requests, lanes = hark.service.parts.requests, hark.service.parts.lanes

        def over() -> bool:
            return len(hark.stored.approvals()) > 1 or any(end.is_last for end in hark.ends(session_of("1")))

        async def late(verdict: Any) -> None:
            lanes.wake(session_of("1"))
            await hark.until(over, "the end, or another request")

        monkeypatch.setattr(requests, "decided", late)
        assert await requests.decide(ident, Choice(verdict="always"), "telegram:1")
        assert len(hark.stored.approvals()) == 1
        assert STEPS[-1] == "ran it"


async def test_no_secret_is_stored_told_or_sent(tmp_path: Path) -> None:
    tells = ["the token is 1234", "56-abcdefgh", "ijkl, and 12", "34 is a number"]
    tool = TracingTool(tells=tells, says=f"It is {TOKEN}, and again {TOKEN}.")
    async with running(tmp_path, tools=lambda watch: [tool], config=SECRET) as hark:
        told, reply = await act(hark, "act", {"label": "it"})
        assert told == f"It is {MASK}, and again {MASK}."
        assert [event.text for event in reply.of(ToolExecutionEnd)] == [told]
        updates = [event.text for event in reply.of(ToolExecutionUpdate)]
        assert "".join(updates) == f"the token is {MASK}, and 1234 is a number"
        assert updates[0] == "the token is ", "what may be the beginning of it waits"
        kept = json.dumps([hark.stored.entries(), hark.stored.events()], default=str)
        assert MASK in kept
        assert TOKEN not in kept


async def test_a_long_result_has_no_secret_in_its_file(tmp_path: Path) -> None:
    half = "x" * (12 * 1024 - 10)  # so that the cut goes through it
    tool = TracingTool(says=f"{half}{TOKEN}{'y' * 100_000}")
    async with running(tmp_path, tools=lambda watch: [tool], config=SECRET) as hark:
        told, _ = await act(hark, "act", {"label": "it"})
        (file,) = (tmp_path / "workspace" / "tool-results").glob("*.txt")
        assert len(told) < 40_000
        assert file.name in told
        for text in (told, file.read_text()):
            assert TOKEN[:6] not in text


async def test_a_circle_is_told_then_stopped_then_ended(tmp_path: Path) -> None:
    tool = TracingTool(says="nothing new")
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        for number in range(13):
            hark.model.add(Call("act" if number % 2 else "functions.act", {"label": "it"}))
        reply = await hark.say("go", answers=["I give up."])
        assert (reply.texts, reply.outcome) == (["I give up."], Outcome.LIMIT)
        ends = [event.text for event in reply.of(ToolExecutionEnd)]
        assert ends == ["nothing new"] * 4 + ["nothing new" + NOTE] * 4 + [REFUSAL] * 5
        assert STEPS.count("ran it") == 8
        assert states(hark) == ["done"] * 8 + ["failed"] * 5
        last = hark.model.requests[-1]
        assert texts(last, "user")[-1] == OVER_NOTE
        assert not last.allow_calls
        assert {request.tools for request in hark.model.requests} == {last.tools}


async def test_the_count_survives_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [TracingTool(says="nothing new")]) as hark:
        for _ in range(8):
            hark.model.add(Call("act", {"label": "it"}))
        await hark.write("go", answers=[hang := Hang()])
        await hang.entered()
    async with running(tmp_path, tools=lambda watch: [TracingTool(says="nothing new")]) as hark:
        hark.model.add(Call("act", {"label": "it"}))
        hark.model.add("I give up.")
        assert await hark.until_texts(1) == ["I give up."]
        assert (STEPS, states(hark)) == ([], ["done"] * 8 + ["failed"])
