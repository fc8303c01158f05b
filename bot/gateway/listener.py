"""One listening socket with uvicorn's HTTP protocol behind it, in the service's own loop.

Of uvicorn only the protocol is used: its server would take over signals and logging, wake up ten times a second, and
end the process when a port is in use.
"""

import asyncio
import socket

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.server import ServerState

GRACE = 2.0
"""Seconds that answers under way have when the listener closes."""
KEEP_ALIVE = 65
"""Seconds an idle connection is kept: longer than clients and proxies keep theirs, so that they close it."""


class Listener:
    """Serves an application; start one of the two, then close."""

    def __init__(self, app: ASGIApp) -> None:
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
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    async def start_tcp(self, host: str, port: int) -> int:
        """Listen on every address of host; returns the port. Raises OSError."""
        self._config.load()
        server = await asyncio.get_running_loop().create_server(self._protocol, host, port)
        self._server = server
        return int(server.sockets[0].getsockname()[1])

    async def start_unix(self, listening: socket.socket) -> None:
        """Listen on a Unix socket."""
        self._config.load()
        self._server = await asyncio.get_running_loop().create_unix_server(self._protocol, sock=listening)

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

    def _protocol(self) -> asyncio.Protocol:
        make = self._config.http_protocol_class
        return make(config=self._config, server_state=self._state, app_state={})  # type: ignore[call-arg]
