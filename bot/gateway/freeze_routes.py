"""Freezing over HTTP, for owners."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.gateway.access import only_owners
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import answer
from bot.gateway.approval_routes import named
from bot.persistence.freezes import What
from bot.runs.freezing import Freezer

_REFUSAL = "Only owners freeze and thaw."


class FreezeBody(Body):
    """Body of POST /v1/freeze."""

    what: What = "all"


class FreezeRoutes:
    """Handlers of /v1/freeze and /v1/thaw."""

    def __init__(self, freezer: Freezer) -> None:
        self._freezer = freezer

    def routes(self) -> list[Route]:
        """Return the routes of the handlers."""
        return [
            Route("/v1/freeze", self.freeze, methods=["POST"]),
            Route("/v1/thaw", self.thaw, methods=["POST"]),
        ]

    async def freeze(self, request: Request) -> Response:
        """POST /v1/freeze: returns all that is frozen."""
        only_owners(request, _REFUSAL)
        body = parse_body(FreezeBody, await read_body(request) or b"{}")
        found, _ = await self._freezer.freeze(body.what, named(request), "http")
        return answer(list(found))

    async def thaw(self, request: Request) -> Response:
        """POST /v1/thaw: returns what was frozen, and how much goes on."""
        only_owners(request, _REFUSAL)
        thawed, _ = await self._freezer.thaw()
        return answer(thawed)
