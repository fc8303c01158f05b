"""Codes of strangers over HTTP, for owners: who waits, and what becomes of a code."""

from typing import Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bot import wording
from bot.gateway.access import Caller, caller
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import HttpProblem, answer
from bot.inbound.pairing import Pairing


class CodeBody(Body):
    """Body of POST /v1/pairing. standing: what whoever was given the code is from now on."""

    code: str
    standing: Literal["allowed", "owner", "blocked"]


class PairingRoutes:
    """The handlers of /v1/pairing."""

    def __init__(self, pairing: Pairing) -> None:
        self._pairing = pairing

    async def pending(self, request: Request) -> Response:
        """GET: who waits."""
        _only_owners(request)
        return answer(list(await self._pairing.pending()))

    async def settle(self, request: Request) -> Response:
        """POST: use a code. 404 for a wrong one, 409 for one that was used or is too old."""
        _only_owners(request)
        body = parse_body(CodeBody, await read_body(request))
        found = await self._pairing.settle(body.code, body.standing)
        if found is None or found.used:
            raise HttpProblem(404 if found is None else 409, "no_such_code", wording.settled(found))
        return answer(found.person)


def _only_owners(request: Request) -> None:
    if caller(request) is Caller.PERSON:
        raise HTTPException(404)
