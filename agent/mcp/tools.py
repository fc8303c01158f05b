"""What a server shows of its tools, and those tools as the model calls them."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from agent.message import ToolOutput
from agent.models.schemas import given, taken
from agent.tools.base import CallContext, Given, Sink, Tool
from agent.tools.registry import MCP

_LONGEST_NAME = 64  # what the strictest provider takes
_NOT_AT_THE_TOP = {"anyOf", "oneOf", "allOf", "not", "enum"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool as its server shows it; or what Hark adds for a server that has resources, or prompts."""

    name: str
    description: str
    # JSON text.
    schema: str
    # The rest, as JSON text: title, hints, the schema of results. Nothing depends on it, but it is looked at as well.
    more: str = ""
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

    async def call(self, shown: Shown, arguments: dict[str, Any], update: Callable[[str], None]) -> ToolOutput:
        """Call a tool of the server, if the server shows it as an owner has looked at it. Raises ToolError."""


class RemoteTool(Tool[Given]):
    """A tool of a server."""

    parameters = Given
    trusted_only = True
    group = MCP

    def __init__(self, server: Answering, shown: Shown, *, looks: bool, off: str) -> None:
        """shown: as an owner has looked at it. looks: the operator says that it only looks. off: why it may not be
        called, as far as is known."""
        self.name, self.description = name_of(server.name, shown.name), shown.description
        self.schema, self._names = _for_models(shown.schema)
        self.changes = not looks and shown.kind == "tool"
        self.off = off
        self._server, self._shown, self._looks = server, shown, looks

    async def sink(self, parameters: Given, context: CallContext) -> Sink:
        """See Tool: nobody knows what a call does, and the hints of the server are its own word."""
        lists = self._shown.kind != "tool" and not parameters.model_dump()
        return "look" if self._looks or lists else "network"

    async def reaches_out(self, parameters: Given, context: CallContext) -> bool:
        """See Tool: what a server does is its own affair, so a freeze of the network holds all calls."""
        return True

    async def run(self, parameters: Given, context: CallContext) -> ToolOutput:
        """See Tool."""
        arguments = parameters.model_dump(mode="json")
        return await self._server.call(
            self._shown, given(arguments, self._names) if self._names else arguments, context.update
        )


def _for_models(schema: str) -> tuple[str, Mapping[str, str]]:
    """Return a schema without what providers refuse; the server knows it, and checks the arguments.

    Also returns the server's names of the properties that got others, by the others.
    """
    found = json.loads(schema)
    made, names = taken({key: value for key, value in found.items() if key not in _NOT_AT_THE_TOP} | {"type": "object"})
    return (schema if made == found else json.dumps(made, ensure_ascii=False)), names


def name_of(server: str, tool: str) -> str:
    """Return the name by which the model calls a tool of a server."""
    name = f"{server}_{_NOT_IN_NAMES.sub('_', tool)}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
