"""A person never waits for a beat or a job: it gives the session away at once, and goes on with all that it had."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.context import INTERRUPTED
from agent.message import Message, ToolResult
from agent.tools.base import Tool
from bot.people.access import OWNER
from bot.persistence.approvals import Choice
from channels.message import InboundKind
from tests.asking import AskingTool, approval
from tests.service import Hark, ScriptedTool, running, session_of
from tests.standins.script import Call, Gate, Hang, Say
from tests.stored import disk_full
from tests.watch import Watch, lanes_idle

KEY = session_of("1")
KINDS = pytest.mark.parametrize("kind", [InboundKind.WAKE, InboundKind.JOB])


class Held:
    """A tool whose calls run until they are let, each that is not named in `free`."""

    def __init__(self, *free: str) -> None:
        self.free = free
        self.let = asyncio.Event()
        self.tool: ScriptedTool

    def __call__(self, watch: Watch) -> Sequence[Tool]:  # type: ignore[type-arg]
        self.tool = ScriptedTool("work", self._work, watch)
        return [self.tool]

    async def _work(self, label: str) -> str:
        if label not in self.free:
            await self.let.wait()
        return f"did {label}"


async def begin(hark: Hark, kind: InboundKind = InboundKind.WAKE) -> None:
    """A beat or job in the conversation of person 1, who has written before."""
    if not hark.model.requests:
        hark.model.on("hello", "hi")
        await hark.say("hello")
    await hark.accept(hark.message("look around", kind=kind))


def asked(hark: Hark, number: int) -> list[str]:
    """What each message of a request is about, behind the first exchange."""
    found = [_about(message) for message in hark.model.requests[number].messages]
    assert found[:2] == ["hello", "hi"]
    return found[2:]


async def until_asked(hark: Hark, number: int) -> None:
    await hark.model.until_requests(number + 1)


def _about(message: Message) -> str:
    if results := [part.text for part in message.parts if isinstance(part, ToolResult)]:
        return " + ".join(results)
    return message.text.rsplit("\n", 1)[-1] or f"calls {len(message.tool_calls)}"


def states(hark: Hark) -> list[str]:
    """Kind and state of each turn but the first."""
    found = sorted(f"{kind} {state}" for kind, state in hark.stored.turns("kind", "state"))
    found.remove("reply done")
    return found


async def let_before(hark: Hark, held: Held) -> None:
    """Have a person answered while a call of a beat runs."""
    hark.model.add(Call("work", {"label": "a"}))
    hark.model.add("fine")
    await begin(hark)
    await hark.until(lambda: held.tool.begun, "the call")
    await hark.say("how are you?")


@KINDS
async def test_an_answer_that_is_being_written_is_cut_at_once(kind: InboundKind, hark: Hark) -> None:
    hark.model.add(Hang())
    hark.model.add("fine")
    hark.model.add("nothing new")
    await begin(hark, kind)
    await until_asked(hark, 1)
    began = hark.time.now()
    await hark.write("how are you?")
    assert (await hark.until_texts(2))[1] == "fine"
    await until_asked(hark, 3)
    await hark.until(lambda: not hark.model.active, "the end of the call that was cut")
    await lanes_idle()
    assert hark.time.now() == began  # nothing has waited for a moment to come
    assert asked(hark, 2) == ["how are you?"]
    assert asked(hark, 3) == ["how are you?", "fine", "look around"]
    assert states(hark) == [f"{'beat' if kind is InboundKind.WAKE else 'job'} done", "reply done"]


@KINDS
async def test_a_call_that_runs_is_finished_apart_and_its_result_is_found(tmp_path: Path, kind: InboundKind) -> None:
    held = Held()
    async with running(tmp_path, tools=held) as hark:
        gate = Gate()
        hark.model.add(Call("work", {"label": "a"}), Call("work", {"label": "b"}))
        hark.model.add(Say("fine", gate=gate))
        hark.model.add("nothing new")
        await begin(hark, kind)
        await hark.until(lambda: held.tool.begun, "the call")
        await hark.write("how are you?")
        await gate.reached()
        assert asked(hark, 2) == ["how are you?"]
        held.let.set()
        await hark.until(lambda: hark.stored.calls("state", state="done"), "the result")
        assert (held.tool.begun, held.tool.ended) == (["a"], ["a"])  # the other one has not begun
        assert states(hark) == [f"{'beat' if kind is InboundKind.WAKE else 'job'} queued", "reply running"]
        gate.open()
        await until_asked(hark, 3)
        await lanes_idle()
        assert asked(hark, 3) == ["how are you?", "fine", "look around", "calls 2", "did a + did b"]
        assert held.tool.ended == ["a", "b"]


async def test_it_goes_on_only_when_its_call_has_ended(tmp_path: Path) -> None:
    held = Held()
    async with running(tmp_path, tools=held) as hark:
        hark.model.add(Call("work", {"label": "a"}))
        hark.model.add("fine")
        hark.model.add("better")
        hark.model.add("nothing new")
        await begin(hark)
        await hark.until(lambda: held.tool.begun, "the call")
        await hark.say("how are you?")
        await begin(hark, InboundKind.JOB)  # comes behind the beat
        assert (await hark.say("and now?")).texts == ["better"]
        assert len(hark.model.requests) == 4
        assert hark.service.parts.lanes.active == 1
        held.let.set()
        await hark.until(lambda: len(hark.ends(KEY)) == 5, "the end of all")
        assert held.tool.begun == ["a"]
        assert asked(hark, 4)[-3:] == ["look around", "calls 1", "did a"]
        await lanes_idle()
        assert hark.service.parts.lanes.active == 0


async def test_nothing_of_the_background_begins_while_a_message_waits(tmp_path: Path) -> None:
    """Not even while it is waited whether the person writes on."""
    async with running(tmp_path, config={"queue": {"debounce_ms": 500}}) as hark:
        await hark.write("how are", answers=["fine", "nothing new"])
        await hark.accept(hark.message("look around", kind=InboundKind.WAKE))
        await lanes_idle()
        await hark.write("you?")
        assert hark.model.requests == []
        hark.time.advance(0.5)
        await hark.model.until_requests(2)
        assert [request.messages[-1].text.rsplit("\n", 1)[-1] for request in hark.model.requests] == [
            "you?",
            "look around",
        ]


async def test_messages_keep_their_order(tmp_path: Path) -> None:
    async with running(tmp_path, config={"queue": {"mode": "followup"}}) as hark:
        hark.model.add(Hang())
        await begin(hark)
        await until_asked(hark, 1)
        hark.model.default = lambda request: f"re {len(hark.model.requests) - 1}"
        await hark.write("a", "b")
        await hark.write("c")
        await until_asked(hark, 5)
        assert [asked(hark, number)[-1] for number in range(2, 6)] == ["a", "b", "c", "look around"]
        await lanes_idle()


async def test_a_place_is_handed_over(tmp_path: Path) -> None:
    """Where all places are taken, the person gets that of what gives way."""
    held = Held()
    async with running(tmp_path, config={"agent": {"max_concurrent": 1}}, tools=held) as hark:
        hark.model.add(Call("work", {"label": "a"}))
        hark.model.add("fine")
        hark.model.add("nothing new")
        await begin(hark)
        await hark.until(lambda: held.tool.begun, "the call")
        assert (await hark.say("how are you?")).texts == ["fine"]
        hark.model.on("elsewhere", "here")
        await hark.accept(hark.message("elsewhere", "2", kind=InboundKind.WAKE))
        await lanes_of(hark, "2")
        assert len(hark.model.requests) == 3  # the call still holds the place of the background
        held.let.set()
        await until_asked(hark, 4)
        await lanes_idle()


async def lanes_of(hark: Hark, sender: str) -> None:
    """Let everything happen that can happen now in the lane of somebody."""
    for _ in range(20):
        await asyncio.sleep(0)
    assert hark.service.parts.lanes.handle(session_of(sender)) is None


async def test_people_hear_what_it_has_said_so_far(hark: Hark) -> None:
    """What a job has said is seen by people, so the model that answers them is told of it; nothing is said twice."""
    first = "It is going to rain. " * 50
    hark.model.add(Say(f"{first}\n\nSo you should"), Hang())
    hark.model.add("fine")
    hark.model.add("Take an umbrella.")
    await begin(hark, InboundKind.JOB)
    await hark.until_texts(2)
    await hark.write("how are you?")
    texts = await hark.until_texts(4)
    await lanes_idle()
    assert texts[1:] == [first.strip(), "fine", "Take an umbrella."]
    told = hark.model.requests[2].messages[-1].text
    assert first.strip() in told
    assert told.endswith("how are you?")


async def test_a_request_of_it_keeps_nobody_waiting(tmp_path: Path) -> None:
    tool = AskingTool()
    async with running(tmp_path, tools=lambda watch: [tool]) as hark:
        hark.model.add(Call("ask", {"label": "it"}))
        hark.model.add("fine")
        hark.model.add("nothing new")
        await begin(hark)
        ident = await approval(hark)
        await hark.delivered()
        reply = await hark.say("how are you?")
        assert reply.texts[-1] == "fine"
        assert not any("read" in text for text in reply.texts)  # nobody is told that the words are read later
        assert asked(hark, 2) == ["how are you?"]
        assert states(hark) == ["beat queued", "reply done"]
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), OWNER)
        await until_asked(hark, 3)
        await lanes_idle()
        assert asked(hark, 3) == ["how are you?", "fine", "look around", "calls 1", "did it"]
        assert tool.begun == ["it"]


async def test_a_stop_reaches_what_has_given_way(tmp_path: Path) -> None:
    held = Held()
    async with running(tmp_path, tools=held) as hark:
        await let_before(hark, held)
        await hark.write("/stop")
        await hark.until(lambda: hark.service.parts.lanes.active == 0, "the end of the call")
        await lanes_idle()
        assert states(hark) == ["beat stopped", "reply done"]
        assert (held.tool.ended, hark.stored.calls("state")) == ([], [("cut",)])
        assert len(hark.model.requests) == 3


async def test_a_call_that_a_restart_cuts_is_not_run_again(tmp_path: Path) -> None:
    held = Held()
    async with running(tmp_path, tools=held) as hark:
        await let_before(hark, held)
        assert states(hark) == ["beat queued", "reply done"]
    again = Held()
    async with running(tmp_path, tools=again) as hark:
        hark.model.add("nothing new")
        await hark.model.until_requests(1)
        await lanes_idle()
        hark.model.requests.insert(0, hark.model.requests[0])
        assert asked(hark, 1) == ["how are you?", "fine", "look around", "calls 1", INTERRUPTED]
        assert again.tool.begun == []


async def test_a_result_that_cannot_be_stored_is_unknown(tmp_path: Path) -> None:
    held, full = Held(), [False]

    def probe(at: object) -> None:
        if full[0] and at == "before":
            raise disk_full()

    async with running(tmp_path, tools=held, probe=probe) as hark:
        hark.model.add(Call("work", {"label": "a"}))
        hark.model.add("fine")
        hark.model.add("nothing new")
        await begin(hark)
        await hark.until(lambda: held.tool.begun, "the call")
        await hark.say("how are you?")
        with capture_logs() as logs:
            full[0] = True
            held.let.set()
            await hark.until(lambda: any("the run waits" in one["event"] for one in logs), "the failure")
        full[0] = False
        hark.time.advance(2)
        await until_asked(hark, 3)
        await lanes_idle()
        assert asked(hark, 3)[-1] == INTERRUPTED


async def test_a_call_that_takes_too_long_is_closed(tmp_path: Path) -> None:
    held = Held()
    async with running(tmp_path, config={"agent": {"timeout_seconds": 0.2}}, tools=held) as hark:
        hark.model.add(Call("work", {"label": "a"}))
        hark.model.add("fine")
        hark.model.add("nothing new")
        await begin(hark, InboundKind.JOB)
        await hark.until(lambda: held.tool.begun, "the call")
        await hark.say("how are you?")
        await until_asked(hark, 3)
        assert asked(hark, 3)[-2:] == ["calls 1", INTERRUPTED]
        await lanes_idle()


async def test_what_is_written_while_a_beat_is_claimed_is_seen(tmp_path: Path) -> None:
    """The beat holds its turn, but nobody can see it run yet."""
    found: list[Hark] = []
    loop = asyncio.get_running_loop()

    def probe(at: object) -> None:
        if found and at == "after" and found[0].stored.turns(kind="beat", state="running"):
            loop.call_soon_threadsafe(asyncio.ensure_future, found.pop().write("how are you?"))

    async with running(tmp_path, probe=probe) as hark:
        # where the beat begins to ask in this moment, it may have read what was written; nothing comes of its answer
        hark.model.whenever("how are you?", "fine")
        hark.model.whenever("look around", Hang())
        found.append(hark)
        await hark.accept(hark.message("look around", kind=InboundKind.WAKE))
        assert await hark.until_texts(1) == ["fine"]


async def test_each_interruption_counts_for_the_time_that_it_may_run(hark: Hark) -> None:
    """So that what people interrupt again and again ends by its time-out, and comes with its next due time."""
    await begin(hark)
    for number in range(2):
        hark.model.on("look around", Hang())
        await hark.until(lambda: hark.model.active, "the beat")
        hark.time.advance(4)
        await hark.say(f"question {number}")
    await hark.until(lambda: hark.model.active, "the beat")
    assert hark.stored.turns("ran", kind="beat") == [(8000,)]
