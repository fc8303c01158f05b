"""Makes connections to servers, by the package `mcp`, over pipes or HTTP."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import structlog
from mcp import ClientSession, MCPError, types
from mcp.client import Transport
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from agent.errors import ToolError
from agent.mcp.failures import reason
from agent.mcp.login import auth
from agent.mcp.pipes import LONGEST_LINE, Errors, over_pipes
from agent.mcp.settings import Settings
from agent.mcp.talk import Talk

log = structlog.get_logger()

_CONNECT_SECONDS = 30.0
# Requests for lists, and where these stand in the answers.
_LISTED = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


class _Connection(JSONRPCDispatcher[Any]):
    """Leaves out of the lists of a server what is against the protocol; the package would refuse the whole list."""

    def __init__(self, server: str, *streams: Any) -> None:
        super().__init__(*streams)
        self._server = server
        self._left_out = set[str]()
        # Of the protocol, as it was agreed upon.
        self.version = ""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """See JSONRPCDispatcher."""
        result = await super().send_raw_request(method, params, opts, **more)
        kind = _LISTED.get(method)
        if kind and isinstance(listed := result.get(kind), list):
            result[kind] = [one for one in listed if self._is_in_order(method, {**result, kind: [one]}, one)]
        return result

    def _is_in_order(self, method: str, alone: dict[str, Any], one: Any) -> bool:
        try:
            validate_server_result(method, self.version, alone)
        except ValidationError as error:
            name = one.get("name") if isinstance(one, dict) else None
            self.leave_out(name if isinstance(name, str) else f"something of {method}", reason(error))
            return False
        return True

    def leave_out(self, name: str, why: str) -> None:
        """Say once that something of a list is not used."""
        if name not in self._left_out:
            self._left_out.add(name)
            log.warning("what an MCP server shows is left out", server=self._server, name=name, reason=why)


@asynccontextmanager
async def connected(
    settings: Settings,
    started: Callable[[int, str], Awaitable[None]],
    gone: asyncio.Event,
    changed: Callable[[], None],
) -> AsyncIterator[Talk]:
    """Connect to a server until the context is left.

    started: awaited with the pid and start time of its process, before that may do anything. gone: set when the server
    has ended. changed: called when the server says that its tools have. Raises ToolError with the reason.
    """
    errors: Errors | None = None
    shut_out = False

    def why(error: BaseException) -> str:
        return f"it wants a login: `hark mcp login {settings.name}`." if shut_out else reason(error)

    async def look(response: httpx2.Response) -> None:
        nonlocal shut_out
        shut_out = response.status_code == 401 if response.url == settings.url else shut_out

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed()

    async with AsyncExitStack() as stack:
        try:
            if settings.launch is not None:
                if not os.path.isabs(settings.launch.argv[0]):
                    raise ToolError(f"there is no program `{settings.launch.argv[0]}`.")
                errors = Errors()
                stack.callback(errors.close)
                transport: Transport = over_pipes(settings.launch, Path.cwd(), started, errors, gone)
            else:
                limits = httpx2.Timeout(_CONNECT_SECONDS, read=settings.timeout_seconds + 30)
                http = httpx2.AsyncClient(headers=dict(settings.headers), timeout=limits, auth=auth(settings))
                http.event_hooks = {"response": [look]}
                transport = streamable_http_client(
                    settings.url,
                    http_client=await stack.enter_async_context(http),
                    max_sse_event_size=LONGEST_LINE,
                )
            info = types.Implementation(name="hark", version="1")
            async with asyncio.timeout(_CONNECT_SECONDS):
                connection, session = await stack.enter_async_context(_session(settings.name, transport, info, hear))
        except Exception as error:
            await asyncio.sleep(0.05 if errors else 0)  # its last words may be on their way
            last = f" It last wrote: {errors.line}" if errors and errors.line else ""
            raise ToolError(f"{why(error)}{last}") from error
        yield Talk(settings.name, session, connection.leave_out, why, gone)


@asynccontextmanager
async def _session(
    server: str, transport: Transport, info: types.Implementation, hear: MessageHandlerFnT
) -> AsyncIterator[tuple[_Connection, ClientSession]]:
    """Speak over a transport, in a version of the protocol that both know.

    The handshake of the older versions comes first: all servers answer it, also those that end, or never answer, when
    they are asked something else before; and only there a server tells by itself that what it shows has changed.
    """
    async with transport as streams:
        connection = _Connection(server, *streams)
        async with ClientSession(dispatcher=connection, client_info=info, message_handler=hear) as session:
            try:
                await session.initialize()
            except MCPError as error:
                if error.code not in (types.METHOD_NOT_FOUND, types.UNSUPPORTED_PROTOCOL_VERSION):
                    raise
                await session.discover()
            connection.version = session.protocol_version or ""
            yield connection, session
