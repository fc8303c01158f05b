"""The client of OpenAI's Responses API: https://platform.openai.com/docs/api-reference/responses

Nothing is kept by the provider (`store: false`), so each request has the whole conversation as items. Reasoning comes
back encrypted and is sent back to the model that wrote it, in its place before what it led to.
"""

import json
import re
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Any

from agent.message import Image, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from agent.models import compat, failures
from agent.models.base import (
    Alive,
    Answer,
    ArgumentsDelta,
    ModelRequest,
    ModelSpec,
    StreamPart,
    TextDelta,
    ThinkingDelta,
)
from agent.models.protocol import (
    EMPTY_MESSAGE,
    Block,
    call_id,
    call_name,
    described,
    items,
    number,
    object_text,
    parsed,
    record,
    result_text,
    stop_reason,
    text,
    with_recalled,
    without_images,
)
from agent.models.sdk import OpenAiClient

# Models that never reason; OpenAI refuses a request for their reasoning.
_WITHOUT_REASONING = re.compile(r"(^|/)(gpt-[34]|chatgpt)|-chat\b")


class Client(OpenAiClient):
    """A client of one model behind the Responses API."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        return self._post("/responses", body_of(request, self._spec), EventReader(self.name))


def body_of(request: ModelRequest, spec: ModelSpec) -> dict[str, object]:
    """Return the request as JSON values. Items come last, so the next request begins with the bytes of this one."""
    body: dict[str, object] = {
        "model": spec.model,
        "max_output_tokens": request.max_output,
        "stream": True,
        "store": False,
    }
    if not _WITHOUT_REASONING.search(spec.model):
        body["include"] = ["reasoning.encrypted_content"]
    if effort := compat.effort(spec, request.thinking):
        body["reasoning"] = {"effort": effort}
    body |= dict(spec.params)
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        known = compat.takes(spec.api, spec.base_url, spec.model)
        tools = described(request.tools[: known.tools or None], "parameters")
        body["tools"] = [{"type": "function", "strict": False, **tool} for tool in tools]
    body["input"] = [item for message in with_recalled(request.messages) for item in _items(message, spec)]
    if request.tools and not request.allow_calls:
        body["tool_choice"] = "none"
    return body


def _items(message: Message, spec: ModelSpec) -> Iterator[Block]:
    """Yield the items of a message. Reasoning without anything after it is left out, because the API refuses it."""
    parts = message.parts if spec.vision else tuple(without_images(message.parts))
    match message.role:
        case "user":
            content = [block for part in parts if (block := _content(part)) is not None]
            yield {"role": "user", "content": content or [{"type": "input_text", "text": EMPTY_MESSAGE}]}
        case "assistant":
            found = [item for part in parts if (item := _said(part, message.model == spec.name)) is not None]
            while found and found[-1].get("type") == "reasoning":
                found.pop()
            yield from found
        case "tool":
            yield from (_result(part) for part in parts if isinstance(part, ToolResult))


def _content(part: Part) -> Block | None:
    match part:
        case Text(text=words) if words.strip():
            return {"type": "input_text", "text": words}
        case Image(mime=mime, data=data):
            return {"type": "input_image", "detail": "auto", "image_url": f"data:{mime};base64,{data}"}
    return None


def _said(part: Part, own: bool) -> Block | None:
    """Return the item for a part of an answer. own: whether this model wrote it."""
    match part:
        case Text(text=words) if words.strip():
            return {"role": "assistant", "content": words}
        case Thinking(text=summary, signature=item, redacted=encrypted) if own and encrypted:
            summaries = [{"type": "summary_text", "text": summary}] if summary else []
            return {"type": "reasoning", "id": item, "summary": summaries, "encrypted_content": encrypted}
        case ToolCall():
            name = call_name(part.name)
            return {
                "type": "function_call",
                "call_id": call_id(part.call_id),
                "name": name,
                "arguments": object_text(part.arguments),
            }
    return None


def _result(part: ToolResult) -> Block:
    words = result_text(part)
    images = [block for image in part.images if (block := _content(image)) is not None]
    output = [{"type": "input_text", "text": words}, *images] if part.images else words
    return {"type": "function_call_output", "call_id": call_id(part.call_id), "output": output}


class EventReader:
    """Reads the events of one answer."""

    def __init__(self, name: str) -> None:
        self.ended = False
        self._name = name
        # In the order of their first pieces, and the newest for each place in the output.
        self._items: list[_OpenItem] = []
        self._at: dict[int, _OpenItem] = {}
        self._stop = ""
        self._refused = False
        self._usage = Usage()

    def feed(self, name: str, data: str) -> Iterable[StreamPart]:
        """Read one event; unknown kinds and fields are ignored."""
        if self.ended:
            return ()
        event = parsed(data)
        kind = text(event.get("type")) or name
        if kind.startswith("response.output_item."):
            return (self._item(event).taken(record(event.get("item"))),)
        if kind.endswith(".delta"):
            self._refused = self._refused or kind == "response.refusal.delta"
            return (self._item(event).add(kind, text(event.get("delta"))),)
        if kind in ("response.completed", "response.incomplete"):
            self._finish(record(event.get("response")))
        elif kind == "response.failed":
            raise failures.of_payload({"error": record(event.get("response")).get("error") or {}}, ())
        elif kind == "error":
            raise failures.of_payload(event.get("error") or event, ())
        return (Alive(),)

    def answer(self) -> Answer | None:
        """Return the complete answer; None before the provider said that it is complete."""
        if not self.ended:
            return None
        parts = [part for item in self._items if (part := item.part()) is not None]
        stop = stop_reason("refusal" if self._refused else self._stop or "stop")
        if stop in ("end", "other") and any(isinstance(part, ToolCall) for part in parts):
            stop = "tool_use"
        return Answer(Message("assistant", tuple(parts), self._name), stop, self._usage)

    def cut(self) -> None:
        """End the answer here, as if it had reached the model's limit of output."""
        self.ended, self._stop = True, "length"

    def _item(self, event: dict[str, Any]) -> "_OpenItem":
        """Return the item of an event. Words that come for an earlier one, against the protocol, begin another."""
        at = number(event.get("output_index"))
        item = self._at.get(at)
        if item is None or (item is not self._items[-1] and item.is_told and "delta" in event):
            item = self._at[at] = _OpenItem(item)
            self._items.append(item)
        elif not item.has_pieces:
            self._items.remove(item)
            self._items.append(item)
        return item

    def _finish(self, response: dict[str, Any]) -> None:
        self.ended = True
        reason = text(record(response.get("incomplete_details")).get("reason"))
        self._stop = "length" if reason == "max_output_tokens" else reason
        usage = record(response.get("usage"))
        read = number(record(usage.get("input_tokens_details")).get("cached_tokens"))
        self._usage = Usage(number(usage.get("input_tokens")), number(usage.get("output_tokens")), read, 0)


# The kinds of items, by the events that bring pieces of them.
_KINDS = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}


class _OpenItem:
    """An item of the output while its pieces arrive."""

    def __init__(self, before: "_OpenItem | None" = None) -> None:
        """before: an item that this one goes on with."""
        self._kind: str = before._kind if before else ""
        # The call of a function, once it is known.
        self._id = self._name = ""
        self._encrypted = ""
        self._pieces: list[str] = []

    @property
    def has_pieces(self) -> bool:
        """Whether anything of it has come."""
        return bool(self._pieces)

    @property
    def is_told(self) -> bool:
        """Whether people may have read some of it."""
        return bool(self._pieces) and self._kind != "function_call"

    def taken(self, item: dict[str, Any]) -> StreamPart:
        """Take the item as it begins or ends; returns what no delta has told of it."""
        self._kind = self._kind or text(item.get("type"))
        self._encrypted = text(item.get("encrypted_content")) or self._encrypted
        if self._kind == "function_call":
            self._id, self._name = self._id or text(item.get("call_id")), self._name or text(item.get("name"))
        else:
            self._id = text(item.get("id")) or self._id
        if self._pieces:
            return Alive()
        whole = _whole(item, self._kind)
        self._pieces += [whole] if whole else []
        return self._told(whole)

    def add(self, kind: str, piece: str) -> StreamPart:
        """Add a piece; returns the part to stream. kind: of the event."""
        self._kind = self._kind or _KINDS.get(kind, "")
        if _KINDS.get(kind) != self._kind:
            return Alive()
        self._pieces.append(piece)
        return self._told(piece)

    def _told(self, piece: str) -> StreamPart:
        if self._kind == "function_call":
            return ArgumentsDelta(self._id, self._name, piece)
        if not piece or self._kind not in ("message", "reasoning"):
            return Alive()
        return TextDelta(piece) if self._kind == "message" else ThinkingDelta(piece)

    def part(self) -> Part | None:
        """Return the finished part; None when the item is empty or of an unknown kind."""
        said = "".join(self._pieces)
        match self._kind:
            case "message":
                return Text(said) if said else None
            case "function_call":
                return ToolCall(self._id, self._name, said or "{}")
            case "reasoning":
                return Thinking(said, self._id, self._encrypted) if said or self._encrypted else None
        return None


def _whole(item: dict[str, Any], kind: str) -> str:
    """Return the text of an item of a kind that is done."""
    if kind == "function_call":
        arguments = item.get("arguments") or ""
        return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    parts = items(item.get("summary" if kind == "reasoning" else "content"))
    return "".join(text(record(part).get("text")) or text(record(part).get("refusal")) for part in parts)
