"""All routes of the gateway, put together. `docs/http.md` describes them for callers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.agent_api import AgentApi
from bot.bus import EventBus
from bot.gateway.access import Caller, caller, not_open
from bot.gateway.agent_routes import AgentRoutes, resolve_session, seen_by
from bot.gateway.answers import HttpProblem, answer, unavailable
from bot.gateway.closing import Closing
from bot.gateway.event_stream import EventStreams, Filter
from bot.gateway.pairing_routes import PairingRoutes
from bot.gateway.sse import EventStreamResponse, read_position
from bot.gateway.views import ConsoleView, ReadinessView, StatusView
from bot.inbound.pairing import Pairing
from bot.persistence.errors import StoreUnavailable
from bot.persistence.protocols import Reads
from channels.session_key import console_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the routes show and do."""

    api: AgentApi
    reads: Reads
    bus: EventBus
    health: Callable[[], ReadinessView]
    status: Callable[[], Awaitable[StatusView]]
    pairing: Pairing


class Routes:
    """Handlers of everything but /v1/agent and /v1/pairing."""

    def __init__(self, served: Served, closing: Closing) -> None:
        self._served = served
        self._closing = closing
        self._streams = EventStreams(served.reads, served.bus, closing)

    async def healthz(self, request: Request) -> Response:
        """GET /healthz: the process lives."""
        return answer(self._served.health())

    async def readyz(self, request: Request) -> Response:
        """GET /readyz: the service works."""
        found = self._served.health()
        return answer(found, 200 if found.ready else 503)

    async def status(self, request: Request) -> Response:
        """GET /v1/status, for owners."""
        if caller(request) is Caller.PERSON:
            raise not_open("The state of the service is for its owners.")
        return answer(await self._served.status())

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
            seen_by(caller(request), await self._served.api.turn(run_id))
            if last is not None and last == await self._served.reads.end_of(run_id):
                return Response(status_code=204)  # tells an EventSource that there is nothing to come back for
        wanted = Filter(key, run_id, caller(request).sessions, caller(request) is not Caller.PERSON)
        return EventStreamResponse(self._streams.chunks(wanted, last))

    async def console(self, request: Request) -> Response:
        """GET /v1/console, on the Unix socket alone."""
        if caller(request) is not Caller.SOCKET:
            raise HTTPException(404)
        reads, query = self._served.reads, request.query_params
        position = read_position(query.get("position", ""))
        if position > await reads.last_event():  # of another store
            position = 0
        last = await reads.last_exchange(console_key(), position, read_position(query.get("shown", "")))
        return answer(ConsoleView(position=position, last=last))

    async def later(self, request: Request) -> Response:
        """What a later version has: the name is taken."""
        raise HttpProblem(404, "not_in_this_version", f"{request.url.path} is not in this version yet.")


def build(served: Served, agent: AgentRoutes, closing: Closing) -> Starlette:
    """The application that both listeners serve. closing: begun when streams are to end."""
    routes = Routes(served, closing)
    pairing = PairingRoutes(served.pairing)
    stream = Route("/v1/events", routes.events)
    stream.methods = {"GET"}  # a HEAD of what has no end makes no sense
    app = Starlette(
        routes=[
            Route("/v1/agent", agent.submit, methods=["POST"]),
            Route("/v1/agent/{run_id}", agent.show, methods=["GET"]),
            Route("/v1/agent/{run_id}", agent.abort, methods=["DELETE"]),
            Route("/v1/agent/{run_id}/steer", agent.steer, methods=["POST"]),
            stream,
            Route("/v1/console", routes.console, methods=["GET"]),
            Route("/v1/pairing", pairing.pending, methods=["GET"]),
            Route("/v1/pairing", pairing.settle, methods=["POST"]),
            Route("/v1/status", routes.status, methods=["GET"]),
            Route("/healthz", routes.healthz, methods=["GET"]),
            Route("/readyz", routes.readyz, methods=["GET"]),
            Route("/metrics", routes.later, methods=["GET"]),
            Route("/v1/chat/completions", routes.later, methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: _problem,
            StoreUnavailable: _store_unavailable,
            Exception: _internal,
        },
    )
    app.router.redirect_slashes = False
    return app


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, HttpProblem):
        return error.response()
    if error.status_code == 404:
        return HttpProblem(404, "not_found", f"There is nothing at {request.url.path[:200]}.").response()
    if error.status_code == 405:
        message = f"{request.method[:20]} is not possible here."
        return HttpProblem(405, "method_not_allowed", message, headers=error.headers).response()
    return HttpProblem(error.status_code, "bad_request", error.detail or "The request cannot be read.").response()


async def _store_unavailable(request: Request, error: Exception) -> Response:
    reading = request.method == "GET"
    what = "be read right now." if reading else "write right now; nothing was accepted."
    hint = "Send the same request again later; GET /readyz says what is wrong."
    return unavailable("store_unavailable", f"The store cannot {what}", hint).response()


async def _internal(request: Request, error: Exception) -> Response:
    return HttpProblem(500, "internal", "Something went wrong inside Hark; the log says more.").response()
