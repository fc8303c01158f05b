"""Agent events to whoever listens: consoles, event streams, tests. An event to nobody costs nothing.

A reader that is slow loses updates only: when its queue is full, updates are passed over; when even the kept events
no longer fit, it is told to read them from the store instead.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent.events import (
    AgentEvent,
    CompactionEnd,
    CompactionStart,
    MessageStart,
    MessageUpdate,
    Notice,
    RunRef,
    ToolExecutionUpdate,
)

EarlyEvent = MessageStart | Notice | CompactionStart | CompactionEnd
"""Told before they are stored: they are written with the next event of their run that is not of these."""
UpdateEvent = MessageUpdate | ToolExecutionUpdate
_UPDATES = 256
_KEPT = 1024
_TOLD = 4096


@dataclass(eq=False, slots=True)
class Subscription:
    """One reader. session_key, run_id: what it wants to see, None for all. overrun: kept events were passed over.

    sessions: how the keys of the sessions begin that it may see.
    """

    session_key: str | None
    run_id: str | None
    sessions: str
    overrun: bool = False
    _events: deque[AgentEvent] = field(default_factory=deque)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _closed: bool = False

    def wants(self, run: RunRef) -> bool:
        """Whether events of this run are such that this reader wants to see."""
        wanted = self.session_key in (None, run.session_key) and self.run_id in (None, run.run_id)
        return wanted and run.session_key.startswith(self.sessions)

    def offer(self, event: AgentEvent) -> None:
        """Queue an event if it is wanted and there is room."""
        if not self.wants(event.run):
            return
        if len(self._events) >= (_UPDATES if isinstance(event, UpdateEvent) else _KEPT):
            self.overrun = self.overrun or not isinstance(event, UpdateEvent)
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


@dataclass(frozen=True, slots=True)
class Told:
    """Kept events that a new reader has missed, as far as it wants them, in the order in which they were told.

    ids: of the newest ones; known: the one that the reader has seen last is among all of them, and these are those
    behind it. early: events that are not stored yet, by id.
    """

    ids: Sequence[str]
    known: bool
    early: Mapping[str, EarlyEvent]


class EventBus:
    """Hands events on to subscriptions, in the order of publishing, and remembers that order."""

    def __init__(self) -> None:
        self._subscriptions: set[Subscription] = set()
        self._told: deque[tuple[str, RunRef]] = deque(maxlen=_TOLD)
        self._early: dict[str, list[EarlyEvent]] = {}

    def publish(self, event: AgentEvent) -> None:
        """Tell all readers; never waits."""
        if not isinstance(event, UpdateEvent):
            self._told.append((event.id, event.run))
            if isinstance(event, EarlyEvent):
                self._early.setdefault(event.run.run_id, []).append(event)
            else:
                self._early.pop(event.run.run_id, None)
        for subscription in self._subscriptions:
            subscription.offer(event)

    def subscribe(self, session_key: str | None = None, run_id: str | None = None, sessions: str = "") -> Subscription:
        """A new reader; give it back with `unsubscribe`."""
        subscription = Subscription(session_key, run_id, sessions)
        self._subscriptions.add(subscription)
        return subscription

    def told(self, subscription: Subscription, last_id: str | None) -> Told:
        """What a reader that has just subscribed has missed. last_id: of the last event that it has seen."""
        early = {event.id: event for told in self._early.values() for event in told if subscription.wants(event.run)}
        all_told = list(self._told)
        behind = next((n for n, (event_id, _) in enumerate(all_told, 1) if event_id == last_id), None)
        ids = [event_id for event_id, run in all_told[behind or 0 :] if subscription.wants(run)]
        if behind is None:  # one that was told long ago and is not stored yet
            ids = [*(event_id for event_id in early if event_id not in ids), *ids]
        return Told(ids, behind is not None, early)

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a reader."""
        subscription.close()
        self._subscriptions.discard(subscription)

    def close(self) -> None:
        """End all streams."""
        for subscription in list(self._subscriptions):
            self.unsubscribe(subscription)
