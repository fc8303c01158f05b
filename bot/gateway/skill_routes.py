"""Skills over HTTP, for owners."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.skills.manifest import SkillError
from bot.gateway.access import only_owners
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import HttpProblem, answer
from bot.skills.shelf import Shelf

_REFUSAL = "Skills are for owners."


class SkillBody(Body):
    """Body of POST /v1/skills. digest: of the files that were looked at; empty: those that are there."""

    name: str
    digest: str = ""


class SkillRoutes:
    """Handlers of /v1/skills."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def routes(self) -> list[Route]:
        """Return the routes of the handlers."""
        return [
            Route("/v1/skills", self.show, methods=["GET"]),
            Route("/v1/skills", self.accept, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """GET /v1/skills: all skills, with the reasons why some are not used."""
        only_owners(request, _REFUSAL)
        return answer(await self._shelf.skills())

    async def accept(self, request: Request) -> Response:
        """POST /v1/skills: a skill counts as looked at. 409 when it cannot be used."""
        only_owners(request, _REFUSAL)
        body = parse_body(SkillBody, await read_body(request))
        try:
            await self._shelf.accept(body.name, body.digest)
        except SkillError as error:
            raise HttpProblem(409, "no_skill", str(error)) from None
        return answer({"name": body.name})
