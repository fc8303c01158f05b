"""Order, places, fairness and memory of the lanes, in the real service, also while the store cannot write."""

import asyncio
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.events import Outcome, ToolExecutionStart
from bot import wording
from bot.persistence.inbox import AcceptedMessage
from bot.runs import queues
from bot.service import PROBE_EVERY, SWEEP_EVERY
from channels.message import InboundKind
from tests.scripted_model import ScriptedModel
from tests.service import Hark, ScriptedTool, running, session_of, starts
from tests.standins.script import Call, Gate, Hang, Say
from tests.stored import disk_full
from tests.watch import LoopTime, lanes_idle

BEAT = InboundKind.WAKE


def questions(hark: Hark) -> list[str]:
    """What was begun to be answered, in the order in which it got a place."""
    begun = [event["run"]["turn_id"] for event in hark.stored.events() if event["type"] == "agent_start"]
    return [text for turn in begun for text in hark.stored.texts(turn_id=turn)]


class Crowd:
    """A model that answers when it is let, and counts how many wait."""

    def __init__(self, model: ScriptedModel) -> None:
        self._model = model
        self.most = 0
        self.gate = Gate()
        model.default = lambda request: self._answer(request.last_user_text)

    def _answer(self, text: str) -> list[Say]:
        self.most = max(self.most, self._model.active)
        return [Say(f"re: {text.rpartition(chr(10))[2]}", chunks=1, gate=self.gate)]


async def test_messages_of_a_session_are_answered_in_order_and_one_at_a_time(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        most = 0

        def answer(request: object) -> str:
            nonlocal most
            most = max(most, hark.model.active + 1)
            return "ok"

        hark.model.default = answer
        await hark.write("a", "b", "c")
        await hark.write("d")
        await hark.until(lambda: len(hark.ends(session_of("1"))) == 4)
        assert questions(hark) == ["a", "b", "c", "d"]
        assert most == 1
        assert [request.messages[-2].text for request in hark.model.requests[1:]] == ["ok"] * 3


async def test_many_sessions_share_the_places_and_take_turns(tmp_path: Path) -> None:
    people = [str(n) for n in range(1, 9)]
    owners = [f"telegram:{person}" for person in people]
    async with running(tmp_path, config={"agent": {"max_concurrent": 3}, "owners": owners}) as hark:
        crowd = Crowd(hark.model)
        await hark.accept(*(hark.message(f"{person}.{n}", person) for n in range(2) for person in people))
        await hark.until(lambda: hark.model.active == 3)
        assert questions(hark) == ["1.0", "2.0", "3.0"]
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 16 and hark.service.parts.lanes.active == 0)
        asked_for = questions(hark)
        assert crowd.most <= 3
        assert sorted(asked_for) == sorted(f"{person}.{n}" for n in range(2) for person in people)
        for person in people:
            assert asked_for.index(f"{person}.0") < asked_for.index(f"{person}.1")
        assert max(asked_for.index(f"{person}.0") for person in people) <= 9  # nobody twice before all were once


async def test_the_background_has_half_of_the_places(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_concurrent": 4}}) as hark:
        crowd = Crowd(hark.model)
        beats = [hark.message(f"beat {n}", f"b{n}", kind=BEAT) for n in range(5)]
        await hark.accept(*beats)
        await hark.until(lambda: hark.model.active == 2)
        await hark.write("a person", sender="1")
        await hark.write("another", sender="2")
        await hark.until(lambda: hark.model.active == 4)
        assert sorted(questions(hark)) == ["a person", "another", "beat 0", "beat 1"]
        assert hark.service.parts.lanes.active == 4
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 7)


async def test_more_sessions_than_memory_holds_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "READY", 3)
    async with running(tmp_path, config={"agent": {"max_concurrent": 2}}) as hark:
        crowd = Crowd(hark.model)
        people = [str(n) for n in range(1, 21)]
        await hark.accept(*(hark.message(f"from {person}", person) for person in people))
        beats = [hark.message(f"beat {n}", f"b{n}", kind=BEAT) for n in range(6)]
        await hark.accept(*beats)
        await hark.until(lambda: hark.model.active == 2)
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 26)
        assert [text for text in questions(hark) if "from" in text] == [f"from {person}" for person in people]
        assert [text for text in questions(hark) if "beat" in text] == [f"beat {n}" for n in range(6)]
        await lanes_idle()
        assert hark.stored.messages(state="waiting") == []


async def test_those_who_wait_in_the_store_are_not_overtaken_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While memory is full, those who write later stand behind those who were not remembered."""
    monkeypatch.setattr(queues, "READY", 2)
    async with running(tmp_path, config={"agent": {"max_concurrent": 1}}) as hark:
        crowd = Crowd(hark.model)
        await hark.accept(*(hark.message(f"{n}", f"p{n}") for n in range(1, 7)))
        await hark.until(lambda: hark.model.active == 1)
        for n in range(7, 15):
            crowd.gate.let()
            before = len(hark.model.requests)
            await hark.until(lambda before=before: len(hark.model.requests) > before)
            await hark.write(f"{n}", sender=f"p{n}")
        crowd.gate.open()
        await hark.until(lambda: len(hark.model.requests) == 14)
        assert questions(hark) == [f"{n}" for n in range(1, 15)]


async def test_a_background_that_waits_does_not_hold_up_people_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "READY", 2)
    owners = [f"telegram:{n}" for n in range(6)]
    async with running(tmp_path, config={"agent": {"max_concurrent": 2}, "owners": owners}) as hark:
        hang = Hang()
        hark.model.on("beat 0", hang)
        await hark.accept(hark.message("beat 0", "b0", kind=BEAT), hark.message("beat 1", "b1", kind=BEAT))
        await hang.entered()
        await hark.accept(*(hark.message(f"{n}", f"{n}") for n in range(6)))
        await hark.until(lambda: len(hark.model.requests) == 7)
        assert questions(hark)[1:] == [f"{n}" for n in range(6)]
        hang.release()
        await hark.until(lambda: len(hark.model.requests) == 8)


@pytest.mark.parametrize("kind", [InboundKind.WAKE, InboundKind.JOB, InboundKind.CHILD])
async def test_what_nobody_wrote_runs_as_soon_as_it_is_accepted(tmp_path: Path, kind: InboundKind) -> None:
    async with running(tmp_path) as hark:
        await hark.write("wake up", kind=kind)
        await hark.until_texts(1)
        await lanes_idle()
        assert hark.stored.turns("kind") == [("beat" if kind is InboundKind.WAKE else kind,)]


async def test_the_sweep_starts_what_a_lost_signal_left(tmp_path: Path) -> None:
    """A message that stands in the store while nobody was told of it."""
    async with running(tmp_path) as hark:
        await hark.time.until_pause(SWEEP_EVERY)
        unheard = [
            AcceptedMessage(message=hark.message(kind.value, "1", kind=kind), session_key=kind.value)
            for kind in (InboundKind.API, InboundKind.JOB)
        ]
        await hark.service.parts.store.inbox.accept(unheard)
        hark.time.advance(SWEEP_EVERY)
        await hark.until_texts(2)


async def test_a_claim_that_fails_unexpectedly_is_tried_again(tmp_path: Path) -> None:
    """Its row points to a conversation that is not there; later it is there."""
    async with running(tmp_path) as hark:
        await hark.time.until_pause(SWEEP_EVERY)
        waiting = AcceptedMessage(message=hark.message("hello"), session_key=session_of("1"))
        await hark.service.parts.store.inbox.accept([waiting])
        hark.stored.spoil("UPDATE inbox SET conv_id=99")
        with capture_logs() as logs:
            hark.service.parts.lanes.wake(session_of("1"))
            await lanes_idle()
        assert {line["event"] for line in logs} == {"lane failed"}
        hark.stored.spoil("UPDATE inbox SET conv_id=1")
        hark.time.advance(SWEEP_EVERY)
        await hark.until_texts(1)


async def test_what_was_accepted_before_the_end_is_answered_after_the_start(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_concurrent": 2}}) as hark:
        Crowd(hark.model)
        await hark.accept(*(hark.message(f"{n}.{p}", p) for n in range(2) for p in ("1", "2", "3")))
        await hark.until(lambda: hark.model.active == 2)
    async with running(tmp_path) as hark:
        hark.model.default = lambda request: f"re: {request.last_user_text.rpartition(chr(10))[2]}"
        await hark.until(lambda: len(hark.channel.sent) == 6)
        assert [hark.channel.texts(person) for person in "123"] == [[f"re: 0.{p}", f"re: 1.{p}"] for p in "123"]
        assert set(hark.stored.turns("state", "crashes")) == {("done", 0)}


async def test_a_drain_lets_runs_finish_and_cuts_the_rest(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"drain_seconds": 30}}) as hark:
        time = LoopTime()
        gate, hang = Gate(), Hang()
        hark.model.on("quick", Say("Just in time.", gate=gate))
        hark.model.on("slow", hang)
        await hark.write("quick", sender="1")
        await hark.write("slow", sender="2")
        await gate.reached()
        await hang.entered()
        closing = asyncio.create_task(hark.service.parts.lanes.drain(30))
        await asyncio.sleep(0)
        await hark.write("too late", sender="3")
        gate.open()
        await hark.until_texts(1)
        await time.advance(31)
        await closing
        assert hark.channel.texts() == ["Just in time."]
        assert [
            *hark.stored.turns("state", "crashes", session_key=session_of("1")),
            *hark.stored.turns("state", "crashes", session_key=session_of("2")),
        ] == [("done", 0), ("queued", 0)]
        assert hark.stored.turns(session_key=session_of("3")) == [], "nothing is begun any more"
        assert len(hark.model.requests) == 2


async def test_a_drain_during_a_claim_counts_no_crash(tmp_path: Path) -> None:
    holding: list[str] = []
    reached, go_on = threading.Event(), threading.Event()

    def hold(at: str) -> None:
        if at == "before" and holding:
            holding.pop()
            reached.set()
            go_on.wait(5)

    async with running(tmp_path, probe=hold) as hark:
        holding.append("the commit of acceptance and claim")
        writing = asyncio.create_task(hark.write("hello"))
        assert await asyncio.to_thread(reached.wait, 5)
        draining = asyncio.create_task(hark.service.parts.lanes.drain(0))
        await asyncio.sleep(0)
        go_on.set()
        await writing
        await draining
        assert hark.stored.turns("state", "crashes", "epoch") == [("queued", 0, 1)]
        assert hark.model.requests == []
    async with running(tmp_path) as hark:
        await hark.until_texts(1)
        assert hark.stored.turns("state", "crashes") == [("done", 0)]


async def test_a_store_that_cannot_write_during_a_run(tmp_path: Path) -> None:
    """The run waits without a word, and goes on as soon as the store can write again."""
    full = threading.Event()

    def fail(at: str) -> None:
        if at == "before" and full.is_set():
            raise disk_full()

    async def fill(label: str) -> str:
        full.set()
        return "filled"

    async with running(tmp_path, probe=fail, tools=lambda watch: [ScriptedTool("act", fill, watch)]) as hark:
        hark.model.add("I try.", Call("act"))
        hark.model.add("It is unknown.")
        await hark.write("do it")
        await hark.until(lambda: full.is_set() and hark.service.parts.store.failure)
        assert not hark.service.parts.health.view().ready
        for _ in range(3):
            await hark.time.until_pause(PROBE_EVERY, 2)
            hark.time.advance(PROBE_EVERY)
        full.clear()
        while not hark.ends(session_of("1")):
            await hark.until(lambda: hark.time.pauses(PROBE_EVERY) or hark.ends(session_of("1")))
            hark.time.advance(PROBE_EVERY)
            await asyncio.sleep(0)
        await hark.delivered()
        assert hark.service.parts.health.view().ready
        assert hark.channel.texts() == ["I try.", "It is unknown."]
        (end,) = hark.ends(session_of("1"))
        assert (end.outcome, end.run.attempt) == (Outcome.COMPLETED, 2)
        assert len([event for event in hark.events if isinstance(event, ToolExecutionStart)]) == 1
        assert len(starts(hark.events)) == 1
        assert hark.stored.turns("crashes", "state") == [(0, "done")]


async def test_waiting_for_the_store_is_no_running_time(tmp_path: Path) -> None:
    full = threading.Event()

    def fail(at: str) -> None:
        if at == "before" and full.is_set():
            raise disk_full()

    async def fill(label: str) -> str:
        full.set()
        return "filled"

    async with running(tmp_path, probe=fail, tools=lambda watch: [ScriptedTool("act", fill, watch)]) as hark:
        hang = Hang()
        hark.model.add(Call("act"))
        hark.model.add(hang)
        await hark.write("do it")
        await hark.until(lambda: full.is_set() and hark.service.parts.store.failure)
        await hark.time.until_pause(PROBE_EVERY, 2)
        hark.time.advance(400)
        full.clear()
        while len(hark.model.requests) < 2:
            await hark.until(lambda: hark.time.pauses(PROBE_EVERY) or len(hark.model.requests) == 2)
            hark.time.advance(PROBE_EVERY)
            await asyncio.sleep(0)
        assert hark.stored.turns("ran") == [(0,)]


async def test_a_run_that_cannot_be_prepared_is_told_and_has_a_beginning_and_an_end(tmp_path: Path) -> None:
    async with running(tmp_path, channel={"rules": "half a pair: \ud800"}) as hark:  # no prompt of it can be stored
        reply = await hark.say("hello")
        assert reply.texts == [wording.failure("internal")]
        assert [event.type for event in reply.events] == ["agent_start", "message_start", "agent_end"]
        assert reply.outcome is Outcome.FAILED
    async with running(tmp_path) as hark:
        assert (await hark.say("hello")).outcome is Outcome.COMPLETED


async def test_a_block_that_cannot_be_rendered_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    def render(text: str) -> list[str]:
        if "dragon" in text:
            raise ValueError("here be dragons")
        return [text]

    async with running(tmp_path) as hark:
        hark.channel.rendered = render
        hark.model.add("A dragon.")
        reply = await hark.say("hello")
        assert reply.texts == [wording.failure("internal")]
        assert [event.type for event in reply.events if event.type.startswith("agent")] == ["agent_start", "agent_end"]
        assert (await hark.say("hello")).outcome is Outcome.COMPLETED
