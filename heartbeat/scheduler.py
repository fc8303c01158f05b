"""Runs the ticks of the heartbeat with APScheduler, on the event loop of the service."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

# The longest time between two ticks in seconds, because the clock may be set and the machine may sleep.
LONGEST = 60.0
AFTER_FAULT = 1.0

_TICK = "tick"


class Scheduler:
    """Calls a function at the start, and again after as many seconds as it returned, at most 60; never two at once.

    If the function raises, the error is logged and the function is called again after a second.
    """

    def __init__(self, tick: Callable[[], Awaitable[float]]) -> None:
        """tick: returns the seconds until it is to be called again."""
        self._tick = tick
        self._scheduler: Any = None
        self._starting: asyncio.Task[None] | None = None
        self._closing = False
        self._over = asyncio.Event()
        self._hurried = False

    def start(self) -> None:
        """Start; returns at once, because the library is imported in a thread."""
        self._starting = asyncio.create_task(self._start(), name="scheduler")

    async def _start(self) -> None:
        library = await asyncio.to_thread(import_module, "apscheduler.schedulers.asyncio")
        events = import_module("apscheduler.events")
        defaults = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        self._scheduler = library.AsyncIOScheduler(timezone=UTC, job_defaults=defaults)
        # The listener plans the next tick when the library knows that the job has ended. A job that plans itself would
        # exceed max_instances.
        self._scheduler.add_listener(self._ended, events.EVENT_JOB_EXECUTED | events.EVENT_JOB_ERROR)
        self._scheduler.start()
        self._wake_in(0)

    def hurry(self) -> None:
        """Tick at once, or right after the present tick."""
        self._hurried = True
        if self._waits():
            self._wake_in(0)

    async def close(self) -> None:
        """Stop; a tick under way is waited for."""
        if self._starting is None or self._closing:
            return
        self._closing = True
        await self._starting
        if self._waits():
            self._scheduler.remove_job(_TICK)  # a shutdown would cut off a tick that starts now
        else:
            await self._over.wait()
        self._scheduler.shutdown()

    def _waits(self) -> bool:
        return self._scheduler is not None and self._scheduler.get_job(_TICK) is not None

    def _wake_in(self, seconds: float) -> None:
        at = datetime.now(UTC) + timedelta(seconds=max(0.0, min(LONGEST, seconds)))
        self._scheduler.add_job(self._run, "date", run_date=at, id=_TICK, name="tick", replace_existing=True)

    async def _run(self) -> float:
        self._hurried = False
        return await self._tick()

    def _ended(self, event: Any) -> None:
        if self._closing:
            self._over.set()
        else:  # a tick that raised has been logged by the library
            self._wake_in(0 if self._hurried else AFTER_FAULT if event.exception else event.retval)
