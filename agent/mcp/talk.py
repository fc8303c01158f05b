"""A connection to a server, by the package `mcp`: what the server shows, calls, and results as the model reads them."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx2
import structlog
from jsonschema import SchemaError  # type: ignore[import-untyped]
from jsonschema.validators import validator_for  # type: ignore[import-untyped]
from mcp import ClientSession, MCPError, types
from mcp.client import Transport
from mcp.client.session import MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from pydantic import ValidationError

from agent.errors import ToolError
from agent.fences import unfenced
from agent.images import MAX_IMAGE_BYTES, image_type
from agent.mcp.login import auth
from agent.mcp.pipes import Errors, over_pipes
from agent.mcp.settings import Settings
from agent.mcp.tools import PROMPT, RESOURCE, Shown
from agent.message import Image, Provenance, ToolOutput

log = structlog.get_logger()

_MOST_TOOLS = 500
_LONGEST_SCHEMA = 64 * 1024
_LONGEST_DESCRIPTION = 4000
_MOST_LISTED = 200
_LONGEST_RESULT = 1_000_000
_MOST_IMAGES = 5
_CONNECT_SECONDS = 30.0


class Talk:
    """A connection that stands."""

    def __init__(self, server: str, session: ClientSession, why: Callable[[BaseException], str]) -> None:
        """why: returns why something failed."""
        self._session, self.why = session, why
        self._server, self._origins = server, (Provenance("mcp", server),)
        self._left_out = set[str]()

    def is_lost(self, error: Exception) -> bool:
        """Whether what failed is that the connection ended."""
        return isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED

    async def listing(self) -> Sequence[Shown]:
        """Return all that the server shows, in its order."""
        found, cursor = list[Shown](), None
        has = self._session.server_capabilities or types.ServerCapabilities()
        while has.tools is not None:
            page = await self._session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            found += [shown for one in page.tools if self._is_sound(shown := _shown(one))]
            cursor = page.next_cursor
            if cursor is None or len(found) >= _MOST_TOOLS:
                break
        found = found[:_MOST_TOOLS]
        names = {one.name for one in found}
        if has.resources is not None and RESOURCE.name not in names:
            found.append(RESOURCE)
        if has.prompts is not None and PROMPT.name not in names:
            found.append(PROMPT)
        return found

    def _is_sound(self, shown: Shown) -> bool:
        """Whether providers can take the schema of a tool: a request with one that they refuse fails as a whole."""
        why = _wrong_with(shown.schema)
        if why and shown.name not in self._left_out:
            self._left_out.add(shown.name)
            log.warning("a tool is left out for its schema", server=self._server, tool=shown.name, reason=why)
        return not why

    async def call(self, shown: Shown, arguments: dict[str, Any], update: Callable[[str], None]) -> ToolOutput:
        """Call a tool."""
        if shown.kind == "resource":
            return await self._resource(arguments)
        if shown.kind == "prompt":
            return await self._prompt(arguments)

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            update(f"{message or 'working'} ({progress:g}{f' of {total:g}' if total else ''})\n")

        result = await self._session.call_tool(shown.name, arguments, progress_callback=progress)
        structured = result.structured_content
        if not result.content and structured is not None:
            return self._output((json.dumps(structured, ensure_ascii=False),), is_error=bool(result.is_error))
        return self._output(result.content, is_error=bool(result.is_error))

    async def _resource(self, arguments: dict[str, Any]) -> ToolOutput:
        if uri := arguments.get("uri"):
            read = await self._session.read_resource(str(uri))
            return self._output([_content(one) for one in read.contents])
        lines = list[str]()
        cursor: str | None = None
        while len(lines) < _MOST_LISTED:
            page = await self._session.list_resources(params=types.PaginatedRequestParams(cursor=cursor))
            lines += [f"{one.uri} {one.title or one.name}: {one.description or ''}" for one in page.resources]
            if (cursor := page.next_cursor) is None:
                break
        try:
            templates = (await self._session.list_resource_templates()).resource_templates
        except MCPError:  # a server need not have them
            templates = []
        lines += [f"{one.uri_template} {one.title or one.name}: {one.description or ''}" for one in templates]
        return self._output(("\n".join(lines) or "There are none.",))

    async def _prompt(self, arguments: dict[str, Any]) -> ToolOutput:
        if name := arguments.get("name"):
            given = {key: str(value) for key, value in (arguments.get("arguments") or {}).items()}
            got = await self._session.get_prompt(str(name), given)
            return self._output([part for one in got.messages for part in (f"[{one.role}]", one.content)])
        page = await self._session.list_prompts()
        lines = []
        for one in page.prompts[:_MOST_LISTED]:
            takes = ", ".join(f"{it.name}{' (required)' if it.required else ''}" for it in one.arguments or ())
            lines.append(f"{one.name}({takes}): {one.description or one.title or ''}")
        return self._output(("\n".join(lines) or "There are none.",))

    def _output(self, content: Iterable[Any], *, is_error: bool = False) -> ToolOutput:
        texts, images = list[str](), list[Image]()
        for one in content:
            image = _image(one) if isinstance(one, types.ImageContent) and len(images) < _MOST_IMAGES else None
            if image is not None:
                images.append(image)
            else:
                texts.append(one if isinstance(one, str) else _told(one))
        whole = "\n".join(texts)
        if len(whole) > _LONGEST_RESULT:
            whole = f"{whole[:_LONGEST_RESULT]}\n[the rest of {len(whole)} characters is left out]"
        text = unfenced(whole) or ("" if images else "[no output]")
        return ToolOutput(text=text, is_error=is_error, images=tuple(images), origins=self._origins)


@lru_cache(maxsize=2000)
def _wrong_with(schema: str) -> str:
    """Return what is wrong with a schema; empty: nothing."""
    if len(schema) > _LONGEST_SCHEMA:
        return "it is too long"
    found = json.loads(schema)
    try:
        validator_for(found).check_schema(found)
    except SchemaError as error:
        return str(error.message)
    return ""


def _shown(tool: types.Tool) -> Shown:
    schema = json.dumps(tool.input_schema, ensure_ascii=False, separators=(",", ":"))
    more = tool.model_dump_json(by_alias=True, exclude_unset=True, include={"title", "annotations", "output_schema"})
    return Shown(tool.name, (tool.description or tool.title or "")[:_LONGEST_DESCRIPTION], schema, more)


def _content(one: types.TextResourceContents | types.BlobResourceContents) -> types.EmbeddedResource | Any:
    mime = one.mime_type or ""
    if isinstance(one, types.BlobResourceContents) and mime.startswith("image/"):
        return types.ImageContent(data=one.blob, mime_type=mime)
    return types.EmbeddedResource(resource=one)


def _image(one: types.ImageContent) -> Image | None:
    """Return an image that models take; None: it is none."""
    try:
        content = base64.b64decode(one.data, validate=True)
    except ValueError:
        return None
    mime = image_type(content)
    return Image(mime, one.data) if mime and len(content) <= MAX_IMAGE_BYTES else None


def _told(one: types.ContentBlock) -> str:
    match one:
        case types.TextContent():
            return one.text
        case types.ResourceLink():
            return f"[resource {one.uri}: {one.title or one.name}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text
        case types.EmbeddedResource():
            return f"[{one.resource.mime_type or 'data'} of {one.resource.uri} is not shown]"
    return f"[{one.mime_type} is not shown]"


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
                transport = streamable_http_client(settings.url, http_client=await stack.enter_async_context(http))
            info = types.Implementation(name="hark", version="1")
            async with asyncio.timeout(_CONNECT_SECONDS):
                session = await stack.enter_async_context(_session(transport, info, hear))
        except Exception as error:
            await asyncio.sleep(0.05 if errors else 0)  # its last words may be on their way
            last = f" It last wrote: {errors.line}" if errors and errors.line else ""
            raise ToolError(f"{why(error)}{last}") from error
        yield Talk(settings.name, session, why)


@asynccontextmanager
async def _session(
    transport: Transport, info: types.Implementation, hear: MessageHandlerFnT
) -> AsyncIterator[ClientSession]:
    """Speak over a transport, in a version of the protocol that both know.

    The handshake of the older versions comes first: all servers answer it, also those that end, or never answer, when
    they are asked something else before; and only there a server tells by itself that what it shows has changed.
    """
    async with transport as streams, ClientSession(*streams, client_info=info, message_handler=hear) as session:
        try:
            await session.initialize()
        except MCPError as error:
            if error.code not in (types.METHOD_NOT_FOUND, types.UNSUPPORTED_PROTOCOL_VERSION):
                raise
            await session.discover()
        yield session


def reason(error: BaseException) -> str:
    """Return why something failed, in one sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it has not answered in time."
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"what it sent is against the protocol: {'.'.join(map(str, first['loc']))}: {first['msg']}."
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else f"{text}."
