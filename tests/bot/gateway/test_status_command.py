"""/status: what runs and for how long, what it takes and costs, and who is told how much."""

import asyncio
import re
from pathlib import Path

from agent.events import ToolExecutionStart
from bot.gateway.loop_lag import COUNTED, LoopLag
from tests.bot.inbound.test_commands import command
from tests.service import ScriptedTool, running
from tests.standins.script import Call


async def test_the_tool_at_work_and_how_long(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def work(label: str) -> str:
        await go_on.wait()
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", work, watch)]) as hark:
        hark.model.add(Call("act", {"label": "x"}))
        hark.model.add("done")
        await hark.write("do it")
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
        hark.time.advance(75)
        shown = await command(hark, "/status")
        assert "**This conversation** working, 0 waiting, running for 1 min 15 s, `act` for 1 min 15 s" in shown
        go_on.set()
        await hark.until(lambda: "done" in hark.channel.texts(), "the answer")
        assert "**This conversation** idle, 0 waiting\n" in await command(hark, "/status")


async def test_owners_are_told_of_the_service_and_guests_of_their_conversation(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("hello")
        await hark.say("hello", "2")
        hark.service.parts.health.lag._late.append(0.25)
        shown, short = await command(hark, "/status"), await command(hark, "/status", "2")
        assert re.search(r"\*\*Context\*\* [\d,]+ of [\d,]+ tokens \(\d+%\)", short)
        assert re.findall(r"\*\*(.+?)\*\*", short) == ["Model", "This conversation", "Context"]
        assert re.search(r"\*\*Today\*\* [1-9][\d,]* tokens", shown)
        assert "**Event loop** 250 ms late, 250 ms at most in the last minute" in shown
        for name in ("Heartbeat", "Sandbox", "Runs", "Deliveries", "Telegram"):
            assert f"**{name}** " in shown


async def test_the_lag_of_the_loop_is_the_worst_of_a_minute() -> None:
    lag = LoopLag()
    assert await lag.sentence() == ""
    lag._late.extend([0.5, *([0.001] * (COUNTED - 1))])
    assert await lag.sentence() == "1 ms late, 500 ms at most in the last minute"
    lag._late.append(0.002)
    assert await lag.sentence() == "2 ms late, 2 ms at most in the last minute"


async def test_a_loop_that_is_blocked_is_late() -> None:
    loop, lag = asyncio.get_running_loop(), LoopLag()
    now, planned = loop.time(), list[tuple[object, ...]]()
    loop.time = lambda: now  # type: ignore[method-assign]
    try:
        original = loop.call_at
        loop.call_at = lambda when, callback, *args, **_: planned.append((callback, args))  # type: ignore
        lag.start()
        now += 1.3
        (callback, args), *_ = planned
        callback(*args)  # type: ignore[operator]
    finally:
        del loop.time
        loop.call_at = original  # type: ignore[method-assign]
    assert await lag.sentence() == "300 ms late, 300 ms at most in the last minute"
    assert len(planned) == 2, "it goes on"
