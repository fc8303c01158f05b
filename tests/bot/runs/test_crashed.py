"""Turns that a crash left running: a person's goes on, a beat's is over; and what steered a run that failed."""

import asyncio
import os
import select
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from agent.events import Outcome, ToolExecutionUpdate
from bot.people.access import OWNER
from bot.persistence.inbox import AcceptedMessage, Duplicate
from bot.service import SWEEP_EVERY
from channels.base import NotAccepted
from channels.message import InboundKind
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, accept_and_claim, answering, opened
from tests.scripted_model import Call
from tests.service import Hark, running, session_of, starts
from tests.standins.script import Fail, Gate, Hang, Say
from tests.stored import disk_full
from tests.watch import PATIENCE, lanes_idle


async def test_a_turn_of_a_person_goes_on_after_a_crash(tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as store:
        await accept_and_claim(store, "hello")
    async with running(tmp_path) as hark:
        hark.model.add("Here I am.")
        assert await hark.until_texts(1) == ["Here I am."]
        await lanes_idle()
        assert hark.stored.turns("state", "epoch", "crashes") == [("done", 2, 1)]


async def test_a_beat_is_not_repeated_after_a_crash(tmp_path: Path) -> None:
    """It is about the moment, and the next one comes by itself."""
    async with opened(tmp_path / "state") as store:
        await accept(store, "look around", InboundKind.WAKE)
        assert await store.turns.claim(KEY, "worker", answering, background=True) is not None
    async with running(tmp_path) as hark:
        await lanes_idle()
        assert hark.stored.turns("state", "outcome", "error_kind") == [("stopped", "aborted", "restart")]
        assert (await hark.say("hello", answers=["At your service."])).texts == ["At your service."]
        assert len(hark.model.requests) == 1


async def test_what_steered_a_run_that_failed_before_reading_it_is_answered(hark: Hark) -> None:
    hang = Hang()
    await hark.write("paint it red", answers=[(hang, Fail(400, message="no such thing")), "Blue it is."])
    await hang.entered()
    (turn,) = hark.stored.turns("turn_id", state="running")[0]
    assert await hark.service.parts.api.steer(turn, "no, blue", OWNER)
    hang.release()
    await hark.until(lambda: len(hark.ends(session_of("1"))) == 2, "the end of both turns")
    assert hark.model.requests[-1].messages[-1].text.endswith("no, blue")
    assert {state for (state,) in hark.stored.messages("state")} <= {"done", "dropped"}


# The beginning of a run is told once, also when the store cannot write before the run can be prepared.


async def test_a_run_that_cannot_be_prepared_at_once_begins_once(tmp_path: Path) -> None:
    left: list[int] = []

    def probe(at: str) -> None:
        if at == "before" and left:
            left[0] -= 1
            if left[0] == 0:
                raise disk_full()

    async with running(tmp_path, probe=probe) as hark:
        await hark.rested()
        left.append(3)  # accepted, claimed, and then the system prompt
        await hark.write("hello")
        await hark.until(lambda: left == [0] and hark.time.pauses(1) == 2, "the pauses of the lane and of the probe")
        hark.time.advance(1)
        await hark.until(lambda: hark.ends(session_of("1")), "the end")
        assert hark.ends(session_of("1"))[0].outcome is Outcome.COMPLETED
        assert len(starts(hark.events)) == 1
        await hark.delivered()


# A message for an idle session is claimed in the commit that accepts it, wherever that changes no order.


async def test_a_question_and_its_answer_wait_for_the_disk_twice(tmp_path: Path) -> None:
    commits: list[str] = []
    asked_after: list[int] = []

    def answer(request: object) -> str:
        asked_after.append(len(commits))
        return "ok"

    async with running(tmp_path, probe=lambda at: commits.append(at) if at == "after" else None) as hark:
        hark.model.default = answer
        await hark.rested()
        for _ in range(3):
            commits.clear()
            await hark.say("hello")
        assert asked_after == [2, 1, 1]  # the first turn of a chat keeps its prompt


async def test_what_a_command_decides_is_true_for_the_message_behind_it(tmp_path: Path) -> None:
    """In one batch, and where the command is still being accepted."""
    holding: list[str] = []
    reached, go_on = threading.Event(), threading.Event()

    def hold(at: str) -> None:
        if at == "before" and holding:
            holding.pop()
            reached.set()
            go_on.wait(5)

    async with running(tmp_path, probe=hold) as hark:
        await hark.say("old")
        await hark.write("/new", "first")
        await hark.until(lambda: len(hark.model.requests) == 2)
        await lanes_idle()
        holding.append("the commit of the command")
        renewing = asyncio.create_task(hark.write("/new"))
        assert await asyncio.to_thread(reached.wait, 5)
        writing = asyncio.create_task(hark.write("second"))
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(renewing, writing)
        await hark.until(lambda: len(hark.model.requests) == 3)
        assert [len(request.messages) for request in hark.model.requests] == [1, 1, 1]
        await lanes_idle()


async def test_nobody_goes_past_those_who_wait_for_a_place(tmp_path: Path) -> None:
    async with running(tmp_path, config={"agent": {"max_concurrent": 1}}) as hark:
        gate = Gate()
        hark.model.default = lambda request: [Say("ok", gate=gate)]
        for n in range(4):
            await hark.write(f"{n}", sender=f"p{n}")
        gate.open()
        await hark.until(lambda: len(hark.model.requests) == 4)
        asked = [request.messages[-1].text[-1] for request in hark.model.requests]
        assert asked == ["0", "1", "2", "3"]
        assert hark.service.parts.lanes.active <= 1


async def test_what_is_not_accepted_is_not_begun_and_keeps_no_place(tmp_path: Path) -> None:
    full = threading.Event()

    def fail(at: str) -> None:
        if at == "before" and full.is_set():
            raise disk_full()

    async with running(tmp_path, probe=fail, config={"agent": {"max_concurrent": 1}}) as hark:
        await hark.say("the lanes are open", "2")
        asked = len(hark.model.requests)
        full.set()
        lost = hark.message("hello")
        with pytest.raises(NotAccepted):
            await hark.accept(lost)
        full.clear()
        await hark.time.until_pause(1.0, 2)
        hark.time.advance(1)
        await lanes_idle()
        assert len(hark.model.requests) == asked
        await hark.accept(lost)
        await hark.until_texts(1)
        await hark.accept(lost)
        await lanes_idle()
        assert len(hark.model.requests) == asked + 1


async def test_whoever_wrote_may_leave_before_it_is_accepted(hark: Hark) -> None:
    await hark.say("the lanes are open")
    writing = asyncio.create_task(hark.write("hello"))
    await asyncio.sleep(0)
    writing.cancel()
    await hark.until_texts(2)
    await lanes_idle()
    assert set(hark.stored.turns("state", "crashes")) == {("done", 0)}


async def test_all_of_a_batch_is_answered(hark: Hark) -> None:
    """What stands behind the first message of its session, also of another sort."""
    await hark.say("the lanes are open", "3")
    hang = Hang()
    hark.model.on("one", hang)
    await hark.accept(
        hark.message("one"),
        hark.message("two"),
        hark.message("three", "2"),
        hark.message("beat", kind=InboundKind.WAKE),
    )
    await hang.entered()
    hang.release()
    await hark.until(lambda: len(hark.model.requests) == 5)
    await lanes_idle()
    assert len(hark.ends(session_of("1"))) == 3


# Every 30 seconds the service looks into its store for what a signal that was lost has left there.


async def unheard(hark: Hark, text: str, kind: InboundKind = InboundKind.MESSAGE) -> int:
    """A message of person 1 that is in the store, and nobody was told; returns its place there."""
    item = AcceptedMessage(message=hark.message(text, kind=kind), session_key=session_of("1"))
    (answer,) = await hark.service.parts.store.inbox.accept([item])
    assert not isinstance(answer, Duplicate)
    return answer.seq


async def test_a_message_that_nobody_was_told_of_is_answered(hark: Hark) -> None:
    hark.model.default = "Here."
    await hark.say("The lanes are open.", sender="2")
    await hark.time.until_pause(SWEEP_EVERY)
    await unheard(hark, "hello?")
    await hark.say("I am heard", sender="2")
    assert hark.channel.texts() == []
    hark.time.advance(SWEEP_EVERY)
    assert await hark.until_texts(1) == ["Here."]


async def test_a_delivery_that_nobody_was_told_of_is_sent(hark: Hark) -> None:
    await hark.time.until_pause(SWEEP_EVERY)
    seq = await unheard(hark, "/help", InboundKind.COMMAND)
    await hark.service.parts.store.commands.answer(seq, [Planned(source=sentence("cmd"), body="Some help.", nonce=1)])
    hark.time.advance(SWEEP_EVERY - 1)
    await hark.write("hello", sender="2")
    await hark.until_texts(1, "2")
    assert hark.channel.texts() == []
    hark.time.advance(1)
    assert await hark.until_texts(1) == ["Some help."]
    await hark.delivered()


# Processes that outlive the service are ended at its next start, whatever became of their turns.

watches_processes = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by descriptor")

# On the host, since a sandbox ends what it holds with its own processes.
EXEC: dict[str, Any] = {"tools": {"exec": {"allowlist": ["/**"]}}}


async def begin(hark: Hark) -> int:
    """Let the model call a command that does not end; returns a descriptor of what that started in its own session."""
    os.mkfifo(hark.state.parent / "workspace" / "pipe")
    hark.model.add(
        Call("exec", {"command": "setsid -f sh -c 'echo $$; read -r line < pipe'; sh -c 'read -r line < pipe'"})
    )
    await hark.write("go")
    await hark.until(lambda: told(hark), "the command")
    return os.pidfd_open(int(told(hark)))


def told(hark: Hark) -> str:
    return "".join(event.text for event in hark.events if isinstance(event, ToolExecutionUpdate))


def ended(process: int, seconds: float = PATIENCE) -> bool:
    return bool(select.select([process], [], [], seconds)[0])


@watches_processes
@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped, not cancelled yet"])
async def test_what_a_crash_left_is_ended_at_the_next_start(tmp_path: Path, stopped: bool) -> None:
    home, after = tmp_path / "before", tmp_path / "after"
    async with running(home, config=EXEC) as hark:
        process = await begin(hark)
        if stopped:  # the transaction of /stop, and the service dies before it has cancelled the run
            ((turn_id,),) = hark.stored.turns("turn_id")
            assert await hark.service.parts.store.stops.abort(turn_id)
        shutil.copytree(hark.state, after / "state", ignore=shutil.ignore_patterns("lock"))
        assert not ended(process, 0)
        async with running(after, config=EXEC) as next_start:
            assert ended(process)
            if not stopped:
                next_start.model.add("done")
                await next_start.until(lambda: next_start.ends(session_of("1")), "the end")
            assert next_start.stored.calls("state", "pid") == [("cut", None)]
        hark.model.add("done")  # the first service lives on, and may yet ask
        hark.model.tolerate("unused")
    os.close(process)


@watches_processes
async def test_a_call_that_has_ended_leaves_no_process_to_look_for(tmp_path: Path) -> None:
    async with running(tmp_path, config=EXEC) as hark:
        await hark.say("go", answers=[(Call("exec", {"command": "true"}), "done")])
        assert hark.stored.calls("state", "pid") == [("done", None)]
