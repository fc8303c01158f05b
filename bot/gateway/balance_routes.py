"""The book of messages over HTTP, for owners."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.gateway.access import Caller, caller
from bot.gateway.agent_routes import Body, parse_body, read_body
from bot.gateway.answers import HttpProblem, answer
from bot.gateway.approval_routes import named
from bot.gateway.balance import Book, NotUnexplained


class MessageBody(Body):
    """Body of POST /v1/balance. message: as the book names it."""

    message: str


class BalanceRoutes:
    """Handlers of /v1/balance."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def routes(self) -> list[Route]:
        """Return the routes of the handlers."""
        return [
            Route("/v1/balance", self.show, methods=["GET"]),
            Route("/v1/balance", self.accept, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """GET /v1/balance, for owners: the book."""
        _only_owners(request)
        try:
            return answer(await self._book.balance(request.query_params.get("since", "")))
        except ValueError as error:
            raise HttpProblem(422, "invalid", str(error)) from None

    async def accept(self, request: Request) -> Response:
        """POST /v1/balance, for owners: accept a message without an explanation. 409 when it is no such message."""
        _only_owners(request)
        body = parse_body(MessageBody, await read_body(request))
        try:
            return answer(await self._book.accept_message(body.message, named(request)))
        except NotUnexplained as error:
            raise HttpProblem(409, "not_unexplained", str(error)) from None


def _only_owners(request: Request) -> None:
    if caller(request) is Caller.PERSON:
        raise HTTPException(404)
