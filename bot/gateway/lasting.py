"""Answers that take as long as they like, event streams and waits: each holds its connection, so they are bounded."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from bot.gateway.answers import HttpProblem
from channels.connections import Guest

_HEADERS = {"Retry-After": "5", "Connection": "close"}

T = TypeVar("T")


def let_last(request: Request) -> None:
    """Let the answer take as long as it likes. Raises HttpProblem when too many do so already."""
    connection: Guest = request.state.connection
    if not connection.lasts():
        hint = "Close those that nobody reads, or look at the run without `wait`."
        raise HttpProblem(429, "too_many", "Too many event streams and waits are open.", hint, _HEADERS)


async def unless_left(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; it is cancelled when the client goes, for whom alone it is done: raises ClientDisconnect."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.create_task(work), asyncio.create_task(left())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
