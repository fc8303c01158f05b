"""What every answer of the gateway looks like (JSON, one shape for all errors), and how long one may take.

Event streams and waits take as long as they like. Each holds its connection, so there may be only so many.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from channels.connections import Guest


class HttpProblem(HTTPException):
    """A request that is refused or failed; answered as `{"error": {"code", "message", "hint"}}` with this status.

    code: for programs, never changed. message: what is wrong, in a sentence. hint: what to do about it, may be empty.
    """

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code
        self.hint = hint

    def response(self) -> Response:
        """The answer to send."""
        body = {"error": {"code": self.code, "message": self.detail, "hint": self.hint}}
        return answer(body, self.status_code, self.headers)


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer. body: a mapping or a dataclass."""
    return Response(to_json(body), status, headers, media_type="application/json")


def unavailable(code: str, message: str, hint: str) -> HttpProblem:
    """The error for a request that cannot be served now, and may be sent again soon."""
    return HttpProblem(503, code, message, hint, {"Retry-After": "5"})


_HEADERS = {"Retry-After": "5", "Connection": "close"}

T = TypeVar("T")


def let_last(request: Request) -> None:
    """Let the answer to this request take as long as it likes. Raises HttpProblem (429) when too many do so already."""
    connection: Guest = request.state.connection
    if not connection.lasts():
        hint = "Close those that nobody reads, or look at the run without `wait`."
        raise HttpProblem(429, "too_many", "Too many event streams and waits are open.", hint, _HEADERS)


async def unless_left(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work that is done for this client alone.

    Cancels it and raises ClientDisconnect when the client goes away first.
    """

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.create_task(work), asyncio.create_task(wait_for_disconnect())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
