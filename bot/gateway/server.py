"""The gateway as a part of the service: the same routes on a TCP port and on a Unix socket, and an orderly end."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog
from starlette.types import Receive, Scope, Send

from bot.agent_api import AgentApi
from bot.bus import EventBus
from bot.commands.status import StatusView
from bot.config.model import is_loopback
from bot.gateway.access import Guard
from bot.gateway.agent_routes import AgentRoutes
from bot.gateway.answers import starting
from bot.gateway.app import Served, build
from bot.gateway.closing import Closing
from bot.gateway.listener import Listener, tell_failures
from bot.gateway.unix_socket import listening_socket
from bot.health import Report
from bot.store.reads import Reads
from channels.console.adapter import ConsoleChannel

log = structlog.get_logger()

HEALTH = ("/healthz", "/readyz")
"""What is served before the service is up."""


class GatewayError(OSError):
    """The gateway cannot be served as configured; the text is one sentence for whoever starts the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Where to listen and who may call. port: 0 takes any free one, None listens on no port at all."""

    host: str = "127.0.0.1"
    port: int | None = 8420
    token: str | None = None


class Gateway:
    """One per service. Raises GatewayError when it is not safe as configured."""

    def __init__(
        self,
        *,
        api: AgentApi,
        reads: Reads,
        bus: EventBus,
        health: Callable[[], Report],
        status: Callable[[], Awaitable[StatusView]],
        settings: GatewaySettings,
        socket_path: Path,
        console: ConsoleChannel | None,
    ) -> None:
        if settings.port is not None and settings.token is None and not is_loopback(settings.host):
            raise GatewayError(
                f"gateway.host {settings.host} can be reached from other machines, and there is no token. "
                "Set gateway.token, or use 127.0.0.1."
            )
        self._settings = settings
        self._socket_path = socket_path
        self._closing = Closing()
        self._agent = AgentRoutes(api, self._closing)
        served = Served(api=api, reads=reads, bus=bus, health=health, status=status, console=console)
        self._app = build(served, self._agent, self._closing)
        self._open = False
        self._tcp = Listener(Guard(self._once_open, settings.token, socket=False))
        self._unix = Listener(Guard(self._once_open, None, socket=True))
        self._port: int | None = None

    @property
    def port(self) -> int | None:
        """The port that is served; None without one, and before start."""
        return self._port

    async def start(self) -> None:
        """Listen; only health is shown yet. Raises GatewayError when the port or the socket cannot be had."""
        tell_failures(asyncio.get_running_loop())
        try:
            await self._unix.start_unix(listening_socket(self._socket_path))
        except OSError as error:
            raise GatewayError(f"The socket {self._socket_path} cannot be made: {error.strerror or error}.") from error
        settings = self._settings
        if settings.port is not None:
            try:
                self._port = await self._tcp.start_tcp(settings.host, settings.port)
            except OSError as error:
                await self.close()
                raise GatewayError(_cannot_listen(settings.host, settings.port, error)) from error
            log.info("gateway", host=settings.host, port=self._port)

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
        self._socket_path.unlink(missing_ok=True)

    async def _once_open(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app if self._open or scope["path"] in HEALTH else starting().response()
        await app(scope, receive, send)


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} of {host} is in use by another program. "
            "Stop that one, or choose another port (`gateway.port` in the configuration)."
        )
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
    return f"The gateway cannot listen on {host}, port {port}: {reason}."
