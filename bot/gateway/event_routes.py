"""`GET /v1/events`: the events of runs as a stream over HTTP, and where the terminal of this machine goes on reading.

Persisted events come in the order of their positions, and from the store alone: first those behind the position where
the stream begins, then those that the bus announces. Updates come between them as they happen. The format on the wire
is that of the HTML standard (section "Server-sent events").
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agent.events import Outcome, dump
from bot import wording
from bot.bus import EventBus, Published
from bot.gateway.access import Caller, caller
from bot.gateway.agent_routes import resolve_session, seen_by
from bot.gateway.answers import answer, let_last
from bot.gateway.views import ConsoleView
from bot.persistence.events import StoredEvent
from bot.store.reads import Reads
from channels.session_key import console_key

_HELLO = b": hark\n\n"
_PING = b": ping\n\n"
_POSITION = re.compile(r"[0-9]{1,18}")
# Seconds without an event after which a comment is sent, so that either side notices when the other is gone.
_PING_SECONDS = 15.0
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def frame(event: str, data: str, position: int | None = None) -> bytes:
    """One event on the wire. data: JSON on one line. position: that of a persisted event; an update has none."""
    line = f"id: {position}\n" if position is not None else ""
    return f"{line}event: {event}\ndata: {data}\n\n".encode()


def read_position(sent: str) -> int:
    """The position that a client sends back; 0, which is before all events, when the text is no position."""
    return int(sent) if _POSITION.fullmatch(sent) else 0


async def stream_response(chunks: AsyncGenerator[bytes, None]) -> Response:
    """A response that streams the chunks, and ends with them or when the client goes away.

    Waits for the first chunk: a client that sees the headers misses nothing from then on.
    """
    first = await anext(chunks)

    async def body() -> AsyncIterator[bytes]:
        yield first
        async for chunk in chunks:
            yield chunk

    return StreamingResponse(body(), headers=_HEADERS, media_type="text/event-stream")


# Events that are read from the store at once.
_PAGE = 200


@dataclass(eq=False)
class EventStream:
    """The stream of events that one client is sent."""

    reads: Reads
    bus: EventBus
    # The session and the run that the client wants to see, None for all. The stream of one run ends with the run.
    session_key: str | None = None
    run_id: str | None = None
    # The prefix of the keys of all sessions that the client may see.
    sessions: str = ""
    # Whether the client may see why a run failed, in the words of the server or tool that refused.
    causes: bool = True
    ping_seconds: float = _PING_SECONDS
    _position: int = field(default=0, init=False)
    # The one run that the client wants to see has ended.
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
            yield _HELLO + begun  # whoever sees it misses nothing from then on
            async for chunk in self._stored(missed):
                yield chunk
            while not self._over:
                try:
                    async with asyncio.timeout(self.ping_seconds):
                        told = await subscription.batch()
                except TimeoutError:
                    yield _PING
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


class EventRoutes:
    """Handlers of /v1/events and /v1/console."""

    def __init__(self, reads: Reads, bus: EventBus) -> None:
        self._reads = reads
        self._bus = bus

    async def events(self, request: Request) -> Response:
        """GET /v1/events."""
        query = request.query_params
        session, run_id = query.get("session") or None, query.get("run") or None
        sent = request.headers.get("last-event-id") or query.get("last_event_id")
        last = read_position(sent) if sent else None
        key = resolve_session(session) if session else None
        if key is not None:
            caller(request).check_session(key)
        if run_id is not None:
            seen_by(caller(request), await self._reads.turn(run_id))
            if last is not None and last == await self._reads.end_of(run_id):
                return Response(status_code=204)  # tells an EventSource that there is nothing to come back for
        let_last(request)
        sessions, causes = caller(request).sessions, caller(request) is not Caller.PERSON
        stream = EventStream(self._reads, self._bus, key, run_id, sessions, causes)
        return await stream_response(stream.chunks(last))

    async def console(self, request: Request) -> Response:
        """GET /v1/console, on the Unix socket alone."""
        if caller(request) is not Caller.SOCKET:
            raise HTTPException(404)
        position = read_position(request.query_params.get("position", ""))
        if position > await self._reads.last_event():  # of another store
            position = 0
        last = await self._reads.last_exchange(console_key(), position)
        return answer(ConsoleView(position=position, last=last))
