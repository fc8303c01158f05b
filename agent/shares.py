"""Shares of a number of places, so that nobody can take all of them.

Guests hold at most half of the places, and each guest two; guests and the background (heartbeat turns and jobs) hold at
most three quarters together. Each share is rounded down and is at least one place. Owners may hold all places.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

# Who holds a place is named by a text: empty for an owner, BACKGROUND, or the name of a guest.
OWNER, BACKGROUND = "", " background"
# The most places of one guest.
EACH = 2
# Whom the present run serves, and the places of its helper programs; empty outside of runs.
_SERVED: "ContextVar[tuple[str, Places] | None]" = ContextVar("served", default=None)


class Shares:
    """Counts who holds places. each: the most places of one guest; None: no limit but that of all guests."""

    def __init__(self, places: int, each: int | None = EACH) -> None:
        self._each = each
        self._held = Counter[str]()
        self._guests = 0
        self.allow(places)

    def allow(self, places: int) -> None:
        """Change the number of places; those who hold more keep them."""
        self._places, self._half, self._most = places, max(1, places // 2), max(1, places * 3 // 4)

    @property
    def for_guests(self) -> bool:
        """Whether a guest who holds no place may have one."""
        return self._guests < self._half and self._guests + self._held[BACKGROUND] < self._most and self._any

    def free(self, who: str) -> bool:
        """Return whether somebody may have another place."""
        if who == OWNER:
            return self._any
        if who == BACKGROUND:
            held = self._held[BACKGROUND]
            return held < self._half and self._guests + held < self._most and self._any
        return self.for_guests and self._has_own(who)

    def free_beside(self, who: str) -> bool:
        """Return whether an owner or guest may have the place of something of the background that gives way."""
        return who == OWNER or (self._guests < self._half and self._has_own(who))

    def take(self, who: str) -> None:
        """Count a place that somebody has taken."""
        self._held[who] += 1
        self._guests += _is_guest(who)

    def leave(self, who: str) -> None:
        """Count a place that somebody has left."""
        self._held[who] -= 1
        self._guests -= _is_guest(who)
        if not self._held[who]:
            del self._held[who]

    def _has_own(self, guest: str) -> bool:
        return self._each is None or self._held[guest] < self._each

    @property
    def _any(self) -> bool:
        return self._held.total() < self._places


class Places:
    """Places that runs wait for: owners first, then in the order in which they came."""

    def __init__(self, places: int) -> None:
        self._shares = Shares(places)
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    def allow(self, places: int) -> None:
        """Change the number of places."""
        self._shares.allow(places)
        self._give()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place of the share of the run that asks, and hold it."""
        who = (_SERVED.get() or (OWNER,))[0]
        waiter = (who, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._give()
        try:
            await waiter[1]
            yield
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:
                self._shares.leave(who)
            self._give()

    def _give(self) -> None:
        for waiter in sorted(self._waiting, key=lambda one: one[0] != OWNER):
            if not waiter[1].done() and self._shares.free(waiter[0]):
                self._shares.take(waiter[0])
                self._waiting.remove(waiter)
                waiter[1].set_result(None)


def serve(who: str, helpers: Places) -> None:
    """Say whom the present task serves, with all tasks that it starts, and the places of its helper programs."""
    _SERVED.set((who, helpers))


@asynccontextmanager
async def helper_place() -> AsyncIterator[None]:
    """Wait for a place for a helper program of the run, and hold it. Outside of runs nothing is waited for."""
    served = _SERVED.get()
    if served is None:
        yield
    else:
        async with served[1].place():
            yield


def _is_guest(who: str) -> bool:
    return who not in (OWNER, BACKGROUND)
