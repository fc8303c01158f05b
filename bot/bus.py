"""What happens in runs, to whoever listens: updates as they come, and a ring for what was kept.

Kept events are not carried: a reader is told that some it wants stand in the store, and up to which position, and reads
them there. So they can never be too many, and a reader that is slow loses updates only. Telling nobody costs nothing.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.events import UpdateEvent
from bot.persistence.events import PersistedAt

_UPDATES = 256
_ENDED = 256

# An update; or in which stretch of positions kept events stand that the reader wants, others among them.
Published = UpdateEvent | range


@dataclass(eq=False, slots=True)
class Subscription:
    """One reader. session_key, run_id: what it wants to see, None for all.

    sessions: how the keys of the sessions begin that it may see. ends: whether it is told of the ends of runs alone.
    """

    session_key: str | None
    run_id: str | None
    sessions: str
    ends: bool = False
    _told: deque[Published] = field(default_factory=deque)
    _lagging: set[str] = field(default_factory=set)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False

    def offer(self, event: UpdateEvent) -> None:
        """Queue an update if it is wanted and there is room: of what is answered, the beginning or all."""
        run = event.run
        if self.ends or not self._wants(run.session_key, run.run_id):
            return
        if len(self._told) >= _UPDATES or run.run_id in self._lagging:
            self._lagging.add(run.run_id)
            return
        self._told.append(event)
        self._wake.set()

    def ring(self, kept: Sequence[PersistedAt]) -> None:
        """Queue that events were kept, if any of them is wanted."""
        wanted = [one for one in kept if (one.ended or not self.ends) and self._wants(one.session_key, one.run_id)]
        if not wanted:
            return
        self._lagging.difference_update(one.run_id for one in wanted)
        first, last = wanted[0].seq, wanted[-1].seq
        if self._told and isinstance(self._told[-1], range):
            first = self._told.pop().start  # type: ignore[union-attr]
        self._told.append(range(first, last + 1))
        self._wake.set()

    def close(self) -> None:
        """End the stream after what is queued."""
        self._closed = True
        self._wake.set()

    async def batch(self) -> Sequence[Published]:
        """All that waits, once there is something; nothing when the stream has ended.

        May be cancelled: nothing is taken then.
        """
        while not self._told:
            if self._closed:
                return ()
            self._wake.clear()
            await self._wake.wait()
        told, self._told = tuple(self._told), deque()
        return told

    def _wants(self, session_key: str, run_id: str) -> bool:
        wanted = self.session_key in (None, session_key) and self.run_id in (None, run_id)
        return wanted and session_key.startswith(self.sessions)


class EventBus:
    """Hands on to subscriptions what it is told, in that order."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()
        self._closed = False
        self._ended: dict[str, None] = {}  # the newest ones

    def publish(self, event: UpdateEvent) -> None:
        """Tell all readers; never waits. What a run says that has just been ended is told to nobody."""
        if event.run.run_id in self._ended:
            return
        for subscription in self._subscriptions:
            subscription.offer(event)

    def ring(self, kept: Sequence[PersistedAt]) -> None:
        """Events were kept, in the order of their positions."""
        self._ended.update((one.run_id, None) for one in kept if one.ended)
        while len(self._ended) > _ENDED:
            del self._ended[next(iter(self._ended))]
        for subscription in self._subscriptions:
            subscription.ring(kept)

    def subscribe(
        self, session_key: str | None = None, run_id: str | None = None, sessions: str = "", *, ends: bool = False
    ) -> Subscription:
        """A new reader; give it back with `unsubscribe`. ends: whether it is told of the ends of runs alone."""
        subscription = Subscription(session_key, run_id, sessions, ends)
        self._subscriptions.add(subscription)
        if self._closed:
            subscription.close()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a reader."""
        subscription.close()
        self._subscriptions.discard(subscription)

    def is_read(self, session_key: str) -> bool:
        """Whether somebody reads at present what happens in a session, of all sessions in this one."""
        return any(one.session_key == session_key for one in self._subscriptions)

    def close(self) -> None:
        """End all streams, also those that begin later."""
        self._closed = True
        for subscription in list(self._subscriptions):
            self.unsubscribe(subscription)
