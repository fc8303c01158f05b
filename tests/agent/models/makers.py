"""Short ways to write transcripts and requests, and to read a body in slices."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from agent.message import Image, Message, Part, Text, ToolCall, ToolResult, ToolSpec
from agent.models.base import ModelApi, ModelRequest, ModelSpec, StreamPart
from agent.models.sdk import AnswerReader, Decoder

PNG = Image("image/png", "iVBORw0KGgo=")
SCHEMA = '{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}'
READ = ToolSpec("read", "Read a file.", SCHEMA)
WRITE = ToolSpec("write", "Write a file.", SCHEMA)


def spec(api: ModelApi, model: str = "some-model", **options: Any) -> ModelSpec:
    """A model named `house/<model>`."""
    return ModelSpec(provider="house", api=api, model=model, **options)


def user(*parts: str | Part) -> Message:
    """What a person wrote; strings become text."""
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: str | Part, model: str = "house/some-model") -> Message:
    """What the model wrote."""
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts), model)


def call(call_id: str, name: str = "read", arguments: str = '{"path": "a"}') -> ToolCall:
    """A call."""
    return ToolCall(call_id, name, arguments)


def results(*texts: tuple[str, str]) -> Message:
    """A message of results: (call id, text)."""
    return Message("tool", tuple(ToolResult(call_id, "read", text) for call_id, text in texts))


def request(*messages: Message, **options: Any) -> ModelRequest:
    """A request with a system prompt and two tools, if nothing else is said."""
    return ModelRequest(
        **{
            "system": "Be brief.",
            "messages": messages,
            "tools": (READ, WRITE),
            "max_output": 4096,
            **options,
        }
    )


def raw(body: object) -> bytes:
    """A body as it is sent."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def unmarked(value: Any) -> Any:
    """A body without cache marks."""
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


def read(reader: AnswerReader, body: bytes, size: int = 4096) -> list[StreamPart]:
    """Feed a body in slices of so many bytes; returns the parts without the answer."""
    decoder = Decoder()
    parts: list[StreamPart] = []
    for at in range(0, len(body), size):
        for name, data in decoder.feed(body[at : at + size]):
            parts += reader.feed(name, data)
    for name, data in decoder.end():
        parts += reader.feed(name, data)
    return parts


def events(*items: tuple[str, dict[str, Any]]) -> bytes:
    """Named events as Anthropic sends them."""
    lines = (
        f"event: {name}\ndata: {json.dumps({'type': name, **data}, ensure_ascii=False)}\n\n" for name, data in items
    )
    return "".join(lines).encode()


def chunks(*items: dict[str, Any] | str) -> bytes:
    """Unnamed events as OpenAI sends them; a string goes out as it is."""
    lines = (item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def prefixes(bodies: Sequence[dict[str, object]]) -> None:
    """Assert that each body begins with the bytes of the one before, its messages left open, cache marks aside."""
    for before, after in pairwise(bodies):
        start = raw(unmarked(before)).removesuffix(b"]}")
        assert raw(unmarked(after)).startswith(start)
