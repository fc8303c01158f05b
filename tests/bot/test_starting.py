"""A start that cannot read or write: it waits, says so, and goes on by itself; nothing of it ends in silence."""

import asyncio
from pathlib import Path

import pytest

from bot.service import PROBE_EVERY
from channels.base import HealthState
from tests.scripted_model import ScriptedModel
from tests.service import Hark, running, settings
from tests.serving import serving
from tests.standins.script import Hang
from tests.watch import Watch


class LateModel(ScriptedModel):
    """Its library is imported when the test says so."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(watch)
        self.imported = asyncio.Event()

    async def preload(self) -> None:
        await self.imported.wait()


def store_of(hark: Hark) -> tuple[bool, str | None, str]:
    """Whether the service is ready, and what is said of the store."""
    found = hark.service.parts.health.view()
    store = found.channels.get("store")
    return (found.ready, store.state, store.detail) if store else (found.ready, None, "")


@pytest.mark.parametrize("table", ["turn", "delivery", "inbox"])
async def test_every_step_of_the_start_waits(tmp_path: Path, table: str) -> None:
    async with running(tmp_path, config={"agent": {"max_concurrent": 1}}) as hark:
        await hark.write("hello", answers=[Hang()])
        await hark.model.until_requests(1)
    hark.stored.rename(table, "away")
    async with running(tmp_path, wait=False) as hark:
        hark.model.default = "answered"
        for _ in range(3):
            await hark.time.until_pause(PROBE_EVERY)
            ready, state, detail = store_of(hark)
            assert (ready, state) == (False, HealthState.DOWN)
            assert f"no such table: {table}" in detail
            assert hark.channel.sink is None, "nothing is accepted"
            hark.time.advance(PROBE_EVERY)
            await asyncio.sleep(0)
        hark.stored.rename("away", table)
        await hark.time.until_pause(PROBE_EVERY)
        hark.time.advance(PROBE_EVERY)
        await hark.until(lambda: hark.service.parts.health.view().ready, "the end of the start")
        assert await hark.until_texts(1) == ["answered"]


async def test_the_lanes_wait_as_well(tmp_path: Path) -> None:
    model = LateModel(Watch())
    async with running(tmp_path, model=model) as hark:
        await hark.write("hello")
        hark.stored.rename("inbox", "away")
        model.imported.set()
        for _ in range(3):
            await hark.until(lambda: store_of(hark)[0] is False, "red")
            await hark.time.until_pause(PROBE_EVERY, 2)  # the lanes, and the probe of the store
            assert "no such table: inbox" in store_of(hark)[2]
            hark.time.advance(PROBE_EVERY)
            await asyncio.sleep(0)
        hark.stored.rename("away", "inbox")
        await hark.time.until_pause(PROBE_EVERY, 2)
        hark.time.advance(PROBE_EVERY)
        await hark.until_texts(1)
        assert store_of(hark) == (True, None, "")


async def test_a_read_that_fails_later_turns_the_service_red_until_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.service.OUTBOX_GRACE", 0.0)
    async with running(tmp_path) as hark:
        await hark.say("hello")
        hark.stored.rename("delivery", "away")
        with pytest.raises(Exception, match="the store cannot read: no such table: delivery"):
            await hark.service.parts.store.deliveries.open_conversations()
        assert store_of(hark)[:2] == (False, HealthState.DOWN)
        hark.stored.rename("away", "delivery")
        await hark.time.until_pause(PROBE_EVERY)
        hark.time.advance(PROBE_EVERY)
        await hark.until(lambda: hark.service.parts.health.view().ready, "green")


async def test_a_part_that_fails_is_seen(tmp_path: Path) -> None:
    def fail() -> None:
        raise RuntimeError("nobody expected this")

    async with serving(settings(tmp_path), model=ScriptedModel(Watch()), on_preloaded=fail) as service:
        (failed,) = (task for task in asyncio.all_tasks() if task.get_name() == "begin-runs")
        await asyncio.wait([failed])
        await asyncio.sleep(0)
        found = service.parts.health.view()
        assert not found.ready
        assert found.channels["store"].detail == "begin-runs has failed: nobody expected this"
