"""Waiting without sleeping: conditions that are looked at whenever something happens, and a clock that tests move."""

import asyncio
import os
import re
import time
from collections.abc import Callable

PATIENCE = float(os.environ.get("HARK_PATIENCE") or 60 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
"""Real seconds after which what does not come is a failure: more on a machine that has much else to do."""

_OUTSIDE = 0.05
"""Real seconds after which a condition is looked at again: what other processes and servers do notifies nobody."""

_LANE = re.compile("lane-(?!later-)|lanes-refill")
"""Names of the tasks of lanes; those that wait for a moment are none."""


class Watch:
    """Wakes whoever waits for a condition; `changed` is called by everything that records something."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def changed(self) -> None:
        """Something happened."""
        for event in self._waiting:
            event.set()

    async def until(self, condition: Callable[[], object], what: str = "the condition") -> None:
        """Return when the condition holds."""
        event, later = asyncio.Event(), asyncio.get_running_loop().call_later
        self._waiting.add(event)
        deadline = time.monotonic() + PATIENCE  # not the loop's own time, which tests move
        again = later(_OUTSIDE, event.set)
        try:
            while not condition():
                if event.is_set():
                    event.clear()
                    again.cancel()
                    again = later(_OUTSIDE, event.set)
                await event.wait()
                assert time.monotonic() < deadline, f"{what} did not come within {PATIENCE:g} s"
        finally:
            again.cancel()
            self._waiting.discard(event)


async def lanes_idle() -> None:
    """Return once no turn runs and no lane has anything to start."""
    while tasks := [task for task in asyncio.all_tasks() if _LANE.match(task.get_name())]:
        await asyncio.wait(tasks)


class ManualTime:
    """Time that stands still until `advance`; `now` in milliseconds, everything else in seconds.

    skew: milliseconds by which the machine's clock is set wrong; pauses do not go by it.
    """

    def __init__(self, watch: Watch, now: int = 1_784_000_000_000) -> None:
        self._watch = watch
        self._now = now
        self.skew = 0
        self._sleeping: dict[asyncio.Event, int] = {}
        self.asked: list[float] = []
        """Every pause that was asked for, in order."""

    def now(self) -> int:
        return self._now + self.skew

    def monotonic(self) -> float:
        return self._now / 1000

    async def sleep(self, seconds: float) -> None:
        """As `asyncio.sleep`, by this clock."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake = asyncio.Event()
        self._sleeping[wake] = self._now + round(seconds * 1000)
        self.asked.append(seconds)
        self._watch.changed()
        try:
            await wake.wait()
        finally:
            del self._sleeping[wake]

    def pauses(self, seconds: float) -> int:
        """How many sleep that have exactly so long to go."""
        return sum(due == self._now + round(seconds * 1000) for due in self._sleeping.values())

    async def until_pause(self, seconds: float, count: int = 1) -> None:
        """Return when so many sleep with exactly so long to go."""
        await self._watch.until(lambda: self.pauses(seconds) >= count, f"a pause of {seconds:g} s")

    async def until_asked(self, seconds: float, times: int = 1) -> None:
        """Return when so many pauses of this length have been asked for since the start."""
        await self._watch.until(lambda: self.asked.count(seconds) >= times, f"pause {times} of {seconds:g} s")

    def advance(self, seconds: float) -> None:
        """Let time pass; who is due wakes."""
        self._now += round(seconds * 1000)
        for wake, due in self._sleeping.items():
            if due <= self._now:
                wake.set()


class LoopTime:
    """Moves the running event loop's own clock, on which asyncio's time-outs run; never back."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        real = loop.time
        self._ahead = 0.0
        loop.time = lambda: real() + self._ahead  # type: ignore[method-assign]

    def move(self, seconds: float) -> None:
        """Let time-outs pass; what they end runs later."""
        self._ahead += seconds

    async def advance(self, seconds: float) -> None:
        """Let time-outs pass, and what they end run."""
        self.move(seconds)
        for _ in range(5):
            await asyncio.sleep(0)
