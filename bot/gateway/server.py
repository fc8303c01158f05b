"""The gateway as a part of the service: the same routes on a TCP port and on a Unix socket, and an orderly end."""

import asyncio
import errno
import os
from dataclasses import dataclass
from pathlib import Path

import structlog
from starlette.types import Receive, Scope, Send

from bot.config.model import is_loopback
from bot.gateway.access import Guard
from bot.gateway.agent_routes import AgentRoutes
from bot.gateway.answers import unavailable
from bot.gateway.app import Served, build
from bot.gateway.closing import Closing
from bot.gateway.listener import Listener, tell_failures
from bot.gateway.unix_socket import listening_socket

log = structlog.get_logger()

HEALTH = ("/healthz", "/readyz")
"""What is served before the service is up."""
_STARTING = unavailable(
    "starting",
    "Hark is starting; nothing was accepted.",
    "Send the same request again later; GET /readyz says what it waits for.",
)
"""What a crash left is not repaired yet, or the store not open."""


class GatewayError(OSError):
    """The gateway cannot be served as configured; the text is one sentence for whoever starts the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Where to listen and who may call. port: 0 takes any free one, None listens on no port at all."""

    socket: Path
    host: str = "127.0.0.1"
    port: int | None = 8420
    token: str | None = None


class Gateway:
    """One per service. Raises GatewayError when it is not safe as configured."""

    def __init__(self, served: Served, settings: GatewaySettings) -> None:
        if settings.port is not None and settings.token is None and not is_loopback(settings.host):
            raise GatewayError(
                f"gateway.host {settings.host} can be reached from other machines, and there is no token. "
                "Set gateway.token, or use 127.0.0.1."
            )
        self._settings = settings
        self._closing = Closing()
        self._agent = AgentRoutes(served.api, self._closing)
        self._app = build(served, self._agent, self._closing)
        self._open = False
        self._tcp = Listener(Guard(self._once_open, settings.token, socket=False))
        self._unix = Listener(Guard(self._once_open, None, socket=True))
        self.port: int | None = None
        """The port that is served; None without one, and before start."""

    async def start(self) -> None:
        """Listen; only health is shown yet. Raises GatewayError when the port or the socket cannot be had."""
        tell_failures(asyncio.get_running_loop())
        settings = self._settings
        try:
            await self._unix.start_unix(listening_socket(settings.socket))
        except OSError as error:
            raise GatewayError(f"The socket {settings.socket} cannot be made: {error.strerror or error}.") from error
        if settings.port is not None:
            try:
                self.port = await self._tcp.start_tcp(settings.host, settings.port)
            except OSError as error:
                await self.close()
                raise GatewayError(_cannot_listen(settings.host, settings.port, error)) from error
            log.info("gateway", host=settings.host, port=self.port)

    def open(self) -> None:
        """Serve everything from now on."""
        self._open = True

    def stop_intake(self) -> None:
        """Accept no messages any more; what runs can still be looked at and waited for."""
        self._agent.intake = False

    async def close(self) -> None:
        """End streams, answer waits with the present state, then end all connections."""
        self.stop_intake()
        self._closing.begin()
        await asyncio.gather(self._tcp.close(), self._unix.close())
        self._settings.socket.unlink(missing_ok=True)

    async def _once_open(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app if self._open or scope["path"] in HEALTH else _STARTING.response()
        await app(scope, receive, send)


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} of {host} is in use by another program. "
            "Stop that one, or choose another port (`gateway.port` in the configuration)."
        )
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return f"The gateway cannot listen on {host}, port {port}: {reason}."
