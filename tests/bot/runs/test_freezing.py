"""/freeze and /thaw in a service: what stops, what goes out all the same, and what goes on afterwards, in order."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from agent.tools.base import CallContext, Sink
from bot.persistence.turns import Turn
from bot.runs import freeze_words
from bot.runs.runner import PAUSE
from tests.bot.background.test_due_times import settle
from tests.bot.background.test_schedule import command
from tests.service import Hark, Labelled, ScriptedTool, running, session_of
from tests.standins.script import Break, Call, Gate, Say
from tests.stored import disk_full
from tests.watch import Watch, lanes_idle


class ReachingTool(ScriptedTool):
    """A tool whose calls labelled `out` leave this machine."""

    async def sink(self, parameters: Labelled, context: CallContext) -> Sink:
        """See Tool."""
        return "network" if parameters.label == "out" else "look"


async def freeze(hark: Hark, what: str = "") -> str:
    return await command(hark, f"/freeze {what}".rstrip())


async def idle(hark: Hark) -> None:
    """Return when nothing runs any more."""
    await hark.until(lambda: hark.service.parts.lanes.active == 0, "the end of all runs")
    await lanes_idle()


async def test_a_freeze_in_the_middle_of_a_stream_and_what_was_said_meanwhile(tmp_path: Path) -> None:
    config = {"channels": {"telegram": {"streaming": {"min_chars": 1}}}, "queue": {"mode": "followup"}}
    async with running(tmp_path, config=config) as hark:
        gate = Gate()
        await hark.write("tell me", answers=[(Say("The first part.\n\n", 1), Say("The second part.", 1, gate))])
        await gate.reached()
        told = await freeze(hark)
        assert told.startswith("Everything is frozen")
        await idle(hark)
        assert hark.stored.turns("state", "crashes") == [("queued", 0)]
        await hark.write("and more")
        await hark.write("and still more")
        await idle(hark)
        said = hark.channel.texts()
        assert [text for text in said if "I am frozen" in text] == [said[-1]]  # once, however many messages
        assert len(hark.model.requests) == 1
        hark.model.add("It went on.")
        hark.model.add("More.")
        hark.model.add("Still more.")
        thawed = await command(hark, "/thaw")
        assert thawed.startswith("Thawed: everything. In order there go on: 1 stopped turn, 2 messages")
        await hark.until(lambda: len(hark.stored.turns(state="done")) == 3, "all turns")
        await hark.delivered()
        assert hark.channel.texts()[-3:] == ["It went on.", "More.", "Still more."]
        assert hark.stored.turns("crashes") == [(0,)] * 3


async def test_a_batch_stops_between_two_calls_and_goes_on_with_the_second(tmp_path: Path) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def act(label: str) -> str:
        if label == "one":
            entered.set()
            await release.wait()
        return f"did {label}"

    made: list[ScriptedTool] = []

    def tools(watch: Watch) -> list[ScriptedTool]:
        made.append(ScriptedTool("act", act, watch))
        return made

    async with running(tmp_path, tools=tools) as hark:
        await hark.write("do both", answers=[(Call("act", {"label": "one"}), Call("act", {"label": "two"}))])
        await entered.wait()
        await freeze(hark, "tools")
        release.set()
        await idle(hark)
        assert made[0].ended == ["one"]  # what had begun was not stopped
        assert hark.stored.calls("state") == [("done",), ("asked",)]
        assert hark.stored.turns("state", "crashes") == [("queued", 0)]
        await hark.until(lambda: "Tools are frozen for now" in hark.channel.texts()[-1], "the line about it")
        hark.model.add("hello to you")
        assert (await hark.say("hello", sender="2")).texts == ["hello to you"]  # who needs no tool is answered
        hark.model.add("both done")
        await command(hark, "/thaw")
        await hark.until(lambda: hark.channel.texts()[-1] == "both done", "the answer")
        assert made[0].ended == ["one", "two"]


async def test_only_calls_that_reach_out_wait_for_the_network(tmp_path: Path) -> None:
    async def act(label: str) -> str:
        return f"did {label}"

    made: list[ReachingTool] = []

    def tools(watch: Watch) -> list[ReachingTool]:
        made.append(ReachingTool("act", act, watch))
        return made

    async with running(tmp_path, tools=tools) as hark:
        assert "models are asked as before" in await freeze(hark, "network")
        await hark.write("do both", answers=[Call("act", {"label": "here"}), Call("act", {"label": "out"})])
        await hark.until(lambda: "reach out are frozen" in hark.channel.texts()[-1], "the line about it")
        await idle(hark)
        assert made[0].begun == ["here"]
        hark.model.add("done")
        await command(hark, "/thaw")
        await hark.until(lambda: hark.channel.texts()[-1] == "done", "the answer")
        assert made[0].begun == ["here", "out"]


async def test_a_call_that_runs_is_ended_by_a_freeze_of_everything(tmp_path: Path) -> None:
    entered = asyncio.Event()

    async def act(label: str) -> str:
        entered.set()
        await asyncio.Event().wait()
        return ""

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", act, watch)]) as hark:
        await hark.write("do it", answers=[Call("act", {"label": "one"})])
        await entered.wait()
        await freeze(hark)
        await idle(hark)
        assert hark.stored.calls("state") == [("cut",)]
        hark.model.add("I do not know what became of it.")
        await command(hark, "/thaw")
        await hark.until(lambda: "what became of it" in hark.channel.texts()[-1], "the answer")


async def test_a_send_that_waits_does_not_go_out_and_commands_are_answered(hark: Hark) -> None:
    hark.channel.wait = 5.0
    await hark.write("ask", answers=["the answer"])
    await hark.until(lambda: hark.stored.turns(state="done"), "the end of the turn")
    await hark.write("/freeze")
    await hark.until(lambda: hark.stored.everything()["freeze"], "the freeze")
    hark.channel.wait = 0.0
    hark.time.advance(5)
    await hark.until_texts(1)
    assert "Everything is frozen" in hark.channel.texts()[0]
    assert "idle" in await command(hark, "/status")
    assert hark.stored.deliveries("body", state="planned") == [("the answer",)]
    await hark.write("/thaw")
    *_, answer, thawed = await hark.until_texts(4)
    assert answer == "the answer"  # in the order in which they were planned
    assert "In order there go on: 1 delivery." in thawed


async def test_it_holds_over_a_restart_and_tells_nobody_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await freeze(hark)
        await hark.write("one")
        await hark.until_texts(2)
        time = hark.time
    async with running(tmp_path, time=time) as hark:
        await hark.write("two")
        await idle(hark)
        assert hark.channel.texts() == []
        assert hark.model.requests == []
        assert "everything since" in await command(hark, "/status")
        hark.model.add("first")
        hark.model.add("second")
        await command(hark, "/thaw")
        await hark.until(lambda: hark.channel.texts()[-2:] == ["first", "second"], "the answers in order")
        hark.time.advance(1)
        await freeze(hark)
        await hark.write("three")  # another freeze is told anew
        await hark.until(lambda: "I am frozen" in hark.channel.texts()[-1], "the line")


async def test_no_beat_is_fired_and_the_next_one_comes_after_the_thaw(tmp_path: Path) -> None:
    async with running(tmp_path, config={"heartbeat": {"every": "30m", "prompt": "look around"}}) as hark:
        await hark.say("hi", answers=["hello"])
        await freeze(hark, "beats")
        hark.time.advance(3600)
        await settle(hark)
        assert hark.stored.firings() == []
        assert "frozen" in await command(hark, "/heartbeat now")
        hark.model.add("HEARTBEAT_OK")
        await command(hark, "/thaw")
        await hark.until(lambda: hark.stored.firings(outcome="quiet"), "the beat")


async def test_who_is_no_owner_does_not_freeze(hark: Hark) -> None:
    assert (await hark.say("/freeze", sender="2", answers=["I cannot do that."])).texts == ["I cannot do that."]
    assert hark.stored.everything()["freeze"] == []


async def test_a_run_that_was_claimed_just_before_is_given_back(monkeypatch: pytest.MonkeyPatch, hark: Hark) -> None:
    parts = hark.service.parts
    claim = parts.lanes.runner.claim

    async def just_before(session_key: str, **options: Any) -> Turn | None:
        turn = await claim(session_key, **options)
        monkeypatch.undo()
        await parts.freezer.freeze("all", "somebody", "somewhere")
        return turn

    monkeypatch.setattr(parts.lanes.runner, "claim", just_before)
    await hark.write("one")
    await hark.until(lambda: hark.stored.turns(state="queued", epoch=1), "the turn in the queue")
    await hark.until_texts(1)
    assert hark.model.requests == []
    hark.model.add("answered")
    await command(hark, "/thaw")
    await hark.until(lambda: hark.channel.texts()[-1] == "answered", "the answer")
    assert hark.stored.turns("state", "crashes") == [("done", 0)]


async def test_a_stop_drops_what_a_freeze_keeps(hark: Hark) -> None:
    await freeze(hark)
    await hark.write("one")
    await hark.until_texts(2)
    assert "1" in await command(hark, "/stop")
    await command(hark, "/thaw")
    await idle(hark)
    assert hark.model.requests == []


async def test_a_run_without_its_turn_asks_no_model(tmp_path: Path) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    async def act(label: str) -> str:
        entered.set()
        await release.wait()
        return "did it"

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", act, watch)]) as hark:
        await hark.write("do it", answers=[Call("act")])
        await entered.wait()
        await hark.service.parts.store.freezes.freeze("all", "somebody", "somewhere")  # nobody cancels the run
        release.set()
        await idle(hark)
        assert len(hark.model.requests) == 1
        assert hark.stored.calls("state") == [("done",)]
        hark.model.add("done")
        await command(hark, "/thaw")
        await hark.until(lambda: hark.channel.texts()[-1] == "done", "the answer")
        assert hark.stored.turns("state", "crashes") == [("done", 0)]


async def test_a_model_that_failed_is_not_asked_again(hark: Hark) -> None:
    hang = await hark.hanging("ask", then=Break())
    await hark.service.parts.store.freezes.freeze("all", "somebody", "somewhere")
    hang.release()
    await idle(hark)
    assert len(hark.model.requests) == 1
    hark.model.add("done")
    await command(hark, "/thaw")
    await hark.until(lambda: hark.channel.texts()[-1] == "done", "the answer")


async def test_what_reads_the_web_reaches_out_whoever_wrote_the_address(tmp_path: Path) -> None:
    async def act(label: str) -> str:
        return "read"

    made: list[ScriptedTool] = []

    def tools(watch: Watch) -> list[ScriptedTool]:
        made.append(ScriptedTool("act", act, watch))
        made[0].reads_web = True
        return made

    async with running(tmp_path, tools=tools) as hark:
        await freeze(hark, "network")
        await hark.write("read it", answers=[Call("act")])
        await hark.until(lambda: "reach out are frozen" in hark.channel.texts()[-1], "the line about it")
        await idle(hark)
        assert made[0].begun == []


async def test_what_was_stopped_is_queued_as_soon_as_the_store_can_write(tmp_path: Path) -> None:
    full, entered = threading.Event(), asyncio.Event()

    def fail(at: str) -> None:
        if at == "before" and full.is_set():
            raise disk_full()

    async def act(label: str) -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            full.set()  # after the freeze was stored, and before the turn is
        return ""

    async with running(tmp_path, probe=fail, tools=lambda watch: [ScriptedTool("act", act, watch)]) as hark:
        await hark.write("do it", answers=[Call("act")])
        await entered.wait()
        await hark.write("/freeze")
        await hark.until(lambda: full.is_set() and hark.service.parts.store.failure, "the full disk")
        assert hark.stored.turns("state") == [("running",)]
        full.clear()
        for _ in range(20):
            await hark.until(lambda: hark.time.pauses(PAUSE), "another try")
            hark.time.advance(PAUSE)
            await asyncio.sleep(0)
        assert hark.stored.turns("state", "crashes") == [("queued", 0)]


async def test_commands_in_the_background_end_with_everything(monkeypatch: pytest.MonkeyPatch, hark: Hark) -> None:
    ended: list[tuple[str, str]] = []
    monkeypatch.setattr(hark.service.parts.background, "stop", lambda key, below="": ended.append((key, below)))
    await freeze(hark, "tools")
    assert ended == []
    await freeze(hark)
    assert ended == [("", "agent:")]
    assert session_of("1").startswith("agent:")


async def test_nothing_else_asks_a_model(hark: Hark) -> None:
    await hark.say("hello")
    await freeze(hark)
    asked = len(hark.model.requests)
    assert await command(hark, "/compact") == freeze_words.COMPACT
    assert len(hark.model.requests) == asked
