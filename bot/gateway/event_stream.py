"""`GET /v1/events`: the kept events in the order of their positions, the updates between them as they come.

Kept events come from the store alone: what is behind a position when a stream begins, and then what the bus rings for.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field

from agent.events import Outcome, dump
from bot import wording
from bot.bus import EventBus, Published
from bot.gateway.sse import HELLO, PING, PING_SECONDS, frame
from bot.persistence.events import StoredEvent
from bot.store.reads import Reads

_PAGE = 200


@dataclass(eq=False)
class EventStream:
    """What one client is sent. session_key, run_id: what it wants to see, None for all; of one run until its end.

    sessions: how the keys of the sessions begin that are open to it.
    causes: whether it may see why a run failed in the words of whoever refused. ping_seconds: see `sse`.
    """

    reads: Reads
    bus: EventBus
    session_key: str | None = None
    run_id: str | None = None
    sessions: str = ""
    causes: bool = True
    ping_seconds: float = PING_SECONDS
    _position: int = field(default=0, init=False)
    # The run that it wants to see has ended.
    _over: bool = field(default=False, init=False)

    async def chunks(self, last: int | None) -> AsyncGenerator[bytes, None]:
        """Frames, one or several at a time.

        last: the position of the last event that the client has seen, None when it wants what happens from now on (of
        a run: everything) and the beginnings of answers under way. One that was never given brings all that is kept.
        Ends with the run that is wanted, or with the bus.
        """
        subscription = self.bus.subscribe(self.session_key, self.run_id, self.sessions)
        try:
            begun, missed = await self._begin(last)
            yield HELLO + begun  # whoever sees it misses nothing from then on
            async for chunk in self._stored(missed):
                yield chunk
            while not self._over:
                try:
                    async with asyncio.timeout(self.ping_seconds):
                        told = await subscription.batch()
                except TimeoutError:
                    yield PING
                    continue
                if not told:
                    return
                async for chunk in self._tell(told):
                    yield chunk
        finally:
            self.bus.unsubscribe(subscription)

    async def _begin(self, last: int | None) -> tuple[bytes, range]:
        """Decide where to begin; returns the beginnings of answers under way and what the client has missed."""
        if last is None and self.run_id is None:
            newest, answers = await self.reads.under_way(self.session_key, self.sessions)
            return self._kept(answers), range(newest + 1, newest + 1)
        newest = await self.reads.last_event()
        if last is None:
            first = await self.reads.first_event(self.run_id or "")
            last = first - 1 if first is not None else newest
        return b"", range((last if last <= newest else 0) + 1, newest + 1)

    async def _tell(self, told: Sequence[Published]) -> AsyncIterator[bytes]:
        """Frames of what the bus brought."""
        for one in told:
            if isinstance(one, range):
                async for chunk in self._stored(one):
                    yield chunk
            else:
                yield frame(one.type, dump(one))

    async def _stored(self, stretch: range) -> AsyncIterator[bytes]:
        """Frames of what is kept at these positions and was not sent."""
        self._position, last = max(self._position, stretch.start - 1), stretch.stop - 1
        wanted = self.session_key, self.run_id, _PAGE, self.sessions
        while self._position < last:
            page = await self.reads.events_after(self._position, last, *wanted)
            self._position = page[-1].seq if len(page) == _PAGE else last
            yield self._kept(page)

    def _kept(self, events: Sequence[StoredEvent]) -> bytes:
        frames = []
        for event in events:
            body = event.body
            if event.type == "agent_end":
                end = json.loads(body)
                self._over = self.run_id is not None and end["outcome"] != Outcome.PARKED
                body = body if self.causes else _without_cause(end)
            frames.append(frame(event.type, body, event.seq))
        return b"".join(frames)


def _without_cause(end: dict[str, object]) -> str:
    """An agent_end with the plain sentence that people are told."""
    if end["error_kind"] is not None:
        end["error_message"] = wording.failure(str(end["error_kind"]))
    return json.dumps(end, ensure_ascii=False, separators=(",", ":"))
