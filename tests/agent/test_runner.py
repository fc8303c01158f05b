"""What a run does when a model call fails, in the real service: wait, try again, go on, give up, be stopped."""

import asyncio
import threading
from pathlib import Path

import pytest

from agent.context import CUT_NOTE, INTERRUPTED
from agent.events import AgentEnd, AgentStart, Notice, Outcome, ToolExecutionStart
from bot import service, wording
from bot.runs.outages import MENDED_EVERY, PARKED_EVERY
from bot.store.stops import STOP_NOTE
from channels.outgoing import Delivery, SendResult, Sent
from tests.scripted_model import ScriptedModel, texts
from tests.service import Hark, ScriptedTool, running, session_of
from tests.standins.script import Break, Call, Continuer, Fail, Gate, Hang, Ping, Say
from tests.watch import LoopTime, Watch

LINES = "The first line of it.\n\nThe second line of it, which is longer.\n\nThe third.\n"
SMALL_BLOCKS = {"channels": {"telegram": {"streaming": {"min_chars": 1, "max_chars": 64}}}}


async def ended(hark: Hark, count: int = 1) -> AgentEnd:
    """The end of the run of that number in the session of person 1, once everything is delivered."""
    await hark.until(lambda: len(hark.ends(session_of("1"))) >= count, f"end {count}")
    await hark.delivered()
    return hark.ends(session_of("1"))[count - 1]


def notices(hark: Hark) -> list[str]:
    return [event.kind for event in hark.events if isinstance(event, Notice)]


async def test_a_busy_provider_is_asked_again_when_it_said(tmp_path: Path) -> None:
    async with running(tmp_path, channel={"typing_seconds": 5}) as hark:
        await hark.write("hello", answers=[Fail(429, retry_after=7), Fail(529, retry_after=2.5), "There."])
        await hark.time.until_pause(7)
        assert len(hark.model.requests) == 1
        hark.time.advance(6.9)
        await asyncio.sleep(0)
        assert len(hark.model.requests) == 1
        hark.time.advance(0.1)
        await hark.time.until_pause(2.5)
        hark.time.advance(2.5)
        end = await ended(hark)
        assert hark.channel.texts() == ["There."]
    assert end.outcome is Outcome.COMPLETED
    assert notices(hark) == ["wait", "wait"]
    assert hark.channel.log[0] == ("working", "1")
    assert len([event for event in hark.events if isinstance(event, AgentStart | AgentEnd)]) == 2


@pytest.mark.parametrize(
    ("told", "waits"),
    [
        ([19.0, 11.0, 0.5], [19, 11]),
        ([31.0], []),
        ([None] * 6, [2, 4, 8, 8, 8]),
        ([0.0] * 31, [1] * 30),
    ],
    ids=["thirty seconds in all", "too long at once", "nothing told", "told not to wait"],
)
async def test_waiting_has_an_end(
    tmp_path: Path, told: list[float | None], waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PROBE_EVERY", 0.9)  # so that nothing else pauses as long as a run
    async with running(tmp_path) as hark:
        for seconds in told:
            hark.model.add(Fail(429, retry_after=seconds))
        await hark.write("hello")
        for number, wait in enumerate(waits, 1):
            await hark.time.until_asked(wait, waits[:number].count(wait))
            hark.time.advance(wait)
            await hark.model.until_requests(number + 1)
        end = await ended(hark)
        (told,) = hark.channel.texts()
        assert told.startswith("The model's provider is limiting requests right now. I have kept your message")
    assert end.outcome is Outcome.PARKED
    assert len(hark.model.requests) == len(waits) + 1


async def test_a_lost_connection_is_tried_once_more_for_each_answer(tmp_path: Path) -> None:
    async def work(label: str) -> str:
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", work, watch)]) as hark:
        reply = await hark.say("hello", answers=[Break(), Call("act", {"label": "a"}), Break(), "There."])
        assert (reply.texts, reply.outcome) == (["There."], Outcome.COMPLETED)
        assert [event.run.attempt for event in reply.events if isinstance(event, AgentStart | AgentEnd)] == [1, 1]

        await hark.write("hello", answers=[Break(), Break(), "There, at last."])
        await hark.time.until_pause(2)
        hark.time.advance(2)
        assert (await hark.until_texts(2))[-1] == "There, at last."
        assert hark.model.unused == 0


@pytest.mark.parametrize(("status", "kind"), [(400, "invalid_request"), (413, "context_overflow")])
async def test_what_waiting_does_not_mend_is_told_at_once(status: int, kind: str, hark: Hark) -> None:
    reply = await hark.say("hello", sender="2", answers=[Fail(status, message="sk-verysecret1 is wrong")])
    assert (reply.texts, reply.end.error_kind) == ([wording.failure(kind, to_owner=False)], kind)
    assert len(hark.model.requests) == 1
    assert (await hark.say("hello")).outcome is Outcome.COMPLETED


async def test_an_answer_that_breaks_after_text_is_continued(tmp_path: Path) -> None:
    async with running(tmp_path, config=SMALL_BLOCKS) as hark:
        reply = await hark.say("tell me", answers=[(Say(LINES), Break(after_chunks=12)), Say("third, at last.")])
        assert reply.texts == ["The first line of it.", "third, at last."]
        said = [text for (text,) in hark.stored.deliveries("said")]
        assert said == ["The first line of it.\n\n", "third, at last."]
        second = hark.model.requests[1]
        assert second.messages[-1].text == CUT_NOTE
        assert second.messages[-2].role == "assistant"
        assert second.messages[-2].text == said[0]
    assert [notice.kind for notice in reply.of(Notice)] == ["cut"]
    assert reply.outcome is Outcome.COMPLETED
    assert len([event for event in reply.events if isinstance(event, AgentStart | AgentEnd)]) == 2


SENTENCES = " ".join(f"This is sentence {n} of a long answer." for n in range(60))


def bare(text: str) -> str:
    """Without white space, which belongs to no message at its edges."""
    return "".join(text.split())


@pytest.mark.parametrize("mode", ["block", "preview", "off"])
@pytest.mark.parametrize("cuts", [[100, 100], [100, 7, 30, 1, 90]])
async def test_an_answer_that_breaks_again_and_again_goes_on_while_it_gets_further(
    tmp_path: Path, mode: str, cuts: list[int]
) -> None:
    async with running(tmp_path, config={"channels": {"telegram": {"streaming": {"mode": mode}}}}) as hark:
        hark.model.default = Continuer(SENTENCES, "tell me", cuts, chunks=400)
        reply = await hark.say("tell me")
        assert reply.outcome is Outcome.COMPLETED
        assert "".join(said for (said,) in hark.stored.deliveries("said")) == SENTENCES
        if mode != "preview":  # that is one message which is edited
            assert bare("".join(reply.texts)) == bare(SENTENCES)
        assert len(hark.model.requests) == len(cuts) + 1


@pytest.mark.parametrize(("cuts", "least"), [([100, 0], 0), ([100, 100, 0], 560), ([100, 100, 100, 0], 980)])
async def test_an_answer_that_gets_no_further_goes_on_after_a_pause(cuts: list[int], least: int, hark: Hark) -> None:
    hark.model.default = Continuer(SENTENCES, "tell me", cuts, chunks=400)
    await hark.write("tell me")
    await hark.time.until_pause(2)
    await hark.delivered()
    words = hark.channel.texts()
    assert bare(SENTENCES).startswith(bare("".join(words)))
    assert len("".join(words)) >= least
    assert len(hark.model.requests) == len(cuts)
    hark.time.advance(2)
    end = await ended(hark)
    assert end.outcome is Outcome.COMPLETED
    assert bare("".join(hark.channel.texts())) == bare(SENTENCES)


async def test_an_answer_that_always_breaks_has_an_end(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_steps": 5}}) as hark:
        hark.model.default = Continuer(SENTENCES, "tell me", [2] * 300, chunks=400)
        await hark.write("tell me")
        waits = (2, 4, 8, 8, 8)
        for number, wait in enumerate(waits, 1):
            await hark.time.until_asked(wait, waits[:number].count(wait))
            hark.time.advance(wait)
        end = await ended(hark)
        assert end.outcome is Outcome.PARKED
        assert len(hark.model.requests) <= 12


@pytest.mark.parametrize("failure", [Fail(529, retry_after=60), Fail(402)])
async def test_what_was_streamed_stays_whatever_ended_the_answer(failure: Fail, hark: Hark) -> None:
    reply = await hark.say("tell me", answers=[(Say("The beginning of it, and"), failure), "pong", "this is its end."])
    assert reply.texts[0] == "The beginning of it, and"
    assert reply.outcome is Outcome.PARKED
    every = MENDED_EVERY if failure.status == 402 else 60
    while hark.time.now() - reply.end.at < every * 1000:
        await hark.time.until_pause(PARKED_EVERY)
        hark.time.advance(PARKED_EVERY)
    await hark.until_texts(3)
    assert texts(hark.model.requests[-1], "assistant") == ["The beginning of it, and"]


async def test_text_that_was_streamed_and_not_planned_never_existed(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        reply = await hark.say("hello", answers=[(Say("Half of an answ"), Break(after_chunks=3)), "A whole answer."])
        assert reply.texts == ["A whole answer."]
        assert [message.role for message in hark.model.requests[1].messages] == ["user"]
    assert [notice.kind for notice in reply.of(Notice)] == ["retry"]


async def test_a_silent_model_is_tried_once_more(tmp_path: Path) -> None:
    time = LoopTime()
    async with running(tmp_path) as hark:
        hangs = [Hang(), Hang()]
        for hang in hangs:
            hark.model.add(hang)
        await hark.write("hello")
        for hang in hangs:
            await hang.entered()
            await time.advance(59)
            assert hark.model.active == 1
            await time.advance(2)
        end = await ended(hark)
        assert hark.channel.texts() == [wording.failure("timeout", end.error_message)]
        assert (end.outcome, end.error_kind, end.error_message) == (
            Outcome.FAILED,
            "timeout",
            "test/scripted: the model was silent for 60 s",
        )


async def test_only_the_silence_of_the_model_counts(tmp_path: Path) -> None:
    """A slow tool, a slow commit and a stream that shows a sign of life are no silence."""
    time = LoopTime()
    gate, hang = Gate(), Hang()
    loop = asyncio.get_running_loop()

    async def slow(label: str) -> str:
        await time.advance(100)
        return label

    slow_commits = threading.Event()
    may_send = asyncio.Event()

    async def held(delivery: Delivery) -> SendResult:
        await may_send.wait()
        return Sent()

    def take_two_minutes(at: str) -> None:
        if at == "before" and slow_commits.is_set():
            asyncio.run_coroutine_threadsafe(time.advance(120), loop).result(5)

    async with running(
        tmp_path,
        config=SMALL_BLOCKS | {"agent": {"timeout_seconds": 10**6}},
        tools=lambda watch: [ScriptedTool("slow", slow, watch)],
        probe=take_two_minutes,
    ) as hark:
        await hark.write("hello", answers=[Call("slow"), (Say(LINES, gate=gate), Ping(), hang, Ping())])
        await hark.model.until_requests(2)
        hark.channel.on_send = held  # so that no commit is made but by the run, which waits for it
        slow_commits.set()
        for _ in LINES.split():
            await gate.reached(10**6)
            await time.advance(40)
            gate.let()
        await hang.entered(10**6)
        slow_commits.clear()
        may_send.set()
        await time.advance(40)
        hang.release()
        assert await hark.until_texts(3) == [line.strip() for line in LINES.split("\n\n")]
        assert len(hark.model.requests) == 2


async def test_no_limit_of_silence(tmp_path: Path) -> None:
    time = LoopTime()
    async with running(tmp_path, config={"agent": {"idle_timeout_seconds": 0}}) as hark:
        hang = await hark.hanging("hello", then="At last.")
        await time.advance(599)
        hang.release()
        await ended(hark)
        assert hark.channel.texts() == ["At last."]


async def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    time = LoopTime()
    stopped = asyncio.Event()

    async def forever(label: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", forever, watch)]) as hark:
        await hark.write("do it", answers=[("I try.", Call("act", {"label": "a"}), Call("act", {"label": "b"}))])
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
        await time.advance(601)
        end = await ended(hark)
        assert stopped.is_set()
        assert hark.channel.texts() == ["I try.", wording.failure("timeout")]
        assert (end.outcome, end.error_kind) == (Outcome.TIMEOUT, "timeout")
        await hark.say("what happened?")
        (results,) = texts(hark.model.requests[1], "tool")
        assert results.startswith(INTERRUPTED)


async def test_the_time_of_a_run_is_that_of_all_its_attempts(tmp_path: Path) -> None:
    hang = Hang()
    async with running(tmp_path) as hark:
        await hark.write("hello", answers=[hang])
        await hang.entered()
        hark.time.advance(400)
    time = LoopTime()
    async with running(tmp_path, model=ScriptedModel()) as hark:
        hang = Hang()
        hark.model.add(hang, "At last.")
        await hang.entered()
        await time.advance(59)
        hang.release()
        await hang.entered()
        assert (await ended(hark)).duration == 400.0
    async with running(tmp_path) as hark:
        await hark.hanging("hello again")
        hark.time.advance(590)
    async with running(tmp_path, config={"agent": {"idle_timeout_seconds": 0}}) as hark:
        hang = Hang()
        hark.model.add(hang)
        await hang.entered()
        await time.advance(9)
        assert hark.ends(session_of("1")) == []
        await time.advance(2)
        end = await ended(hark)
        assert (end.outcome, end.duration) == (Outcome.TIMEOUT, 590.0)


async def block(label: str) -> str:
    await asyncio.Event().wait()
    return label


def blocking(watch: Watch) -> list[ScriptedTool]:
    return [ScriptedTool("act", block, watch)]


async def test_stop_in_the_middle_of_an_answer(tmp_path: Path) -> None:
    async with running(tmp_path, config=SMALL_BLOCKS) as hark:
        gate = Gate()
        await hark.write("tell me", answers=[(Say(LINES), Say(" And more.", gate=gate))])
        await gate.reached()
        await hark.until_texts(2)
        await hark.write("/stop")
        assert (await ended(hark)).outcome is Outcome.ABORTED
        await hark.until(lambda: hark.channel.texts()[-1] == "Stopped.")
        assert hark.model.active == 0
        await hark.say("why?")
        request = hark.model.requests[1]
        assert [message.role for message in request.messages] == ["user", "assistant", "user", "user"]
        assert request.messages[2].text == STOP_NOTE
        assert LINES.startswith(request.messages[1].text.strip())


async def test_stop_in_the_middle_of_a_tool(tmp_path: Path) -> None:
    async with running(tmp_path, tools=blocking) as hark:
        await hark.write("do it", answers=[(Call("act", {"label": "a"}), Call("act", {"label": "b"}))])
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
        await hark.write("/stop")
        assert (await ended(hark)).outcome is Outcome.ABORTED
        assert await hark.until_texts(1) == ["Stopped."]
        assert hark.stored.calls("call_id", "state") == [
            ("call-1", "cut"),
            ("call-2", "cut"),
        ]
        await hark.say("why?")
        assert texts(hark.model.requests[1], "tool")[0].startswith(INTERRUPTED)


async def test_stop_while_waiting_for_a_busy_provider(hark: Hark) -> None:
    await hark.write("hello", answers=[Fail(429, retry_after=20)])
    await hark.time.until_pause(20)
    await hark.write("/stop")
    assert (await ended(hark)).outcome is Outcome.ABORTED
    assert await hark.until_texts(1) == ["Stopped."]
    hark.time.advance(60)  # until then the key is left alone for a while
    assert (await hark.say("and now?")).outcome is Outcome.COMPLETED
    assert len(hark.model.requests) == 2


async def test_a_service_that_ends_leaves_a_turn_that_goes_on(tmp_path: Path) -> None:
    """Drained in the middle of an answer, then of a tool: one run for those who watch, and nothing said twice."""
    async with running(tmp_path, config=SMALL_BLOCKS) as hark:
        gate = Gate()
        await hark.write("tell me", answers=[(Say(LINES), Say("Never seen.", gate=gate))])
        await gate.reached()
        before = await hark.until_texts(2)
    async with running(tmp_path, config=SMALL_BLOCKS, tools=blocking) as hark:
        hark.model.default = lambda request: [Say("And this."), Call("act")]
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
        request = hark.model.requests[0]
        assert [message.role for message in request.messages] == ["user", "assistant", "user"]
        assert request.messages[1].text.split() == " ".join(before).split()
        assert request.messages[2].text == CUT_NOTE
        assert hark.stored.turns("state", "crashes") == [("running", 0)]
    async with running(tmp_path, config=SMALL_BLOCKS) as hark:
        hark.model.default = lambda request: "Done."
        await hark.until(lambda: hark.ends(session_of("1")))
        assert texts(hark.model.requests[0], "tool") == [INTERRUPTED]
        assert hark.stored.turns("state", "crashes", "epoch") == [("done", 0, 3)]
        kinds = [event["type"] for event in hark.stored.events()]
        assert [kind for kind in kinds if kind.startswith("agent")] == ["agent_start", "agent_end"]
        await hark.delivered()
        said = hark.stored.deliveries("said", state="sent")
    assert "|".join(text.strip() for (text,) in said) == "|".join((*before, "And this.", "Done."))
