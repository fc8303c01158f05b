"""Lets whoever waits inside the gateway end early when it closes: waits for runs, and streams of events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Closing:
    """One per gateway. begun: it is closing."""

    def __init__(self) -> None:
        self.begun = False
        self._limits: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def within(self, seconds: float | None) -> AsyncIterator[None]:
        """As asyncio.timeout: raises TimeoutError after so many seconds (None: never), or when the gateway closes."""
        async with asyncio.timeout(0 if self.begun else seconds) as limit:
            self._limits.add(limit)
            try:
                yield
            finally:
                self._limits.discard(limit)

    def begin(self) -> None:
        """End every wait."""
        self.begun = True
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(0)
