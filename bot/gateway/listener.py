"""One listening socket with uvicorn's HTTP protocol behind it, in the service's own loop.

Of uvicorn only the protocol is used: its server would take over signals and logging, wake up ten times a second, and
end the process when a port is in use. What it lacks is here: a client has so long for a request, and a listener takes
a bounded number of connections, so that those who say nothing take neither descriptors nor places from others.
"""

import asyncio
import resource
import socket
from functools import partial
from typing import Any

import structlog
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

log = structlog.get_logger()

# Seconds that answers under way have when the listener closes.
GRACE = 2.0
# Seconds an idle connection is kept: longer than clients and proxies keep theirs, so that they close it.
KEEP_ALIVE = 65
# How long a client may take for a whole request, head and body, from its connection or the last answer's next byte.
REQUEST_SECONDS = 20.0
# Connections per listener, or an eighth of the descriptors that the process may have, if that is less.
MOST_CONNECTIONS = 512
_FAILURE_SECONDS = 60.0


class Listener:
    """Serves an application; start one of the two, then close. request_seconds: see REQUEST_SECONDS."""

    def __init__(self, app: ASGIApp, request_seconds: float = REQUEST_SECONDS) -> None:
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = max(8, min(MOST_CONNECTIONS, descriptors // 8))
        self._backlog = min(100, most)  # as many are accepted at once, before one of them can be refused
        self._config = Config(
            app,
            interface="asgi3",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE,
        )
        self._config.load()
        self._state = ServerState()
        self._protocol = partial(_BoundedProtocol, self._config, self._state, most, request_seconds)
        self._server: asyncio.Server | None = None

    async def start_tcp(self, host: str, port: int) -> int:
        """Listen on every address of host; returns the port. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, host, port, backlog=self._backlog)
        return int(self._server.sockets[0].getsockname()[1])

    async def start_unix(self, listening: socket.socket) -> None:
        """Listen on a Unix socket."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._protocol, sock=listening, backlog=self._backlog)

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


class _BoundedProtocol(H11Protocol):
    """A connection that ends when a request does not arrive in time, or when it is idle and another needs its place.

    most: connections of the listener; at that number the one that is idle for longest goes, else the new one.
    """

    def __init__(self, config: Config, state: ServerState, most: int, request_seconds: float) -> None:
        super().__init__(config, state, {})
        self._most = most
        self._request_seconds = request_seconds
        self._deadline: asyncio.TimerHandle | None = None
        self._idle_since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= self._most:
            idle = [found for found in self.connections if isinstance(found, _BoundedProtocol) and not found._is_busy]
            if not idle:
                self.transport = transport
                transport.abort()
                return
            oldest = min(idle, key=lambda found: found._idle_since)
            self.connections.discard(oldest)
            oldest.transport.abort()
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self._is_busy or self.conn.trailing_data[0]:  # the next request, or some of it, came with this one
            self._watch()

    @property
    def _is_busy(self) -> bool:
        """A request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        """Limit the time for what is missing of a request; between requests uvicorn's own limit holds."""
        if self._is_busy and not self.cycle.more_body:
            self._disarm()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(self._request_seconds, self.transport.abort)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


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
