"""Measures how late the event loop is: work that blocks it delays everything that people wait for."""

import asyncio
from collections import deque

# Seconds between two measurements, and how many of them count: those of the last minute.
EVERY, COUNTED = 1.0, 60


class LoopLag:
    """Looks by the clock of the loop itself, in which nothing else is injected."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=COUNTED)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to measure in the running loop."""
        loop = asyncio.get_running_loop()

        def look(due: float) -> None:
            self._late.append(max(loop.time() - due, 0.0))
            plan()

        def plan() -> None:
            due = loop.time() + EVERY
            self._timer = loop.call_at(due, look, due)

        plan()

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()

    async def sentence(self) -> str:
        """Return what is said of it; empty while nothing was measured."""
        if not self._late:
            return ""
        return f"{self._late[-1] * 1000:.0f} ms late, {max(self._late) * 1000:.0f} ms at most in the last minute"
