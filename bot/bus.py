"""Agent events to whoever listens: consoles, event streams, tests. An event to nobody costs nothing.

A reader that is slow loses updates only: when its queue is full, updates are passed over; when even the kept events
no longer fit, it is told to read them from the store instead.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from agent.events import AgentEvent, MessageUpdate, ToolExecutionUpdate

_UPDATES = 256
_KEPT = 1024


@dataclass(eq=False, slots=True)
class Subscription:
    """One reader. session_key, run_id: what it wants to see, None for all. overrun: kept events were passed over."""

    session_key: str | None
    run_id: str | None
    overrun: bool = False
    _events: deque[AgentEvent] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False

    def offer(self, event: AgentEvent) -> None:
        """Queue an event if it is wanted and there is room."""
        if self.session_key not in (None, event.run.session_key) or self.run_id not in (None, event.run.run_id):
            return
        if len(self._events) >= (_UPDATES if isinstance(event, MessageUpdate | ToolExecutionUpdate) else _KEPT):
            self.overrun = self.overrun or not isinstance(event, MessageUpdate | ToolExecutionUpdate)
            return
        self._events.append(event)
        self._wake.set()

    def close(self) -> None:
        """End the stream of events after those that are queued."""
        self._closed = True
        self._wake.set()

    async def batch(self) -> Sequence[AgentEvent]:
        """All events that wait, once there is one; none when the stream has ended (`overrun` tells a reader why).

        May be cancelled: nothing is taken then.
        """
        while not self._events:
            if self._closed or self.overrun:
                return ()
            self._wake.clear()
            await self._wake.wait()
        events, self._events = tuple(self._events), deque()
        return events

    async def __aiter__(self) -> AsyncIterator[AgentEvent]:
        while events := await self.batch():
            for event in events:
                yield event


class EventBus:
    """Hands events on to subscriptions, in the order of publishing."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()

    def publish(self, event: AgentEvent) -> None:
        """Tell all readers; never waits."""
        for subscription in self._subscriptions:
            subscription.offer(event)

    def subscribe(self, session_key: str | None = None, run_id: str | None = None) -> Subscription:
        """A new reader; give it back with `unsubscribe`."""
        subscription = Subscription(session_key, run_id)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a reader."""
        subscription.close()
        self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End all streams."""
        for subscription in list(self._subscriptions):
            self.unsubscribe(subscription)
