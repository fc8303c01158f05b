"""What calls the dispatcher in these worlds: the scheduler by their own fast clock; the machine's decides nothing."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

AFTER_FAULT = 1.0


class Ticks:
    """In place of `heartbeat/scheduler`: a tick at the start, and again after as many seconds as it returned."""

    def __init__(self, tick: Callable[[], Awaitable[float]], speed: float) -> None:
        self._tick = tick
        self._speed = speed
        self._hurried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._under_way = asyncio.Lock()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="ticks")

    def hurry(self) -> None:
        self._hurried.set()

    async def close(self) -> None:
        """A tick under way is waited for."""
        if self._task is not None:
            async with self._under_way:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            self._hurried.clear()
            async with self._under_way:
                try:
                    seconds = await self._tick()
                except Exception:  # the disk is full
                    seconds = AFTER_FAULT
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds / self._speed):
                    await self._hurried.wait()
