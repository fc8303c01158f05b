"""All routes of the gateway, put together. `docs/http.md` describes them for callers."""

from collections.abc import Awaitable, Callable
from typing import Literal

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot import wording
from bot.background.control import Control
from bot.gateway.access import Caller, caller, not_open
from bot.gateway.agent_routes import AgentRoutes, Body, parse_body, read_body, resolve_session, seen_by
from bot.gateway.answers import HttpProblem, answer, unavailable
from bot.gateway.approval_routes import ApprovalRoutes, named
from bot.gateway.event_stream import EventStream
from bot.gateway.heartbeat_routes import HeartbeatRoutes
from bot.gateway.lasting import let_last
from bot.gateway.sse import read_position, stream_response
from bot.gateway.views import ConsoleView, StatusView
from bot.inbound.pairing import NotChanged, Order
from bot.persistence.errors import StoreUnavailable
from bot.service import Service
from channels.session_key import console_key


class CodeBody(Body):
    """Body of POST /v1/pairing. standing: what whoever was given the code is from now on."""

    code: str
    standing: Literal["allowed", "owner", "blocked"]


class OrderBody(Body):
    """Body of POST /v1/people. who: "channel:id"."""

    who: str
    order: Order


class Routes:
    """Handlers of everything but /v1/agent, and what the routes show and do."""

    def __init__(self, service: Service, status: Callable[[], Awaitable[StatusView]]) -> None:
        self._health = service.health
        self._parts = service.parts
        self._reads = service.parts.store.reads
        self._status = status

    async def healthz(self, request: Request) -> Response:
        """GET /healthz: the process lives."""
        return answer(self._health())

    async def readyz(self, request: Request) -> Response:
        """GET /readyz: the service works."""
        found = self._health()
        return answer(found, 200 if found.ready else 503)

    async def status(self, request: Request) -> Response:
        """GET /v1/status, for owners."""
        if caller(request) is Caller.PERSON:
            raise not_open("The state of the service is for its owners.")
        return answer(await self._status())

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
            seen_by(caller(request), await self._parts.api.turn(run_id))
            if last is not None and last == await self._reads.end_of(run_id):
                return Response(status_code=204)  # tells an EventSource that there is nothing to come back for
        let_last(request)
        sessions, causes = caller(request).sessions, caller(request) is not Caller.PERSON
        stream = EventStream(self._reads, self._parts.bus, key, run_id, sessions, causes)
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

    async def pending(self, request: Request) -> Response:
        """GET /v1/pairing, for owners: who waits."""
        _only_owners(request)
        return answer(list(await self._parts.pairing.pending()))

    async def settle(self, request: Request) -> Response:
        """POST /v1/pairing: use a code. 404 for a wrong one, 409 for one that was used or is too old."""
        _only_owners(request)
        body = parse_body(CodeBody, await read_body(request))
        found = await self._parts.pairing.settle(body.code, body.standing, named(request))
        if found is None or found.used:
            raise HttpProblem(404 if found is None else 409, "no_such_code", wording.settled(found))
        return answer(found.person)

    async def people(self, request: Request) -> Response:
        """GET /v1/people, for owners: everybody of whom something is known."""
        _only_owners(request)
        return answer(await self._parts.pairing.everybody())

    async def stand(self, request: Request) -> Response:
        """POST /v1/people: revoke, block, or make an owner. 409 when nothing was changed."""
        _only_owners(request)
        body = parse_body(OrderBody, await read_body(request))
        try:
            return answer({"text": await self._parts.pairing.stand(body.who, body.order, named(request))})
        except NotChanged as error:
            raise HttpProblem(409, "not_changed", str(error)) from None

    async def later(self, request: Request) -> Response:
        """What a later version has: the name is taken."""
        raise HttpProblem(404, "not_in_this_version", f"{request.url.path} is not in this version yet.")


def build(service: Service, status: Callable[[], Awaitable[StatusView]]) -> Starlette:
    """The application that both listeners serve."""
    routes = Routes(service, status)
    agent = AgentRoutes(service.parts.api)
    heartbeat = HeartbeatRoutes(Control(service.parts.dispatcher))
    approvals = ApprovalRoutes(service.parts.requests)
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
            Route("/v1/pairing", routes.pending, methods=["GET"]),
            Route("/v1/pairing", routes.settle, methods=["POST"]),
            Route("/v1/people", routes.people, methods=["GET"]),
            Route("/v1/people", routes.stand, methods=["POST"]),
            Route("/v1/heartbeat", heartbeat.show, methods=["GET"]),
            Route("/v1/heartbeat/run", heartbeat.run, methods=["POST"]),
            Route("/v1/heartbeat/wake", heartbeat.wake, methods=["POST"]),
            Route("/v1/approvals", approvals.show, methods=["GET"]),
            Route("/v1/approvals/rules", approvals.rules, methods=["GET"]),
            Route("/v1/approvals/rules", approvals.forget, methods=["POST"]),
            Route("/v1/approvals/{id}", approvals.decide, methods=["POST"]),
            Route("/v1/status", routes.status, methods=["GET"]),
            Route("/healthz", routes.healthz, methods=["GET"]),
            Route("/readyz", routes.readyz, methods=["GET"]),
            Route("/metrics", routes.later, methods=["GET"]),
            Route("/v1/chat/completions", routes.later, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _problem, StoreUnavailable: _store_unavailable, Exception: _internal},
    )
    app.router.redirect_slashes = False
    return app


def _only_owners(request: Request) -> None:
    if caller(request) is Caller.PERSON:
        raise HTTPException(404)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, HttpProblem):
        return error.response()
    code, message = {
        404: ("not_found", f"There is nothing at {request.url.path[:200]}."),
        405: ("method_not_allowed", f"{request.method[:20]} is not possible here."),
    }.get(error.status_code, ("bad_request", error.detail or "The request cannot be read."))
    return HttpProblem(error.status_code, code, message, headers=error.headers).response()


async def _store_unavailable(request: Request, error: Exception) -> Response:
    reading = request.method == "GET"
    what = "be read right now." if reading else "write right now; nothing was accepted."
    hint = "Send the same request again later; GET /readyz says what is wrong."
    return unavailable("store_unavailable", f"The store cannot {what}", hint).response()


async def _internal(request: Request, error: Exception) -> Response:
    return HttpProblem(500, "internal", "Something went wrong inside Hark; the log says more.").response()
