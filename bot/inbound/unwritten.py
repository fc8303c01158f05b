"""What nobody waits for, until it is written: what was overheard, and how far conversations were heard.

Written every few seconds, or with the next message that is stored of the conversation, and at the end. A cursor is
never written past a message that is still on its way into the store, which may refuse it.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from bot.clock import Clock
from bot.persistence.errors import StoreUnavailable
from bot.persistence.values import OVERHEARD, Accepted, AcceptedMessage, Heard
from channels.base import Mark
from channels.message import Place, id_order

FLUSH_EVERY = 3.0

Key = tuple[str, str, str, str]
Keep = Callable[[Sequence[Accepted], Mark | None], Awaitable[object]]


def key_of(place: Place) -> Key:
    """What makes it a conversation of its own."""
    return place.channel, place.account, place.chat, place.thread


@dataclass(eq=False, slots=True)
class _Noted:
    """Of one conversation."""

    place: Place
    cursor: str = ""
    overheard: deque[AcceptedMessage] = field(default_factory=lambda: deque(maxlen=OVERHEARD))


class Unwritten:
    """By conversation. keep: stores a batch; raises StoreUnavailable."""

    def __init__(self, clock: Clock, keep: Keep) -> None:
        self._clock = clock
        self._keep = keep
        self._noted: dict[Key, _Noted] = {}
        self._storing: Counter[Key] = Counter()
        self._flushing: asyncio.Task[None] | None = None

    def move(self, place: Place, cursor: str) -> None:
        """Nothing is missing of a conversation up to there."""
        noted = self._of(place)
        noted.cursor = max(noted.cursor, cursor, key=id_order)
        self._flush_soon()

    def overhear(self, place: Place, item: AcceptedMessage) -> None:
        """Somebody said something, and not to the bot."""
        self._of(place).overheard.append(item)
        self._flush_soon()

    def forget_cursor(self, place: Place) -> None:
        """Something is missing after all."""
        if noted := self._noted.get(key_of(place)):
            noted.cursor = ""

    async def store(self, items: Sequence[Accepted], places: Collection[Place], mark: Mark | None) -> None:
        """Store a batch with what was noted of its places, in one transaction; nothing is awaited before."""
        keys = {key_of(place) for place in places}
        taken = [self._noted.pop(key) for key in keys if key in self._noted]
        for one in taken:
            if self._storing[key_of(one.place)]:  # what comes before may be refused: the cursor has to wait
                self._of(one.place).cursor, one.cursor = one.cursor, ""
        self._storing.update(keys)
        try:
            await self._keep([*_written(taken), *items], mark)
        except BaseException:
            self._put_back(taken)
            raise
        finally:
            self._storing.subtract(keys)
            self._storing = +self._storing

    async def flush(self) -> None:
        """Write what may be written."""
        taken = [self._noted.pop(key) for key in list(self._noted) if not self._storing[key]]
        if taken:
            try:
                await self._keep(_written(taken), None)
            except StoreUnavailable:
                self._put_back(taken)

    async def close(self) -> None:
        """Write all of it."""
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)
        await self.flush()

    def _of(self, place: Place) -> _Noted:
        return self._noted.setdefault(key_of(place), _Noted(place))

    def _put_back(self, taken: Iterable[_Noted]) -> None:
        for one in taken:
            noted = self._of(one.place)
            noted.overheard = deque([*one.overheard, *noted.overheard], OVERHEARD)
            noted.cursor = max(noted.cursor, one.cursor, key=id_order)

    def _flush_soon(self) -> None:
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_later(), name="catch-up-flush")

    async def _flush_later(self) -> None:
        while self._noted:
            await self._clock.sleep(FLUSH_EVERY)
            await self.flush()


def _written(taken: Iterable[_Noted]) -> list[Accepted]:
    """For the store: lines first, then how far they reach."""
    items: list[Accepted] = []
    for one in taken:
        items += one.overheard
        if one.cursor:
            items.append(Heard(one.place, one.cursor))
    return items
