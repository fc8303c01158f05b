"""What the protocols of all providers have in common: reading values of their JSON, and writing ids, names and tools.

A value that has another type than it should counts as missing.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from agent.errors import ErrorKind, ModelError
from agent.message import Image, Mark, Message, Part, Text, ToolResult, ToolSpec
from agent.models.base import StopReason, ThinkingLevel
from agent.models.schemas import plain

_LARGEST = 1 << 53
# Words of both protocols, because servers mix them.
_STOPS: dict[StopReason, tuple[str, ...]] = {
    "end": ("end_turn", "stop_sequence", "stop"),
    "tool_use": ("tool_use", "tool_calls", "function_call"),
    "max_output": ("max_tokens", "model_context_window_exceeded", "length", "model_length"),
    "refusal": ("refusal", "content_filter"),
}


def parsed(data: str) -> dict[str, Any]:
    """Return the JSON object of an event; empty for any other JSON.

    Raises ModelError for text that is no JSON, which a broken connection leaves behind.
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise ModelError(ErrorKind.NETWORK, f"not JSON in the stream: {data[:80]!r}") from None
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str:
    """Return the value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def record(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return the value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def number(value: Any) -> int:
    """Return the value if it is a count of tokens or an index, else 0."""
    return value if isinstance(value, int) and 0 <= value < _LARGEST else 0


def stop_reason(given: str) -> StopReason:
    """Return why an answer ended, from the provider's word for it."""
    return next((reason for reason, words in _STOPS.items() if given in words), "other")


Block = dict[str, Any]  # a part of a request, as JSON values

EFFORTS: dict[ThinkingLevel, str] = {"low": "low", "medium": "medium", "high": "high", "x-high": "xhigh"}
EMPTY_MESSAGE = "(empty message)"

_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


@lru_cache(maxsize=64)
def described(tools: tuple[ToolSpec, ...], parameters: str, is_plain: bool = False) -> tuple[Block, ...]:
    """Return the tools as providers take them; the result is cached and must not be changed.

    parameters: the provider's key for the schema of a tool's parameters. is_plain: whether it takes few keywords.
    """
    texts = [plain(tool.schema_json) if is_plain else tool.schema_json for tool in tools]
    return tuple(
        {"name": tool.name, "description": tool.description, parameters: json.loads(text)}
        for tool, text in zip(tools, texts, strict=True)
    )


@lru_cache(maxsize=1024)
def object_text(written: str) -> str:
    """Return the arguments of a call as the JSON object that strict servers want; malformed ones as a text in one."""
    try:
        value = json.loads(written or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return written or "{}"
    return json.dumps({"malformed_arguments": written}, ensure_ascii=False)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def call_id(given: str, is_short: bool = False) -> str:
    """Return an id of a call that every provider accepts, whichever provider made it. is_short: see `Takes`."""
    if is_short:
        return given if _SHORT_ID.fullmatch(given) else hashlib.sha256(given.encode(errors="replace")).hexdigest()[:9]
    return given if _ID.fullmatch(given) else "call_" + hashlib.sha256(given.encode(errors="replace")).hexdigest()[:24]


def call_name(name: str) -> str:
    """Return the name of a call that every provider accepts, whatever the model wrote."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def result_text(part: ToolResult) -> str:
    """Return the words of a result for an API that has no field for a failure."""
    words = part.text if part.text.strip() else "(no output)"
    return f"Error: {words}" if part.is_error and not words.lower().startswith("error") else words


def with_recalled(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages with what is recalled at the end of the last line: of what a person wrote, or of a result.

    Some servers refuse a message of a person behind another one, and behind results.
    """
    if len(messages) < 2 or messages[-1].mark is not Mark.RECALLED or messages[-2].role == "assistant":
        return messages
    *lines, line, recalled = messages
    *before, last = line.parts
    if isinstance(last, ToolResult):
        return (*lines, replace(line, parts=(*before, replace(last, text=f"{result_text(last)}\n\n{recalled.text}"))))
    return (*lines, replace(line, parts=(*line.parts, *recalled.parts)))


def images_of(messages: Iterable[Message]) -> Sequence[Image]:
    """Return all images of messages, those of results too, in order."""
    return [
        image
        for message in messages
        for part in message.parts
        for image in ((part,) if isinstance(part, Image) else part.images if isinstance(part, ToolResult) else ())
    ]


def with_images(messages: Iterable[Message], instead: Iterable[str | Image | None]) -> tuple[Message, ...]:
    """Return messages with something in place of each of their images: a text, another image, or None: as it is."""
    left = iter(instead)

    def changed(part: Part) -> Part:
        if isinstance(part, Image):
            found = next(left)
            return part if found is None else Text(found) if isinstance(found, str) else found
        if not (isinstance(part, ToolResult) and part.images):
            return part
        pairs = [(image, next(left)) for image in part.images]
        words = [one for _, one in pairs if isinstance(one, str)]
        kept = tuple([one or image for image, one in pairs if not isinstance(one, str)])
        if kept == part.images:
            return part
        return replace(part, text="\n".join(filter(None, (part.text, *words))), images=kept)

    return tuple([replace(one, parts=tuple(map(changed, one.parts))) for one in messages])


def without_images(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts with a line of text in place of each image."""
    for part in parts:
        if isinstance(part, Image):
            yield Text(_unseen(1))
        elif isinstance(part, ToolResult) and part.images:
            yield replace(part, text="\n".join(filter(None, (part.text, _unseen(len(part.images))))), images=())
        else:
            yield part


def alternating(messages: Iterable[Block]) -> Iterator[Block]:
    """Yield messages of chat completions in turns: no two of a role follow each other, and no person's a result."""
    last: Block = {}
    for message in messages:
        if message["role"] == "user" and last.get("role") == "user":
            parts = [
                {"type": "text", "text": one} if isinstance(one, str) else one
                for content in (last["content"], message["content"])
                for one in (content if isinstance(content, list) else (content,))
            ]
            texts = [part["text"] for part in parts if part["type"] == "text"]
            last = {"role": "user", "content": "\n\n".join(texts) if len(texts) == len(parts) else parts}
            continue
        if message["role"] == last.get("role") == "assistant" and "tool_calls" not in last:
            last = message | {"content": f"{last['content']}\n\n{message.get('content') or ''}".strip()}
            continue
        if last:
            yield last
        if message["role"] == "user" and last.get("role") == "tool":
            yield {"role": "assistant", "content": "OK."}
        last = message
    if last:
        yield last


def _unseen(count: int) -> str:
    return "[an image that this model cannot see]" if count == 1 else f"[{count} images that this model cannot see]"
