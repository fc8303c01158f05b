"""One connection of Socket Mode through the library's client.

The library would reconnect to the same address for ever without growing pauses; here a connection just ends, and
`receive` decides what follows. An envelope is acknowledged on its own connection, once it is stored.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import ClientWSTimeout
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

Accept = Callable[[dict[str, Any]], Awaitable[bool]]

# Seconds that pending envelopes may take when it closes; Slack waits no longer.
_GRACE = 3.0

_CLOSING = ClientWSTimeout(ws_close=2.0)


class Connection(SocketModeClient):
    """over: it has ended or is about to. planned: Slack has said so before, and keeps it for a while.

    url: as apps.connections.open gave it; good for one connection. accept: takes an envelope, which is acknowledged
    unless it says False. greeted: called when Slack says hello.
    """

    def __init__(
        self, url: str, web: AsyncWebClient, accept: Accept, greeted: Callable[[], None], ping_interval: float
    ) -> None:
        super().__init__("", logging.getLogger("slack_sdk"), web, ping_interval=ping_interval)
        self.wss_uri = url
        self.over = asyncio.Event()
        self.planned = False
        self._accept = accept
        self._greeted = greeted
        self._answering: set[asyncio.Task[Any]] = set()
        self.message_listeners.append(self._hear)
        self.socket_mode_request_listeners.append(self._take)

    @property
    def is_open(self) -> bool:
        """Whether events may still arrive."""
        return self.current_session is not None and not self.current_session.closed

    async def connect(self) -> None:
        """Connect once. Raises aiohttp's ClientError, OSError or TimeoutError."""
        assert self.wss_uri is not None
        # The library's own pings are answered here; the heartbeat ends a connection on which nothing is.
        self.current_session = await self.aiohttp_client_session.ws_connect(
            self.wss_uri, autoping=False, heartbeat=self.ping_interval, proxy=self.proxy, timeout=_CLOSING
        )
        self.current_session_monitor = asyncio.ensure_future(self.monitor_current_session())
        self.message_receiver = asyncio.ensure_future(self.receive_messages())

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """What the library does when the connection has ended or, by force, when Slack says that it soon will."""
        self.planned = self.planned or (force and not self.over.is_set())
        self.over.set()

    async def close(self) -> None:
        """Wait for pending acknowledgements, then close."""
        if self._answering:
            await asyncio.wait(self._answering, timeout=_GRACE)
        await super().close()  # type: ignore[no-untyped-call]

    async def _hear(self, _client: object, message: dict[str, Any], _raw: str | None) -> None:
        if message.get("type") == "hello":
            self._greeted()

    async def _take(self, _client: object, request: SocketModeRequest) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            if await self._accept(request.payload):
                with contextlib.suppress(ConnectionError):  # Slack delivers it again, with the same key
                    await self.send_socket_mode_response(SocketModeResponse(request.envelope_id))
        finally:
            self._answering.discard(task)
