"""Publishes what happens in runs to subscribers: updates as they come, and notices that events were persisted.

Persisted events are not carried: a subscriber is told at which positions of the store the events stand that it wants,
and reads them there. So the queue of a subscriber is bounded, and a slow subscriber loses updates only.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.events import UpdateEvent
from bot.persistence.events import PersistedAt

# Updates that wait for one subscriber; further ones are dropped.
_UPDATES = 256
# Ended runs that are remembered, the newest ones.
_ENDED = 256

# An update; or the range of positions in which persisted events stand that the subscriber wants, others among them.
Published = UpdateEvent | range


@dataclass(eq=False, slots=True)
class Subscription:
    """What one subscriber wants, and what waits for it."""

    # The session and the run that it wants to see, None for all.
    session_key: str | None
    run_id: str | None
    # The prefix of the keys of all sessions that it may see.
    sessions: str
    # Whether it is told of the ends of runs alone.
    ends: bool = False
    _queue: deque[Published] = field(default_factory=deque)
    # Runs of which updates were dropped: none follow until the next persisted event.
    _lagging: set[str] = field(default_factory=set)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False

    def offer(self, event: UpdateEvent) -> None:
        """Queue an update if it is wanted and there is room; behind a dropped update of a run none of it is queued."""
        run = event.run
        if self.ends or not self._wants(run.session_key, run.run_id):
            return
        if len(self._queue) >= _UPDATES or run.run_id in self._lagging:
            self._lagging.add(run.run_id)
            return
        self._queue.append(event)
        self._wake.set()

    def announce(self, persisted: Sequence[PersistedAt]) -> None:
        """Queue the range of the persisted events that are wanted, if any is."""
        wanted = [one for one in persisted if (one.ended or not self.ends) and self._wants(one.session_key, one.run_id)]
        if not wanted:
            return
        self._lagging.difference_update(one.run_id for one in wanted)
        first, last = wanted[0].seq, wanted[-1].seq
        if self._queue and isinstance(self._queue[-1], range):
            first = self._queue.pop().start  # type: ignore[union-attr]
        self._queue.append(range(first, last + 1))
        self._wake.set()

    def close(self) -> None:
        """End the subscription behind what is queued."""
        self._closed = True
        self._wake.set()

    async def batch(self) -> Sequence[Published]:
        """Wait until something is queued and take all of it; empty when the subscription is closed.

        May be cancelled: nothing is taken then.
        """
        while not self._queue:
            if self._closed:
                return ()
            self._wake.clear()
            await self._wake.wait()
        batch, self._queue = tuple(self._queue), deque()
        return batch

    def _wants(self, session_key: str, run_id: str) -> bool:
        wanted = self.session_key in (None, session_key) and self.run_id in (None, run_id)
        return wanted and session_key.startswith(self.sessions)


class EventBus:
    """Hands everything that is published to all subscriptions, in that order."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()
        self._closed = False
        self._ended: dict[str, None] = {}

    def publish(self, event: UpdateEvent) -> None:
        """Offer an update to all subscriptions; never waits. Updates of a run that has ended are dropped."""
        if event.run.run_id in self._ended:
            return
        for subscription in self._subscriptions:
            subscription.offer(event)

    def announce(self, persisted: Sequence[PersistedAt]) -> None:
        """Tell all subscriptions of persisted events, which come in the order of their positions."""
        self._ended.update((one.run_id, None) for one in persisted if one.ended)
        while len(self._ended) > _ENDED:
            del self._ended[next(iter(self._ended))]
        for subscription in self._subscriptions:
            subscription.announce(persisted)

    def subscribe(
        self, session_key: str | None = None, run_id: str | None = None, sessions: str = "", *, ends: bool = False
    ) -> Subscription:
        """Add a subscription, to be given back with `unsubscribe`. The parameters are the fields of `Subscription`."""
        subscription = Subscription(session_key, run_id, sessions, ends)
        self._subscriptions.add(subscription)
        if self._closed:
            subscription.close()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Close a subscription and forget it."""
        subscription.close()
        self._subscriptions.discard(subscription)

    def is_read(self, session_key: str) -> bool:
        """Whether there is a subscription to this session alone."""
        return any(one.session_key == session_key for one in self._subscriptions)

    def close(self) -> None:
        """Close all subscriptions, also those that begin later."""
        self._closed = True
        for subscription in list(self._subscriptions):
            self.unsubscribe(subscription)
