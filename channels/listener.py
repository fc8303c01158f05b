"""A small HTTP server that takes the requests of one platform on one path and serves nothing else.

It is a listener of its own because it is reached from outside, and the gateway must not be. How many connections it
takes, and how long it waits for them, is in `channels/connections.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from aiohttp import web

from channels.connections import Guest, Limits, Places, Stage
from channels.settings import Listen

# Bytes of a request; more is answered 413.
_LARGEST = 4 * 1024 * 1024
# Seconds that requests under way may take when it closes.
_GRACE = 3.0
_BUSY = {
    "code": "busy",
    "message": "All connections are in use; nothing was accepted.",
    "hint": "Send the same request again in a few seconds.",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Listener:
    """Hands each POST to that path to `handle`. port: the one it listens on, once it is started.

    limits: other ones than usual.
    """

    def __init__(
        self, listen: Listen, handle: Callable[[web.Request], Awaitable[web.Response]], limits: Limits | None = None
    ) -> None:
        self.port = listen.port
        self._host = listen.host
        app = web.Application(client_max_size=_LARGEST, middlewares=[_answer])
        app.router.add_post(listen.path, handle)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=_GRACE)
        self._places = Places(limits)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen from now on. Raises OSError when it cannot, such as for a port that is taken."""
        loop = asyncio.get_running_loop()
        await self._runner.setup()
        assert self._runner.server is not None
        connection = partial(_Connection, self._places, self._runner.server, loop=loop, access_log=None)
        try:
            self._server = await self._places.serve(connection, host=self._host, port=self.port)
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Take no more requests; those under way are answered."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()


class _Connection(Guest, web.RequestHandler):
    """A connection. answered: the request that it is being answered."""

    answered: web.BaseRequest | None = None

    def asks(self) -> Stage:
        if self.answered is None:
            return Stage.HEAD if self.stage is Stage.HEAD else Stage.IDLE
        return Stage.ANSWER if self.answered.content.is_eof() else Stage.BODY

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        found = await super().finish_response(request, resp, start_time)
        self.answered = None
        self.look()
        return found


@web.middleware
async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    connection = request.protocol
    assert isinstance(connection, _Connection)
    connection.answered = request
    connection.look()
    if not connection.spare:
        return await handler(request)
    refused = web.json_response({"error": _BUSY}, status=503, headers={"Retry-After": "5"})
    refused.force_close()
    return refused
