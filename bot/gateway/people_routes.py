"""Who may write, over HTTP and for owners: strangers who wait, codes, and what somebody is from now on."""

from typing import Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bot import wording
from bot.gateway.access import Caller, caller
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import HttpProblem, answer
from bot.gateway.approval_routes import named
from bot.inbound.pairing import NotChanged, Order, Pairing


class CodeBody(Body):
    """Body of POST /v1/pairing. standing: what whoever was given the code is from now on."""

    code: str
    standing: Literal["allowed", "owner", "blocked"]


class OrderBody(Body):
    """Body of POST /v1/people. who: "channel:id"."""

    who: str
    order: Order


class PeopleRoutes:
    """Handlers of /v1/pairing and /v1/people."""

    def __init__(self, pairing: Pairing) -> None:
        self._pairing = pairing

    async def pending(self, request: Request) -> Response:
        """GET /v1/pairing, for owners: who waits."""
        _only_owners(request)
        return answer(list(await self._pairing.pending()))

    async def settle(self, request: Request) -> Response:
        """POST /v1/pairing: use a code. 404 for a wrong one, 409 for one that was used or is too old."""
        _only_owners(request)
        body = parse_body(CodeBody, await read_body(request))
        found = await self._pairing.settle(body.code, body.standing, named(request))
        if found is None or found.used:
            raise HttpProblem(404 if found is None else 409, "no_such_code", wording.settled(found))
        return answer(found.person)

    async def people(self, request: Request) -> Response:
        """GET /v1/people, for owners: everybody of whom something is known."""
        _only_owners(request)
        return answer(await self._pairing.everybody())

    async def stand(self, request: Request) -> Response:
        """POST /v1/people: revoke, block, or make an owner. 409 when nothing was changed."""
        _only_owners(request)
        body = parse_body(OrderBody, await read_body(request))
        try:
            return answer({"text": await self._pairing.stand(body.who, body.order, named(request))})
        except NotChanged as error:
            raise HttpProblem(409, "not_changed", str(error)) from None


def _only_owners(request: Request) -> None:
    if caller(request) is Caller.PERSON:
        raise HTTPException(404)
