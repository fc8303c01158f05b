"""What both clients need to render a request: cached schemas, ids and names as providers take them, unseen images."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from json import loads
from typing import Any

from agent.message import Image, Part, Text, ToolResult
from agent.models.base import ToolSpec
from agent.models.spec import ThinkingLevel

Block = dict[str, Any]  # a piece of a request, as JSON values

EFFORTS: dict[ThinkingLevel, str] = {"low": "low", "medium": "medium", "high": "high", "x-high": "xhigh"}
EMPTY_MESSAGE = "(empty message)"

_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


@lru_cache(maxsize=512)
def _schema(schema_json: str) -> Any:
    """The parsed schema; shared, so nobody may change it."""
    return loads(schema_json)


def described(tool: ToolSpec, parameters: str) -> Block:
    """A tool as providers take it. parameters: how they name the schema of those."""
    return {"name": tool.name, "description": tool.description, parameters: _schema(tool.schema_json)}


def call_id(given: str) -> str:
    """The id of a call as every provider takes it, also when another one made it."""
    return given if _ID.fullmatch(given) else "call_" + hashlib.sha256(given.encode(errors="replace")).hexdigest()[:24]


def call_name(name: str) -> str:
    """The name of a call as every provider takes it, whatever the model wrote."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def without_images(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts with a line of text in place of each image."""
    for part in parts:
        if isinstance(part, Image):
            yield Text(_unseen(1))
        elif isinstance(part, ToolResult) and part.images:
            yield replace(part, text="\n".join(filter(None, (part.text, _unseen(len(part.images))))), images=())
        else:
            yield part


def _unseen(count: int) -> str:
    return "[an image that this model cannot see]" if count == 1 else f"[{count} images that this model cannot see]"
