"""`GET /v1/events`: the kept events in the order of the store, the updates between them as they come.

Kept events are sent from the store, so that a stream has neither gaps nor doubles whatever the bus had to drop; the
bus says when to look. Some kinds are told before they are stored (an answer begins, a notice): those are sent at
once, and passed over when the store has them. `Cursor` keeps account of it.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from agent.events import (
    AgentEvent,
    CompactionEnd,
    CompactionStart,
    MessageStart,
    MessageUpdate,
    Notice,
    ToolExecutionUpdate,
)
from bot.bus import EventBus
from bot.gateway.closing import Closing
from bot.gateway.sse import HELLO, PING, PING_SECONDS, frame
from bot.store import codec
from bot.store.transcripts import Reads

_PAGE = 200
_REMEMBERED = 1024
_EARLY = (MessageStart, Notice, CompactionStart, CompactionEnd)
_EARLY_TYPES = ("message_start", "notice", "compaction_start", "compaction_end")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a client wants to see, None for all. A stream of one run ends with the run."""

    session_key: str | None = None
    run_id: str | None = None


@dataclass(slots=True)
class Cursor:
    """How far a stream is. seq: everything in the store up to there has been sent.

    early: events of the early kinds that came from one side only so far, True for the bus, False for the store; the
    other side is still expected to bring them, and they are passed over then.
    """

    seq: int
    early: dict[str, bool] = field(default_factory=dict)

    def is_new(self, event_id: str, *, live: bool) -> bool:
        """Whether an event of an early kind is to be sent. live: it comes from the bus.

        The bus may bring one twice, when an answer begins anew: that is news.
        """
        if self.early.get(event_id) is (not live):
            del self.early[event_id]
            return False
        self.early[event_id] = live
        return True

    def run_ended(self, run_id: str) -> None:
        """Nothing of this run is expected any more."""
        for event_id in [known for known in self.early if known.startswith(f"{run_id}/")]:
            del self.early[event_id]


class Cursors:
    """Remembers where streams stood when they sent an event, for clients that come back with its id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, Filter], tuple[int, frozenset[str]]] = OrderedDict()

    def keep(self, event_id: str, wanted: Filter, cursor: Cursor) -> None:
        """A stream has sent this event. Of several streams the one that had sent the least counts."""
        seq, early = cursor.seq, frozenset(known for known, live in cursor.early.items() if live)
        if (event_id, wanted) in self._kept:
            other_seq, other_early = self._kept.pop((event_id, wanted))
            seq, early = min(seq, other_seq), early & other_early
        self._kept[event_id, wanted] = seq, early
        if len(self._kept) > _REMEMBERED:
            self._kept.popitem(last=False)

    def find(self, event_id: str, wanted: Filter) -> Cursor | None:
        """Where to go on behind this event, if that is remembered."""
        found = self._kept.get((event_id, wanted))
        return Cursor(found[0], dict.fromkeys(found[1], True)) if found else None


class EventStreams:
    """Makes the streams of one gateway. ping_seconds: see `sse`."""

    def __init__(self, reads: Reads, bus: EventBus, closing: Closing, ping_seconds: float = PING_SECONDS) -> None:
        self._reads = reads
        self._bus = bus
        self._closing = closing
        self._ping_seconds = ping_seconds
        self._cursors = Cursors()

    async def chunks(self, wanted: Filter, last_id: str | None) -> AsyncGenerator[bytes, None]:
        """Frames of one stream, several at a time when the client is slow.

        last_id: of the last event that the client has seen, None when it wants what happens from now on (of a run:
        everything). Ends with the run that is wanted, or when the gateway closes.
        """
        # First the position, then the subscription: what is stored in between is found by reading on.
        stream = _Stream(self._reads, self._cursors, wanted, await self._begin(wanted, last_id))
        subscription = self._bus.subscribe(wanted.session_key, wanted.run_id)
        try:
            yield HELLO
            behind = True
            while True:
                while behind and not stream.over:
                    chunk, behind = await stream.read_on()
                    yield chunk
                if stream.over:
                    return
                try:
                    async with self._closing.within(self._ping_seconds):
                        events = await subscription.batch()
                except TimeoutError:
                    if self._closing.begun:
                        return
                    yield PING
                    continue
                if events:
                    yield await stream.tell(events)
                elif subscription.overrun:
                    self._bus.unsubscribe(subscription)
                    subscription = self._bus.subscribe(wanted.session_key, wanted.run_id)
                    behind = True
                else:
                    return
        finally:
            self._bus.unsubscribe(subscription)

    async def _begin(self, wanted: Filter, last_id: str | None) -> Cursor:
        """Where a stream begins. In doubt earlier, so that there is no gap."""
        reads = self._reads
        if last_id is None:
            newest = await reads.last_event()
            first = await reads.first_event(wanted.run_id) if wanted.run_id is not None else None
            return Cursor(first - 1 if first is not None else newest)
        remembered = self._cursors.find(last_id, wanted)
        if remembered is not None:
            return remembered
        seq = await reads.event_position(last_id)
        if seq is not None:
            (event,) = await reads.events_after(seq - 1, None, None, 1)
            if event.type not in _EARLY_TYPES:
                return Cursor(seq)
        # told early by a service that has ended since: all that came before it is what its run began with
        return Cursor(await reads.first_event(last_id.partition("/")[0]) or 0)


class _Stream:
    """What one client has been sent. over: the run that it wants to see has ended."""

    def __init__(self, reads: Reads, cursors: Cursors, wanted: Filter, cursor: Cursor) -> None:
        self._reads = reads
        self._cursors = cursors
        self._wanted = wanted
        self._cursor = cursor
        self.over = False

    async def tell(self, events: Sequence[AgentEvent]) -> bytes:
        """Frames of what the bus brought, and of what the store has before it."""
        frames: list[bytes] = []
        for event in events:
            if isinstance(event, MessageUpdate | ToolExecutionUpdate):
                frames.append(frame(event.type, codec.dump_event(event)))
            elif isinstance(event, _EARLY):
                if self._cursor.is_new(event.id, live=True):
                    frames.append(self._kept(event.id, event.type, codec.dump_event(event)))
            else:
                seq = await self._reads.event_position(event.id)
                while seq is not None and self._cursor.seq < seq:
                    chunk, _ = await self.read_on(seq)
                    frames.append(chunk)
        return b"".join(frames)

    async def read_on(self, until: int | None = None) -> tuple[bytes, bool]:
        """Frames of the next page of the store, and whether there may be more. until: the last position to read."""
        cursor, wanted = self._cursor, self._wanted
        page = await self._reads.events_after(cursor.seq, wanted.session_key, wanted.run_id, _PAGE)
        frames: list[bytes] = []
        more = len(page) == _PAGE
        for event in page:
            if until is not None and event.seq > until:
                more = False
                break
            cursor.seq = event.seq
            if event.type not in _EARLY_TYPES or cursor.is_new(event.event_id, live=False):
                frames.append(self._kept(event.event_id, event.type, event.body))
        if until is not None and not more:
            cursor.seq = until
        return b"".join(frames), more

    def _kept(self, event_id: str, kind: str, body: str) -> bytes:
        if kind == "agent_end":
            self._cursor.run_ended(event_id.partition("/")[0])
            self.over = self._wanted.run_id is not None
        self._cursors.keep(event_id, self._wanted, self._cursor)
        return frame(kind, body, event_id)
