"""The heartbeat over HTTP, for owners: how it stands, a beat now, and events for its next turn."""

from collections.abc import Callable
from typing import Annotated

from pydantic import StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from bot.background.control import Control
from bot.compose import EVENT_LIMIT
from bot.gateway.access import only_owners
from bot.gateway.agent_routes import Body, parse_body, read_body, resolve_session
from bot.gateway.answers import HttpProblem, answer

_REFUSAL = "The heartbeat is for owners."
# The error when no session was named and the heartbeat has none.
NO_SESSION = "No owner has written directly yet, so there is no session to tell. Name one."


class RunBody(Body):
    """Body of POST /v1/heartbeat/run."""

    dry: bool = False


class WakeBody(Body):
    """Body of POST /v1/heartbeat/wake. session: a session key, or a name; without it that of the heartbeat."""

    text: Annotated[str, StringConstraints(pattern=r"\S", max_length=EVENT_LIMIT)]
    now: bool = False
    session: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None


class HeartbeatRoutes:
    """The handlers of /v1/heartbeat."""

    def __init__(self, control: Control, clean: Callable[[str], str]) -> None:
        """clean: returns a text without secrets."""
        self._control, self._clean = control, clean

    async def show(self, request: Request) -> Response:
        """GET /v1/heartbeat."""
        only_owners(request, _REFUSAL)
        return answer(await self._control.heartbeat())

    async def run(self, request: Request) -> Response:
        """POST /v1/heartbeat/run: a beat now, or what it would be."""
        only_owners(request, _REFUSAL)
        body = parse_body(RunBody, await read_body(request) or b"{}")
        return answer(await self._control.beat(dry=body.dry))

    async def wake(self, request: Request) -> Response:
        """POST /v1/heartbeat/wake: an event that the next turn is told of."""
        only_owners(request, _REFUSAL)
        body = parse_body(WakeBody, await read_body(request))
        wanted = resolve_session(body.session) if body.session else ""
        told = await self._control.wake(self._clean(body.text.strip()), wanted, now=body.now)
        if told is None:
            raise HttpProblem(409, "no_session", NO_SESSION)
        return answer({"session": told}, 202)
