"""Shares of a number of places, so that nobody can take all of them.

Guests hold at most half of the places, and each guest two; guests and the background (heartbeat turns and jobs) hold at
most three quarters together. Each share is rounded down and is at least one place. Owners may hold all places.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

# Who holds a place is named by a text: empty for an owner, the name of a guest, and BACKGROUND with either behind it.
OWNER, BACKGROUND = "", " background "
# The most places of one guest, and as many in the background.
EACH = 2
# Whom the present run serves, with all its tasks, and the places of its helper programs; None outside of runs.
SERVED: "ContextVar[tuple[str, Places] | None]" = ContextVar("served", default=None)


class Shares:
    """Counts who holds places. each: the most places of one guest; None: no limit but that of all guests."""

    def __init__(self, places: int, each: int | None = EACH) -> None:
        # The number of places; those who hold more keep them.
        self.places = places
        self._each = each
        self._held = Counter[str]()

    def free(self, waiting: Collection[str], *, instead: bool = False) -> Iterator[str]:
        """Yield who of those that wait may have another place, owners first, as long as none is taken.

        instead: it is the place of something of the background that gives way.
        """
        held = self._held
        background = sum(count for who, count in held.items() if who.startswith(BACKGROUND))
        guests = held.total() - background - held[OWNER]
        if held.total() >= self.places and not instead:
            return
        if OWNER in waiting:
            yield OWNER
        if guests + background >= max(1, self.places * 3 // 4) and not instead:
            return
        half = max(1, self.places // 2)
        for who in waiting:
            shared = background if who.startswith(BACKGROUND) else guests
            has_all = self._each is not None and who != BACKGROUND and held[who] >= self._each
            if who != OWNER and shared < half and not has_all:
                yield who

    def take(self, who: str) -> None:
        """Count a place that somebody has taken."""
        self._held[who] += 1

    def leave(self, who: str) -> None:
        """Count a place that somebody has left."""
        self._held[who] -= 1
        if not self._held[who]:
            del self._held[who]


class Places:
    """Places that runs wait for: owners first, then guests by turns."""

    def __init__(self, places: int) -> None:
        self._shares = Shares(places)
        # What waits, by whom it serves. No list in it is empty.
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    def allow(self, places: int) -> None:
        """Change the number of places."""
        self._shares.places = places
        self._give()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place of the share of the run that asks, and hold it."""
        who = (SERVED.get() or (OWNER,))[0]
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, []).append(given)
        self._give()
        try:
            await given
            yield
        finally:
            if not given.cancelled():
                self._shares.leave(who)
                self._give()

    def _give(self) -> None:
        while (who := next(self._shares.free(self._waiting), None)) is not None:
            first, *others = self._waiting.pop(who)
            if others:
                self._waiting[who] = others
            if not first.cancelled():
                self._shares.take(who)
                first.set_result(None)


@asynccontextmanager
async def helper_place() -> AsyncIterator[None]:
    """Wait for a place for a helper program of the run, and hold it. Outside of runs nothing is waited for."""
    served = SERVED.get()
    if served is None:
        yield
    else:
        async with served[1].place():
            yield
