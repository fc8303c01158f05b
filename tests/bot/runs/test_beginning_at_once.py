"""A message for an idle session is claimed in the commit that accepts it, wherever that changes no order."""

import asyncio
import threading
from pathlib import Path

import pytest

from channels.base import NotAccepted
from channels.message import InboundKind
from tests.service import running, session_of
from tests.standins.script import Gate, Hang, Say
from tests.stored import disk_full
from tests.watch import lanes_idle


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


async def test_whoever_wrote_may_leave_before_it_is_accepted(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("the lanes are open")
        writing = asyncio.create_task(hark.write("hello"))
        await asyncio.sleep(0)
        writing.cancel()
        await hark.until_texts(2)
        await lanes_idle()
        assert set(hark.stored.turns("state", "crashes")) == {("done", 0)}


async def test_all_of_a_batch_is_answered(tmp_path: Path) -> None:
    """What stands behind the first message of its session, also of another sort."""
    async with running(tmp_path) as hark:
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
