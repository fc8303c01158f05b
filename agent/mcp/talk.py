"""A connection to a server, by the package `mcp`: what the server shows, calls, and results as the model reads them."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, MCPError, types
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

from agent.errors import ToolError
from agent.fences import unfenced
from agent.images import MAX_IMAGE_BYTES, image_type
from agent.mcp.login import auth
from agent.mcp.pipes import Errors, over_pipes
from agent.mcp.settings import Settings
from agent.mcp.tools import PROMPT, RESOURCE, Shown
from agent.message import Image, Provenance, ToolOutput

_MOST_TOOLS = 500
_LONGEST_SCHEMA = 64 * 1024
_MOST_LISTED = 200
_MOST_IMAGES = 5
_CONNECT_SECONDS = 30.0


class Talk:
    """A connection that stands."""

    def __init__(self, server: str, client: Client, why: Callable[[BaseException], str]) -> None:
        """why: returns why something failed."""
        self._client, self.why = client, why
        self._origins = (Provenance("mcp", server),)

    async def listing(self) -> Sequence[Shown]:
        """Return all that the server shows, in its order."""
        found, cursor = list[Shown](), None
        has = self._client.server_capabilities
        while has.tools is not None:
            page = await self._client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            found += [shown for one in page.tools if len((shown := _shown(one)).schema) <= _LONGEST_SCHEMA]
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

    async def call(
        self, shown: Shown, arguments: dict[str, Any], update: Callable[[str], None], listed: set[str]
    ) -> ToolOutput:
        """Call a tool. listed: takes the addresses of resources that the server lists."""
        if shown.kind == "resource":
            return await self._resource(arguments, listed)
        if shown.kind == "prompt":
            return await self._prompt(arguments)

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            update(f"{message or 'working'} ({progress:g}{f' of {total:g}' if total else ''})\n")

        result = await self._client.call_tool(shown.name, arguments, progress_callback=progress)
        structured = result.structured_content
        if not result.content and structured is not None:
            return self._output((json.dumps(structured, ensure_ascii=False),), is_error=bool(result.is_error))
        return self._output(result.content, is_error=bool(result.is_error))

    async def _resource(self, arguments: dict[str, Any], listed: set[str]) -> ToolOutput:
        if uri := arguments.get("uri"):
            read = await self._client.read_resource(str(uri))
            return self._output([_content(one) for one in read.contents])
        lines = list[str]()
        cursor: str | None = None
        while len(lines) < _MOST_LISTED:
            page = await self._client.list_resources(cursor=cursor)
            listed.update(one.uri for one in page.resources)
            lines += [f"{one.uri} {one.title or one.name}: {one.description or ''}" for one in page.resources]
            if (cursor := page.next_cursor) is None:
                break
        try:
            templates = (await self._client.list_resource_templates()).resource_templates
        except MCPError:  # a server need not have them
            templates = []
        lines += [f"{one.uri_template} {one.title or one.name}: {one.description or ''}" for one in templates]
        return self._output(("\n".join(lines) or "There are none.",))

    async def _prompt(self, arguments: dict[str, Any]) -> ToolOutput:
        if name := arguments.get("name"):
            given = {key: str(value) for key, value in (arguments.get("arguments") or {}).items()}
            got = await self._client.get_prompt(str(name), given)
            return self._output([part for one in got.messages for part in (f"[{one.role}]", one.content)])
        page = await self._client.list_prompts()
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
        text = unfenced("\n".join(texts)) or ("" if images else "[no output]")
        return ToolOutput(text=text, is_error=is_error, images=tuple(images), origins=self._origins)


def _shown(tool: types.Tool) -> Shown:
    hints = tool.annotations
    looks = hints is not None and hints.read_only_hint is True and hints.open_world_hint is False
    schema = json.dumps(tool.input_schema, ensure_ascii=False, separators=(",", ":"))
    return Shown(tool.name, tool.description or tool.title or "", schema, looks)


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
                client = Client(transport, client_info=info, message_handler=hear, cache=None)
                await stack.enter_async_context(client)
        except Exception as error:
            await asyncio.sleep(0.05 if errors else 0)  # its last words may be on their way
            last = f" It last wrote: {errors.line}" if errors and errors.line else ""
            raise ToolError(f"{why(error)}{last}") from error
        yield Talk(settings.name, client, why)


def reason(error: BaseException) -> str:
    """Return why something failed, in one sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it has not answered in time."
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else f"{text}."
