"""What both clients need to render a request: cached schemas, ids and names as providers take them, unseen images."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from json import loads
from typing import Any

from agent.message import Image, Part, Text, ToolResult, ToolSpec
from agent.models.spec import ThinkingLevel

Block = dict[str, Any]  # a piece of a request, as JSON values

EFFORTS: dict[ThinkingLevel, str] = {"low": "low", "medium": "medium", "high": "high", "x-high": "xhigh"}
EMPTY_MESSAGE = "(empty message)"

_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


@lru_cache(maxsize=64)
def described(tools: tuple[ToolSpec, ...], parameters: str) -> tuple[Block, ...]:
    """Tools as providers take them; shared, so nobody may change them. parameters: how they call those of a tool."""
    return tuple(
        {"name": tool.name, "description": tool.description, parameters: loads(tool.schema_json)} for tool in tools
    )


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
