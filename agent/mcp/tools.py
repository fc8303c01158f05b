"""What a server shows of its tools, and those tools as the model calls them."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from agent.message import ToolOutput
from agent.tools.base import CallContext, Given, Refused, Sink, Tool
from agent.tools.registry import MCP

_LONGEST_NAME = 64  # what the strictest provider takes
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool as its server shows it; or what Hark adds for a server that has resources, or prompts."""

    name: str
    description: str
    # JSON text.
    schema: str
    # Whether the server says that a call only looks, and at nothing outside of the server.
    looks: bool = False
    kind: Literal["tool", "resource", "prompt"] = "tool"

    def text(self) -> str:
        """Return it as canonical JSON text, by which it is kept and compared."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @property
    def digest(self) -> str:
        """A short name for exactly this."""
        return hashlib.sha256(self.text().encode()).hexdigest()[:12]


def read(text: str) -> Shown:
    """Return what `Shown.text` wrote."""
    return Shown(**json.loads(text))


def schema_of(properties: Mapping[str, Mapping[str, object]]) -> str:
    """Return the JSON schema of an object with these properties, none of which is required."""
    return json.dumps({"type": "object", "properties": properties}, separators=(",", ":"))


RESOURCE = Shown(
    "resource",
    "Read a resource of this server; without uri, list them.",
    schema_of({"uri": {"type": "string"}}),
    kind="resource",
)
PROMPT = Shown(
    "prompt",
    "Get a prompt that this server has prepared; without name, list them with their arguments.",
    schema_of({"name": {"type": "string"}, "arguments": {"type": "object"}}),
    kind="prompt",
)


class Answering(Protocol):
    """A server as its tools need it."""

    name: str
    # The addresses of resources that it has listed.
    listed: set[str]

    async def call(self, shown: Shown, arguments: dict[str, Any], update: Callable[[str], None]) -> ToolOutput:
        """Call a tool of the server. Raises ToolError."""


class RemoteTool(Tool[Given]):
    """A tool of a server."""

    parameters = Given
    trusted_only = True
    group = MCP

    def __init__(self, server: Answering, shown: Shown, why_off: Callable[[Shown], Awaitable[str]], off: str) -> None:
        """shown: as an owner has looked at it. why_off: returns why it may not be called, once the server is there.

        off: why it may not be called as far as is known.
        """
        self.name, self.description, self.schema = name_of(server.name, shown.name), shown.description, shown.schema
        self.changes = not shown.looks and shown.kind == "tool"
        self.off = off
        self._server, self._shown, self._why_off = server, shown, why_off

    async def sink(self, parameters: Given, context: CallContext) -> Sink:
        """See Tool: nobody knows what a call does, unless the server says that it only looks."""
        given, kind = parameters.model_dump(), self._shown.kind
        if kind == "resource" and ("uri" not in given or given["uri"] in self._server.listed):
            return "look"
        if self._shown.looks or (kind == "prompt" and not given.get("arguments")):
            return "look"
        return "network"

    async def reaches_out(self, parameters: Given, context: CallContext) -> bool:
        """See Tool: what a server does is its own affair, so a freeze of the network holds all calls."""
        return True

    async def run(self, parameters: Given, context: CallContext) -> ToolOutput:
        """See Tool."""
        if why := await self._why_off(self._shown):
            raise Refused(f"It was not called: {why}.")
        return await self._server.call(self._shown, parameters.model_dump(mode="json"), context.update)


def name_of(server: str, tool: str) -> str:
    """Return the name by which the model calls a tool of a server."""
    name = f"{server}_{_NOT_IN_NAMES.sub('_', tool)}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
