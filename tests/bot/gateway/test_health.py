"""What `/readyz` and `hark status` say about the store."""

import asyncio
import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.events import ToolExecutionStart
from bot.gateway.balance import CHECK_EVERY
from bot.gateway.loop_lag import COUNTED, LoopLag
from bot.gateway.status import Health
from bot.gateway.views import ChannelView, ReadinessView
from bot.persistence.recovery import Salvage
from tests.bot.inbound.test_commands import command
from tests.service import Hark, ScriptedTool, running
from tests.standins.script import Call
from tests.stored import Like

NOW = 1_700_000_000_000
FOUND = Salvage("malformed", Path("/state/hark.db.damaged-1"), {"entry": 40, "inbox": 2}, at=5)
WORDS = "the store was damaged: kept as /state/hark.db.damaged-1, 42 rows recovered"


def report(failure: str | None, salvage: Salvage | None, *, serving: bool = True) -> ReadinessView:
    health = Health((), SimpleNamespace(failure=failure, salvage=salvage), lambda: NOW)
    health.serving = serving
    return health.view()


def test_a_whole_store_is_not_spoken_of() -> None:
    assert report(None, None).channels == {}


def test_a_recovered_store_is_ready_and_says_what_happened() -> None:
    found = report(None, FOUND)
    assert found.ready
    assert found.channels == {"store": ChannelView(state="ready", since="1970-01-01T00:00:00.005Z", detail=WORDS)}


def test_tables_that_lack_rows_are_named() -> None:
    found = report(None, replace(FOUND, lost=("entry",)))
    assert found.channels["store"].detail == f"{WORDS}, not all of entry"


def test_a_store_that_cannot_write_is_not_ready_whatever_was_recovered() -> None:
    found = report("the store cannot write: disk full", FOUND)
    assert not found.ready
    assert found.channels["store"].detail == "the store cannot write: disk full"


def test_what_does_not_serve_yet_or_any_more_is_not_ready() -> None:
    assert not report(None, None, serving=False).ready


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_console_that_is_not_enabled_is_not_listed(tmp_path: Path, enabled: bool) -> None:
    async with running(tmp_path, config={"channels": {"console": {"enabled": enabled}}}) as hark:
        assert ("console" in hark.service.parts.health.view().channels) is enabled


def damage(path: Path) -> None:
    """Break the first byte of a store that is closed."""
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


async def test_the_service_tells_of_its_recovered_store(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("hello")
    damage(hark.state / "hark.db")
    async with running(tmp_path) as hark:
        health = hark.service.parts.health.view()
        assert health.ready
        assert health.channels["store"].detail.startswith("the store was damaged: kept as ")
        assert health.channels["store"].detail.endswith("nothing of it could be read, so a new store was begun")


async def test_an_owner_is_told_of_a_salvage_once(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("hello")
    damage(hark.state / "hark.db")
    async with running(tmp_path) as hark:
        await hark.until(lambda: hark.stored.deliveries(source=Like("salvage:%")), "the notice")
        ((told,),) = hark.stored.deliveries("body", source=Like("salvage:%"))
        assert told.startswith("The store was damaged (")
        (kept,) = hark.state.glob("hark.db.damaged-*[0-9]")
        assert str(kept) in told
    async with running(tmp_path) as hark:
        await hark.write("hello again")
        await hark.until_texts(1)
        assert len(hark.stored.deliveries(source=Like("salvage:%"))) == 1


# When the book of messages is checked.


def red(hark: Hark) -> str:
    found = hark.service.parts.health.view()
    return "" if found.ready else found.channels["balance"].detail


async def test_it_is_checked_at_the_start_and_again_by_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("one")
        await hark.say("two")
    hark.stored.spoil("DELETE FROM turn WHERE turn_id=(SELECT turn_id FROM inbox WHERE seq=1)")
    async with running(tmp_path) as hark:
        await hark.until(lambda: red(hark), "red")
        assert "1 (its turn is missing)" in red(hark)
        book = await hark.service.parts.book.accept_message("1")
        assert (book.unexplained, red(hark)) == ((), "")

        hark.stored.spoil("DELETE FROM delivery WHERE delivery_id=2")
        await hark.time.until_pause(CHECK_EVERY)
        hark.time.advance(CHECK_EVERY)
        await hark.until(lambda: red(hark), "red again")
        assert "2 (a delivery of it is missing)" in red(hark)


# /status: what runs and for how long, what it takes and costs, and who is told how much.


async def test_the_tool_at_work_and_how_long(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def work(label: str) -> str:
        await go_on.wait()
        return label

    async with running(tmp_path, tools=lambda watch: [ScriptedTool("act", work, watch)]) as hark:
        await hark.write("do it", answers=[Call("act", {"label": "x"}), "done"])
        await hark.until(lambda: any(isinstance(event, ToolExecutionStart) for event in hark.events))
        hark.time.advance(75)
        shown = await command(hark, "/status")
        assert "**This conversation** working, 0 waiting, running for 1 min 15 s, `act` for 1 min 15 s" in shown
        go_on.set()
        await hark.until(lambda: "done" in hark.channel.texts(), "the answer")
        assert "**This conversation** idle, 0 waiting\n" in await command(hark, "/status")


async def test_owners_are_told_of_the_service_and_guests_of_their_conversation(hark: Hark) -> None:
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
