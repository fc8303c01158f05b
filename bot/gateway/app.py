"""All routes of the gateway, put together. `docs/http.md` describes them for callers."""

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.approvals.requests import Requests
from bot.background.control import Control
from bot.bus import EventBus
from bot.gateway.access import only_owners
from bot.gateway.agent_api import AgentApi
from bot.gateway.agent_routes import AgentRoutes
from bot.gateway.answers import HttpProblem, answer, unavailable
from bot.gateway.approval_routes import ApprovalRoutes
from bot.gateway.balance import Book
from bot.gateway.balance_routes import BalanceRoutes
from bot.gateway.event_routes import EventRoutes
from bot.gateway.freeze_routes import FreezeRoutes
from bot.gateway.heartbeat_routes import HeartbeatRoutes
from bot.gateway.mcp_routes import McpRoutes
from bot.gateway.people_routes import PeopleRoutes
from bot.gateway.send_routes import SendRoutes
from bot.gateway.session_routes import SessionRoutes
from bot.gateway.skill_routes import SkillRoutes
from bot.gateway.usage import UsageReport
from bot.gateway.views import ReadinessView, StatusView
from bot.inbound.pairing import Pairing
from bot.mcp.servers import Servers
from bot.persistence.errors import StoreUnavailable
from bot.restart import Restart
from bot.runs.freezing import Freezer
from bot.sessions.forgetting import Forget
from bot.sessions.service import Sessions
from bot.skills.shelf import Shelf
from bot.store.reads import Reads


class StateRoutes:
    """Handlers of what shows how the service stands: `health` for everybody, `status` for owners; and its restart."""

    def __init__(
        self,
        health: Callable[[], ReadinessView],
        status: Callable[[], Awaitable[StatusView]],
        usage: UsageReport,
        restart: Restart,
    ) -> None:
        self._health = health
        self._status = status
        self._usage = usage
        self._restart = restart

    async def healthz(self, request: Request) -> Response:
        """GET /healthz: the process lives."""
        return answer(self._health())

    async def readyz(self, request: Request) -> Response:
        """GET /readyz: the service works."""
        found = self._health()
        return answer(found, 200 if found.ready else 503)

    async def status(self, request: Request) -> Response:
        """GET /v1/status, for owners."""
        only_owners(request, "The state of the service is for its owners.")
        return answer(await self._status())

    async def usage(self, request: Request) -> Response:
        """GET /v1/usage, for owners: what model calls have used."""
        only_owners(request, "What the bot has used is for its owners.")
        return answer(await self._usage.view())

    async def restart(self, request: Request) -> Response:
        """POST /v1/restart, for owners: start anew as soon as nothing runs. 409 with what is against it."""
        only_owners(request, "A restart is for owners.")
        if obstacle := await self._restart.obstacle():
            raise HttpProblem(409, "no_restart", obstacle)
        self._restart.begin()
        return answer({"status": "accepted"}, 202)

    async def later(self, request: Request) -> Response:
        """What a later version has: the name is taken."""
        raise HttpProblem(404, "not_in_this_version", f"{request.url.path} is not in this version yet.")


def build(
    *,
    health: Callable[[], ReadinessView],
    status: Callable[[], Awaitable[StatusView]],
    api: AgentApi,
    reads: Reads,
    bus: EventBus,
    pairing: Pairing,
    control: Control,
    requests: Requests,
    usage: UsageReport,
    restart: Restart,
    freezer: Freezer,
    book: Book,
    sessions: Sessions,
    forget: Forget,
    sending: SendRoutes,
    skills: Shelf,
    mcp: Servers,
) -> Starlette:
    """The application that both listeners serve. health, status, usage: see `StateRoutes`."""
    state = StateRoutes(health, status, usage, restart)
    events, people = EventRoutes(reads, bus), PeopleRoutes(pairing)
    agent, heartbeat = AgentRoutes(api), HeartbeatRoutes(control, api.clean)
    approvals, transcripts = ApprovalRoutes(requests, api.clean), SessionRoutes(sessions, forget)
    others = (FreezeRoutes(freezer), BalanceRoutes(book), transcripts, sending, SkillRoutes(skills), McpRoutes(mcp))
    stream = Route("/v1/events", events.events)
    stream.methods = {"GET"}  # a HEAD of what has no end makes no sense
    app = Starlette(
        routes=[
            Route("/v1/agent", agent.submit, methods=["POST"]),
            Route("/v1/agent/{run_id}", agent.show, methods=["GET"]),
            Route("/v1/agent/{run_id}", agent.abort, methods=["DELETE"]),
            Route("/v1/agent/{run_id}/steer", agent.steer, methods=["POST"]),
            stream,
            Route("/v1/console", events.console, methods=["GET"]),
            Route("/v1/pairing", people.pending, methods=["GET"]),
            Route("/v1/pairing", people.settle, methods=["POST"]),
            Route("/v1/people", people.people, methods=["GET"]),
            Route("/v1/people", people.stand, methods=["POST"]),
            Route("/v1/heartbeat", heartbeat.show, methods=["GET"]),
            Route("/v1/heartbeat/run", heartbeat.run, methods=["POST"]),
            Route("/v1/heartbeat/wake", heartbeat.wake, methods=["POST"]),
            Route("/v1/approvals", approvals.show, methods=["GET"]),
            Route("/v1/approvals/rules", approvals.rules, methods=["GET"]),
            Route("/v1/approvals/rules", approvals.forget, methods=["POST"]),
            Route("/v1/approvals/{id}", approvals.decide, methods=["POST"]),
            *(route for one in others for route in one.routes()),
            Route("/v1/usage", state.usage, methods=["GET"]),
            Route("/v1/status", state.status, methods=["GET"]),
            Route("/v1/restart", state.restart, methods=["POST"]),
            Route("/healthz", state.healthz, methods=["GET"]),
            Route("/readyz", state.readyz, methods=["GET"]),
            Route("/metrics", state.later, methods=["GET"]),
            Route("/v1/chat/completions", state.later, methods=["POST"]),
        ],
        exception_handlers={HTTPException: _problem, StoreUnavailable: _store_unavailable, Exception: _internal},
    )
    app.router.redirect_slashes = False
    return app


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
