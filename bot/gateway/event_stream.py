"""`GET /v1/events`: the kept events in the order of their positions, the updates between them as they come.

Kept events come from the store alone: what is behind a position when a stream begins, and then what the bus rings for.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass

from agent.events import Outcome, dump
from bot import wording
from bot.bus import EventBus, Published, Subscription
from bot.gateway.closing import Closing
from bot.gateway.sse import HELLO, PING, PING_SECONDS, frame
from bot.persistence.protocols import Reads
from bot.persistence.values import StoredEvent

_PAGE = 200


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

    async def chunks(self, wanted: Filter, last: int | None) -> AsyncGenerator[bytes, None]:
        """Frames of one stream, several at a time when the client is slow.

        last: the position of the last event that the client has seen, None when it wants what happens from now on (of
        a run: everything) and the beginnings of answers under way. One that was never given brings all that is kept.
        Ends with the run that is wanted, or when the gateway closes.
        """
        subscription = self._bus.subscribe(wanted.session_key, wanted.run_id, wanted.sessions)
        stream = _Stream(self._reads, wanted)
        try:
            begun, missed = await stream.begin(last)
            yield HELLO + begun  # whoever sees it misses nothing from then on
            async for chunk in stream.stored(missed):
                yield chunk
            while not stream.over and (told := await self._next(subscription)) is not None:
                if not told:
                    yield PING
                async for chunk in stream.tell(told):
                    yield chunk
        finally:
            self._bus.unsubscribe(subscription)

    async def _next(self, subscription: Subscription) -> Sequence[Published] | None:
        """What the bus brings next: nothing after a quiet while, None at the end."""
        try:
            async with self._closing.within(self._ping_seconds):
                return await subscription.batch() or None
        except TimeoutError:
            return None if self._closing.begun else ()


class _Stream:
    """What one client is sent. over: the run that it wants to see has ended."""

    def __init__(self, reads: Reads, wanted: Filter) -> None:
        self._reads = reads
        self._wanted = wanted
        self._position = 0
        self.over = False

    async def begin(self, last: int | None) -> tuple[bytes, range]:
        """Decide where to begin; returns the beginnings of answers under way and what the client has missed."""
        wanted, reads = self._wanted, self._reads
        if last is None and wanted.run_id is None:
            newest, answers = await reads.under_way(wanted.session_key, wanted.sessions)
            return self._kept(answers), range(newest + 1, newest + 1)
        newest = await reads.last_event()
        if last is None:
            first = await reads.first_event(wanted.run_id or "")
            last = first - 1 if first is not None else newest
        return b"", range((last if last <= newest else 0) + 1, newest + 1)

    async def tell(self, told: Sequence[Published]) -> AsyncIterator[bytes]:
        """Frames of what the bus brought."""
        frames: list[bytes] = []
        for one in told:
            if not isinstance(one, range):
                frames.append(frame(one.type, dump(one)))
            else:
                yield b"".join(frames)
                frames.clear()
                async for chunk in self.stored(one):
                    yield chunk
        if frames:
            yield b"".join(frames)

    async def stored(self, stretch: range) -> AsyncIterator[bytes]:
        """Frames of what is kept at these positions and was not sent."""
        wanted = self._wanted
        self._position = max(self._position, stretch.start - 1)
        while self._position < stretch.stop - 1:
            page = await self._reads.events_after(
                self._position, stretch.stop - 1, wanted.session_key, wanted.run_id, _PAGE, wanted.sessions
            )
            self._position = page[-1].seq if len(page) == _PAGE else stretch.stop - 1
            yield self._kept(page)

    def _kept(self, events: Sequence[StoredEvent]) -> bytes:
        frames = []
        for event in events:
            body = event.body
            if event.type == "agent_end":
                end = json.loads(body)
                self.over = self._wanted.run_id is not None and end["outcome"] != Outcome.PARKED
                body = body if self._wanted.causes else _without_cause(end)
            frames.append(frame(event.type, body, event.seq))
        return b"".join(frames)


def _without_cause(end: dict[str, object]) -> str:
    """An agent_end with the plain sentence that people are told."""
    if end["error_kind"] is not None:
        end["error_message"] = wording.failure(str(end["error_kind"]))
    return json.dumps(end, ensure_ascii=False, separators=(",", ":"))
