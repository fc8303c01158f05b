"""A connection to a server, by the package `mcp`: what the server shows, calls, and results as the model reads them."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import structlog
from jsonschema import SchemaError  # type: ignore[import-untyped]
from jsonschema.validators import validator_for  # type: ignore[import-untyped]
from mcp import ClientSession, MCPError, types

from agent.fences import unfenced
from agent.mcp.tools import PROMPT, RESOURCE, Shown
from agent.message import Image, Provenance, ToolOutput
from agent.pictures import MAX_IMAGE_BYTES, image_type

log = structlog.get_logger()
P = TypeVar("P", bound=types.PaginatedResult)

_MOST_PAGES = 500
_MOST_TOOLS = 500
_LONGEST_SCHEMA = 64 * 1024
_LONGEST_DESCRIPTION = 4000
_MOST_LISTED = 200
_LONGEST_RESULT = 1_000_000
_MOST_IMAGES = 5


class Talk:
    """A connection that stands."""

    def __init__(
        self,
        server: str,
        session: ClientSession,
        leave_out: Callable[[str, str], None],
        why: Callable[[BaseException], str],
        gone: asyncio.Event,
    ) -> None:
        """leave_out: says that something is not used, and why. why: returns why something failed. gone: set when the
        server has ended, or to end the connection."""
        self._session, self._leave_out, self.why, self.gone = session, leave_out, why, gone
        self._origins = (Provenance("mcp", server),)

    def is_lost(self, error: Exception) -> bool:
        """Whether what failed is that the connection ended."""
        return isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED

    async def listing(self) -> Sequence[Shown]:
        """Return all that the server shows, in its order."""
        found = list[Shown]()
        has = self._session.server_capabilities or types.ServerCapabilities()
        if has.tools is not None:
            async for page in _pages(self._session.list_tools):
                found += [shown for one in page.tools if self._is_sound(shown := _shown(one))]
                if len(found) >= _MOST_TOOLS:
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
        if why:
            self._leave_out(shown.name, why)
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
        content = result.content if result.content or structured is None else (structured,)
        return await self._output(content, is_error=bool(result.is_error))

    async def _resource(self, arguments: dict[str, Any]) -> ToolOutput:
        if uri := arguments.get("uri"):
            read = await self._session.read_resource(str(uri))
            return await self._output([_content(one) for one in read.contents])
        lines = list[str]()
        async for page in _pages(self._session.list_resources):
            lines += [f"{one.uri} {one.title or one.name}: {one.description or ''}" for one in page.resources]
            if len(lines) >= _MOST_LISTED:
                break
        try:
            templates = (await self._session.list_resource_templates()).resource_templates
        except MCPError:  # a server need not have them
            templates = []
        lines += [f"{one.uri_template} {one.title or one.name}: {one.description or ''}" for one in templates]
        return await self._output(("\n".join(lines) or "There are none.",))

    async def _prompt(self, arguments: dict[str, Any]) -> ToolOutput:
        if name := arguments.get("name"):
            given = {key: str(value) for key, value in (arguments.get("arguments") or {}).items()}
            got = await self._session.get_prompt(str(name), given)
            return await self._output([part for one in got.messages for part in (f"[{one.role}]", one.content)])
        lines = list[str]()
        async for page in _pages(self._session.list_prompts):
            for one in page.prompts:
                takes = ", ".join(f"{it.name}{' (required)' if it.required else ''}" for it in one.arguments or ())
                lines.append(f"{one.name}({takes}): {one.description or one.title or ''}")
            if len(lines) >= _MOST_LISTED:
                break
        return await self._output(("\n".join(lines) or "There are none.",))

    async def _output(self, content: Iterable[Any], *, is_error: bool = False) -> ToolOutput:
        return await asyncio.to_thread(self._made, content, is_error)

    def _made(self, content: Iterable[Any], is_error: bool) -> ToolOutput:
        texts, images = list[str](), list[Image]()
        for one in content:
            image = _image(one) if isinstance(one, types.ImageContent) and len(images) < _MOST_IMAGES else None
            if image is not None:
                images.append(image)
            else:
                texts.append(_told(one))
        whole = "\n".join(texts)
        if len(whole) > _LONGEST_RESULT:
            whole = f"{whole[:_LONGEST_RESULT]}\n[the rest of {len(whole)} characters is left out]"
        text = unfenced(whole) or ("" if images else "[no output]")
        return ToolOutput(text=text, is_error=is_error, images=tuple(images), origins=self._origins)


async def _pages(ask: Callable[..., Awaitable[P]]) -> AsyncIterator[P]:
    """Yield what a server lists, page by page; one that always has another is not believed for ever."""
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await ask(params=types.PaginatedRequestParams(cursor=cursor))
        yield page
        cursor = page.next_cursor
        if not cursor:  # some servers say the end with an empty one
            return


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
    except RecursionError:
        return "it is nested too deeply"
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


def _told(one: types.ContentBlock | dict[str, Any] | str) -> str:
    match one:
        case str():
            return one
        case dict():
            return json.dumps(one, ensure_ascii=False)
        case types.TextContent():
            return one.text
        case types.ResourceLink():
            return f"[resource {one.uri}: {one.title or one.name}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text
        case types.EmbeddedResource():
            return f"[{one.resource.mime_type or 'data'} of {one.resource.uri} is not shown]"
    return f"[{one.mime_type} is not shown]"
