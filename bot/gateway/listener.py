"""One listening socket with uvicorn's HTTP protocol behind it, in the service's own loop.

Of uvicorn only the protocol is used: its server would take over signals and logging, wake up ten times a second, and
end the process when a port is in use. What it lacks, deadlines and bounds, is in `channels/connections.py`.
"""

import asyncio
import socket
from functools import partial
from math import ceil
from typing import Any

import h11
import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from channels.connections import Guest, Limits, Places, Stage

log = structlog.get_logger()

# Seconds that answers under way have when the listener closes.
GRACE = 2.0
_FAILURE_SECONDS = 60.0


class Listener:
    """Serves an application; start one of the two, then close.

    spare: an application that answers at once, for connections that come while all places are taken by answers under
    way. limits: other ones than usual.
    """

    def __init__(self, app: ASGIApp, spare: ASGIApp, limits: Limits | None = None) -> None:
        self._places = Places(limits)
        self._config = Config(
            app,
            interface="asgi3",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=ceil(self._places.limits.idle),
        )
        self._config.load()
        self._state = ServerState()
        self._protocol = partial(_Connection, _and_close(spare), self._places, self._config, self._state)
        self._server: asyncio.Server | None = None

    async def start_tcp(self, host: str, port: int) -> int:
        """Listen on every address of host; returns the port. Raises OSError."""
        self._server = await self._places.serve(self._protocol, host=host, port=port)
        return int(self._server.sockets[0].getsockname()[1])

    async def start_unix(self, listening: socket.socket) -> None:
        """Listen on a Unix socket."""
        self._server = await self._places.serve(self._protocol, sock=listening)

    async def close(self) -> None:
        """Accept nothing more, let answers finish for a moment, then end every connection."""
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        await self._answers_end()
        for connection in list(self._state.connections):
            connection.transport.abort()
        await self._answers_end()
        for task in self._state.tasks:
            task.cancel()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _answers_end(self) -> None:
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=GRACE)


class _Connection(Guest, H11Protocol):
    """A connection whose routes find it as `request.state.connection`. spare: what answers when its place is spare."""

    def __init__(self, spare: ASGIApp, places: Places, config: Config, state: ServerState) -> None:
        super().__init__(places, config, state, {"connection": self})
        self._spare_app = spare

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self.spare:
            self.app = self._spare_app

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.look()

    def asks(self) -> Stage:
        if self.conn.their_state is h11.IDLE:
            begun = self.cycle is None or self.conn.trailing_data[0]
            return Stage.HEAD if begun else Stage.IDLE
        return Stage.BODY if self.conn.their_state is h11.SEND_BODY else Stage.ANSWER


def _and_close(app: ASGIApp) -> ASGIApp:
    """The application, whose answers end their connections."""

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await app(scope, receive, sent)

    return closing


def tell_failures(loop: asyncio.AbstractEventLoop) -> None:
    """Let the loop tell once a minute, in one line, that connections cannot be accepted; all else as it was."""
    told = float("-inf")

    def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal told
        if not str(context.get("message")).startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif loop.time() - told >= _FAILURE_SECONDS:
            told = loop.time()
            log.error("connections cannot be accepted", reason=str(context.get("exception")))

    loop.set_exception_handler(tell)
