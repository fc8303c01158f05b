"""Events of runs as a stream over HTTP, and where the terminal of this machine takes up reading them."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bot.bus import EventBus
from bot.gateway.access import Caller, caller
from bot.gateway.agent_routes import resolve_session, seen_by
from bot.gateway.answers import answer
from bot.gateway.event_stream import EventStream
from bot.gateway.lasting import let_last
from bot.gateway.sse import read_position, stream_response
from bot.gateway.views import ConsoleView
from bot.store.reads import Reads
from channels.session_key import console_key


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
