"""`GET /v1/events`: the kept events in the order in which they were told, the updates between them as they come.

A new stream first gets what it has missed: what the store has from before the bus remembers, then what the bus
remembers, then what comes. An id is told once in the life of a service, so nothing comes twice and nothing is missing.
"""

import json
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from agent.events import AgentEvent, first_and_last
from bot import wording
from bot.bus import EventBus, Subscription, Told, UpdateEvent
from bot.gateway.closing import Closing
from bot.gateway.sse import HELLO, PING, PING_SECONDS, frame
from bot.store import codec
from bot.store.reads import Reads

_PAGE = 200
_EARLY_TYPES = ("message_start", "notice", "compaction_start", "compaction_end")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a client wants to see, None for all. A stream of one run ends with the run.

    sessions: how the keys of the sessions begin that are open to it.
    causes: whether it may see why a run failed in the words of whoever refused.
    """

    session_key: str | None = None
    run_id: str | None = None
    sessions: str = ""
    causes: bool = True


class EventStreams:
    """Makes the streams of one gateway. ping_seconds: see `sse`."""

    def __init__(self, reads: Reads, bus: EventBus, closing: Closing, ping_seconds: float = PING_SECONDS) -> None:
        self._reads = reads
        self._bus = bus
        self._closing = closing
        self._ping_seconds = ping_seconds

    async def chunks(self, wanted: Filter, last_id: str | None) -> AsyncGenerator[bytes, None]:
        """Frames of one stream, several at a time when the client is slow.

        last_id: of the last event that the client has seen, None when it wants what happens from now on (of a run:
        everything) and the beginnings of answers under way. Ends with the run that is wanted, or when the gateway
        closes.
        """
        stream = _Stream(self._reads, wanted, last_id)
        while True:
            newest = await self._reads.last_event()  # what is stored from here on is told to the subscription
            subscription = self._bus.subscribe(wanted.session_key, wanted.run_id, wanted.sessions)
            told = self._bus.told(subscription, stream.last_id)
            try:
                yield HELLO
                async for chunk in stream.missed(told, newest):
                    yield chunk
                while not stream.over and (events := await self._next(subscription)) is not None:
                    yield stream.tell(events) if events else PING
            finally:
                self._bus.unsubscribe(subscription)
            if stream.over or not subscription.overrun:
                return

    async def _next(self, subscription: Subscription) -> Sequence[AgentEvent] | None:
        """What the bus brings next: nothing after a quiet while, None at the end."""
        try:
            async with self._closing.within(self._ping_seconds):
                return await subscription.batch() or None
        except TimeoutError:
            return None if self._closing.begun else ()


class _Stream:
    """What one client has been sent. last_id: of its last kept event; over: the run that it wants to see has ended."""

    def __init__(self, reads: Reads, wanted: Filter, last_id: str | None) -> None:
        self._reads = reads
        self._wanted = wanted
        self._replayed: deque[str] = deque(maxlen=_PAGE)
        self.last_id = last_id
        self.over = False

    async def missed(self, told: Told, newest: int) -> AsyncGenerator[bytes, None]:
        """Frames of what happened before the client came and is not known to it. newest: how far the store was then."""
        ids = told.ids
        if self.last_id is None and self._wanted.run_id is None:
            ids = tuple(told.early)
        elif not told.known:
            async for chunk in self._stored(frozenset(ids), newest):
                yield chunk
        for start in range(0, len(ids), _PAGE):
            page = ids[start : start + _PAGE]
            bodies = {event.event_id: (event.type, event.body) for event in await self._reads.events(page)}
            bodies.update((i, (told.early[i].type, codec.dump_event(told.early[i]))) for i in page if i in told.early)
            # one that is in neither was told and never stored, as its run was stopped
            yield b"".join(self._kept(event_id, *bodies[event_id]) for event_id in page if event_id in bodies)

    def tell(self, events: Sequence[AgentEvent]) -> bytes:
        """Frames of what the bus brought."""
        frames: list[bytes] = []
        for event in events:
            if isinstance(event, UpdateEvent):
                frames.append(frame(event.type, codec.dump_event(event)))
            elif event.id not in self._replayed:  # stored, and read, a moment before it was told
                frames.append(self._kept(event.id, event.type, codec.dump_event(event)))
        return b"".join(frames)

    async def _stored(self, told: frozenset[str], newest: int) -> AsyncGenerator[bytes, None]:
        """Frames of what the store has behind the last event, without what the bus remembers."""
        wanted = self._wanted
        seq, run_id, seen = await self._begin(newest)
        more = True
        while more:
            page = await self._reads.events_after(seq, wanted.session_key, wanted.run_id, _PAGE, wanted.sessions)
            more = len(page) == _PAGE and page[-1].seq < newest
            frames: list[bytes] = []
            for event in page:
                seq = event.seq
                known = event.seq <= seen and event.event_id.startswith(f"{run_id}/")
                if event.seq <= newest and not known and event.event_id not in told:
                    self._replayed.append(event.event_id)
                    frames.append(self._kept(event.event_id, event.type, event.body))
            yield b"".join(frames)

    async def _begin(self, newest: int) -> tuple[int, str, int]:
        """Behind which position of the store to go on; and up to which one the client knows the last event's run.

        An event that was told before it was stored stands behind what other runs did meanwhile: it is not known how
        much of that the client has seen, so it is sent.
        """
        reads, last_id = self._reads, self.last_id
        if last_id is None:
            first = await reads.first_event(self._wanted.run_id or "")
            return (first - 1 if first is not None else newest), "", 0
        seq = await reads.event_position(last_id)
        run_id, _, rest = last_id.partition("/")
        if seq is not None:
            (event,) = await reads.events_after(seq - 1, None, None, 1)
            if event.type not in _EARLY_TYPES:
                return seq, run_id, seq
        step, _, ordinal = rest.partition("/")
        before = int(step) + (not ordinal.startswith("0")) if step.isdecimal() and len(step) < 9 else 0
        return await reads.before_step(run_id, before) or 0, run_id, seq or 0

    def _kept(self, event_id: str, kind: str, body: str) -> bytes:
        self.last_id = event_id
        if kind == "agent_end":
            self.over = event_id == first_and_last(self._wanted.run_id or "")[1]
            body = body if self._wanted.causes else _without_cause(body)
        return frame(kind, body, event_id)


def _without_cause(body: str) -> str:
    """An agent_end with the plain sentence that people are told."""
    end = json.loads(body)
    if end["error_kind"] is not None:
        end["error_message"] = wording.failure(end["error_kind"])
    return json.dumps(end, ensure_ascii=False, separators=(",", ":"))
