"""What wakes the heartbeat, with APScheduler on the loop of the test."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from heartbeat import scheduler
from heartbeat.scheduler import Scheduler
from tests.watch import PATIENCE


class Ticks:
    """Counts the ticks, and says what each does, the last again and again."""

    def __init__(self, *does: float | Exception | Callable[[], Awaitable[float]]) -> None:
        self.does = list(does)
        self.count = self.under_way = 0
        self._told = asyncio.Condition()

    async def tick(self) -> float:
        self.under_way += 1
        assert self.under_way == 1, "two at once"
        self.count += 1
        async with self._told:
            self._told.notify_all()
        does = self.does.pop(0) if len(self.does) > 1 else self.does[0]
        try:
            if isinstance(does, Exception):
                raise does
            return does if isinstance(does, float) else await does()
        finally:
            self.under_way -= 1

    async def have_been(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE), self._told:
            await self._told.wait_for(lambda: self.count >= count)


async def settle() -> None:
    """Lets everything happen that is ready to."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_it_ticks_at_the_start_and_as_often_as_the_ticks_say() -> None:
    ticks = Ticks(0.0, 0.001, -5.0, 3600.0)
    running = Scheduler(ticks.tick)
    running.start()
    await ticks.have_been(4)
    await settle()
    assert ticks.count == 4
    await running.close()


async def test_no_pause_is_longer_than_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scheduler.LONGEST == 60
    monkeypatch.setattr(scheduler, "LONGEST", 0.0)
    ticks = Ticks(3600.0)
    running = Scheduler(ticks.tick)
    running.start()
    await ticks.have_been(5)
    await running.close()


async def test_who_hurries_it_waits_for_nothing_and_never_starts_a_second() -> None:
    go = asyncio.Event()

    async def waits() -> float:
        await go.wait()
        return 3600.0

    ticks = Ticks(3600.0, 3600.0, waits, 3600.0)
    running = Scheduler(ticks.tick)
    running.hurry()  # too early, and harmless
    running.start()
    running.hurry()
    await ticks.have_been(1)
    await settle()
    running.hurry()
    await ticks.have_been(2)
    await settle()
    running.hurry()
    running.hurry()
    await ticks.have_been(3)
    running.hurry()  # while it is under way: what came in the meantime is looked at again
    running.hurry()
    await settle()
    assert ticks.count == 3
    go.set()
    await ticks.have_been(4)
    await settle()
    assert ticks.count == 4
    await running.close()


async def test_one_that_raises_is_logged_and_called_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert scheduler.AFTER_FAULT == 1
    monkeypatch.setattr(scheduler, "AFTER_FAULT", 0.0)
    ticks = Ticks(ValueError("the disk is full"), OSError("again"), 3600.0)
    running = Scheduler(ticks.tick)
    running.start()
    await ticks.have_been(3)
    await settle()
    await running.close()
    assert "the disk is full" in caplog.text
    assert ticks.count == 3


async def test_the_tick_under_way_is_waited_for_and_none_follows() -> None:
    go, ended = asyncio.Event(), asyncio.Event()

    async def waits() -> float:
        await go.wait()
        ended.set()
        return 0.0

    ticks = Ticks(waits)
    running = Scheduler(ticks.tick)
    running.start()
    await ticks.have_been(1)
    closing = asyncio.create_task(running.close())
    await settle()
    assert not closing.done()
    running.hurry()
    go.set()
    await closing
    assert ended.is_set()
    running.hurry()
    await settle()
    assert ticks.count == 1
    await running.close()


async def test_it_can_be_closed_before_it_began_and_in_the_beginning(caplog: pytest.LogCaptureFixture) -> None:
    ticks = Ticks(0.0)
    await Scheduler(ticks.tick).close()
    assert ticks.count == 0
    for rounds in range(8):
        running = Scheduler(ticks.tick)
        running.start()
        for _ in range(rounds):
            await asyncio.sleep(0)
        await running.close()
        count = ticks.count
        await settle()
        assert ticks.count == count
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
