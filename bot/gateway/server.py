"""The gateway as a part of the service: the same routes on a TCP port and on a Unix socket, and an orderly end."""

import asyncio
import errno
import os
from pathlib import Path

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.config.model import Gateway as Address
from bot.gateway.access import Guard
from bot.gateway.answers import unavailable
from bot.gateway.listener import Listener, tell_failures
from bot.gateway.unix_socket import listening_socket

log = structlog.get_logger()

# What is served before the service is up.
HEALTH = ("/healthz", "/readyz")
# What a crash left is not repaired yet, or the store not open.
_STARTING = unavailable(
    "starting",
    "Hark is starting; nothing was accepted.",
    "Send the same request again later; GET /readyz says what it waits for.",
)
_BUSY = unavailable(
    "busy", "All connections are in use; nothing was accepted.", "Send the same request again in a few seconds."
)
_STOPPING = unavailable(
    "stopping", "The service is stopping; nothing was accepted.", "Send the same request again when it is back."
)


class GatewayError(OSError):
    """The gateway cannot be served as configured; the text is one sentence for whoever starts the service."""


class Gateway:
    """One per service. app: what is served. socket: the path of the Unix socket. tcp: None listens on no port."""

    def __init__(self, app: ASGIApp, socket: Path, tcp: Address | None) -> None:
        self._socket = socket
        self._address = tcp
        self._app = app
        self._open = self._stopping = False
        token = tcp.token.get_secret_value() if tcp and tcp.token else None
        self._tcp = Listener(Guard(self._once_open, token, socket=False), self._health)
        self._unix = Listener(Guard(self._once_open, None, socket=True), self._health)
        # The port that is served; None without one, and before start.
        self.port: int | None = None

    async def start(self) -> None:
        """Listen; only health is shown yet. Raises GatewayError when the port or the socket cannot be had."""
        tell_failures(asyncio.get_running_loop())
        try:
            await self._unix.start_unix(listening_socket(self._socket))
        except OSError as error:
            raise GatewayError(f"The socket {self._socket} cannot be made: {error.strerror or error}.") from error
        if (at := self._address) is not None:
            try:
                self.port = await self._tcp.start_tcp(at.host, at.port)
            except OSError as error:
                await self.close()
                raise GatewayError(_cannot_listen(at.host, at.port, error)) from error
            log.info("gateway", host=at.host, port=self.port)

    def open(self) -> None:
        """Serve everything from now on."""
        self._open = True

    def stop_intake(self) -> None:
        """Accept no messages any more; what runs can still be looked at and waited for."""
        self._stopping = True

    async def close(self) -> None:
        """End all connections; streams and waits have ended with the bus, or are cut."""
        self.stop_intake()
        await asyncio.gather(self._tcp.close(), self._unix.close())
        self._socket.unlink(missing_ok=True)

    async def _once_open(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if not self._open and scope["path"] not in HEALTH:
            app = _STARTING.response()
        elif self._stopping and scope["method"] == "POST":
            app = _STOPPING.response()
        await app(scope, receive, send)

    async def _health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What is answered when all places are taken."""
        app = self._app if scope["path"] in HEALTH else _BUSY.response()
        await app(scope, receive, send)


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} of {host} is in use by another program. Stop that one, or choose another `gateway.port`."
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return f"The gateway cannot listen on {host}, port {port}: {reason}."
