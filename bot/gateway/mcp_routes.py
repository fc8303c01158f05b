"""MCP servers over HTTP, for owners: what they show, and that an owner has looked at it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.gateway.access import only_owners
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import HttpProblem, answer
from bot.mcp.servers import NoServer, Servers


class ServerBody(Body):
    """Body of POST /v1/mcp/accept. server: its name in the configuration."""

    server: str


class McpRoutes:
    """Handlers of /v1/mcp."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def routes(self) -> list[Route]:
        """Return the routes of the handlers."""
        return [
            Route("/v1/mcp", self.show, methods=["GET"]),
            Route("/v1/mcp/accept", self.accept, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """GET /v1/mcp: all tools that servers have shown."""
        only_owners(request, "MCP servers are for owners.")
        return answer(await self._servers.mcp())

    async def accept(self, request: Request) -> Response:
        """POST /v1/mcp/accept: let the tools of a server be called as it shows them. 404 when none is known so."""
        only_owners(request, "MCP servers are for owners.")
        body = parse_body(ServerBody, await read_body(request))
        try:
            return answer(await self._servers.accept_mcp(body.server))
        except NoServer as error:
            raise HttpProblem(404, "no_server", str(error)) from None
