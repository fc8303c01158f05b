"""The client of Anthropic's Messages API: renders requests and reads the raw events of answers.

A request is tools, system, messages, in this order, with cache marks where the next request will begin the same way:
https://platform.claude.com/docs/en/build-with-claude/prompt-caching. Thinking goes back to the model that wrote it.
"""

import json
import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any

from agent.errors import ErrorKind, ModelError
from agent.message import Image, Mark, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from agent.models import failures
from agent.models.base import (
    Alive,
    Answer,
    ArgumentsDelta,
    ModelRequest,
    ModelSpec,
    StreamPart,
    TextDelta,
    ThinkingDelta,
    ThinkingLevel,
)
from agent.models.protocol import (
    EFFORTS,
    EMPTY_MESSAGE,
    Block,
    call_id,
    call_name,
    described,
    number,
    object_text,
    parsed,
    record,
    stop_reason,
    text,
    without_images,
)
from agent.models.sdk import Sdk, SdkClient

_BASE_URL = "https://api.anthropic.com"

_CACHE: dict[str, object] = {"type": "ephemeral"}
# Tokens of thinking on models that take a budget; x-high is the most that a model takes.
_BUDGETS: dict[ThinkingLevel, int] = {"low": 1024, "medium": 8192, "high": 32768, "x-high": 1 << 20}
_LEAST_BUDGET = 1024
# The highest effort of all models that decide themselves is max; the first of them do not know xhigh.
_EFFORTS = {**EFFORTS, "x-high": "max"}
# The most output of models that take a budget, by patterns; of the others it is _MOST_OUTPUT.
_LESS_OUTPUT = ((re.compile(r"claude-opus-4-([01]\b|2025)"), 32_000),)
_MOST_OUTPUT = 64_000
# Models up to 4.5 take a budget of thinking tokens, later ones decide themselves and take an effort.
_BUDGET_MODELS = re.compile(r"claude-(3|opus-4-([0145]\b|2025)|sonnet-4-([05]\b|2025)|haiku-4-5)")
_REASONING = ("thinking", "redacted_thinking")
_NOT_WITH_THINKING = ("temperature", "top_k", "top_p")
# The kinds of deltas, each with the kind of block that it belongs to.
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}


class Client(SdkClient):
    """A client of one Anthropic model."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        return self._post("/v1/messages", body_of(request, self._spec), EventReader(self.name))

    def level_for(self, wanted: ThinkingLevel) -> ThinkingLevel:
        """See ModelClient. A level is one that the model has where more fits than the level below takes."""
        level = super().level_for(wanted)
        if level not in _BUDGETS or not _BUDGET_MODELS.search(self._spec.model):
            return level
        _, room = _budgeted(self._spec, self.max_output, "x-high")
        levels = [*_BUDGETS][: [*_BUDGETS].index(level) + 1]
        while level != "x-high" and len(levels) > 1 and room <= _BUDGETS[levels[-2]]:
            levels.pop()
        return levels[-1] if room >= _LEAST_BUDGET else "auto"

    def output_limit(self, level: ThinkingLevel) -> int:
        """See ModelClient."""
        if (level := self.level_for(level)) not in _BUDGETS or not _BUDGET_MODELS.search(self._spec.model):
            return self.max_output
        return sum(_budgeted(self._spec, self.max_output, level))

    def _make_sdk(self, **options: Any) -> Sdk:
        """Make the SDK's client, which sends the key in the documented header too, for compatible servers."""
        from anthropic import AsyncAnthropic

        url, headers = self._spec.base_url or _BASE_URL, {"X-Api-Key": self._key}
        return AsyncAnthropic(api_key=self._key, base_url=url, default_headers=headers, open_telemetry=False, **options)


def body_of(request: ModelRequest, spec: ModelSpec) -> dict[str, object]:
    """Return the request as JSON values. Messages come last, so the next request begins with the bytes of this one."""
    lines = [message for message in request.messages if message.mark is not Mark.RECALLED]
    messages = _messages(lines, spec)
    thinking = _thinking(request, spec, messages)
    body: dict[str, object] = {"model": spec.model, "max_tokens": request.max_output, "stream": True, **thinking}
    body |= {name: value for name, value in spec.params if not (thinking and name in _NOT_WITH_THINKING)}
    if request.tools:
        *tools, last = described(request.tools, "input_schema")
        body["tools"] = [*tools, last | {"cache_control": _CACHE}]
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]
    # Cache marks stand at the end and where the request before this one ended, so that it is found again.
    for end in [message for message in messages if message["role"] == "user"][-2:]:
        end["content"][-1]["cache_control"] = _CACHE
    if len(lines) < len(request.messages):  # the next request has not what is recalled, so it stands behind the marks
        messages[-1]["content"] += _blocks(request.messages[-1], spec, spec.name)
    body["messages"] = messages
    if request.tools and not request.allow_calls:
        body["tool_choice"] = {"type": "none"}
    return body


def _thinking(request: ModelRequest, spec: ModelSpec, messages: list[Block]) -> dict[str, object]:
    """Return the fields for a thinking level; none for auto and off, since models think only when they are asked to.

    The words come out of the same limit of output as thinking with a budget, so the limit is raised by the budget.
    """
    level = request.thinking
    if level in ("auto", "off") or "unthought" in request.forms:
        return {}
    if not _BUDGET_MODELS.search(spec.model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORTS[level]}}
    words, budget = _budgeted(spec, request.max_output, level)
    if budget < _LEAST_BUDGET or not _loop_began_with_thinking(messages):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": budget + words}


def _budgeted(spec: ModelSpec, max_output: int, level: ThinkingLevel) -> tuple[int, int]:
    """Return the tokens of words and of thinking for a level, of a model that takes a budget, which may be too small.

    max_output: what is wanted for words.
    """
    most = next((limit for pattern, limit in _LESS_OUTPUT if pattern.search(spec.model)), _MOST_OUTPUT)
    words = min(max_output, most // 2)
    return words, min(_BUDGETS[level], min(most, spec.context_window // 2) - words)


def _loop_began_with_thinking(messages: list[Block]) -> bool:
    """Whether the sequence of calls and results that the request continues allows thinking with a budget.

    It must begin with thinking, which is missing when another model began it; the turn then continues without thinking.
    """
    began = True
    for message in reversed(messages):
        first = message["content"][0]["type"]
        if message["role"] == "assistant":
            began = first in _REASONING
        elif first != "tool_result":
            break
    return began


def _messages(messages: Sequence[Message], spec: ModelSpec) -> list[Block]:
    """Return alternating user and assistant messages; results come first in a message, in the order of the calls."""
    rendered: list[Block] = []
    name = spec.name
    order: dict[str, int] = {}
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if role == "assistant":
            order |= {call_id(call.call_id): place for place, call in enumerate(message.tool_calls, len(order))}
        blocks = _blocks(message, spec, name)
        if rendered and rendered[-1]["role"] == role:
            rendered[-1]["content"] += blocks
        elif blocks:
            rendered.append({"role": role, "content": blocks})
    for entry in rendered:
        if entry["role"] == "user" and len(entry["content"]) > 1:
            entry["content"].sort(key=lambda block: _place(block, order))
    return rendered


def _place(block: Block, order: dict[str, int]) -> int:
    return order.get(block["tool_use_id"], -1) if block["type"] == "tool_result" else len(order)


def _blocks(message: Message, spec: ModelSpec, name: str) -> list[Block]:
    """Return the blocks of a message without what the API refuses: blank text, and thinking with nothing after it."""
    own = message.model == name
    parts = message.parts if spec.vision else without_images(message.parts)
    blocks = [block for part in parts if (block := _block(part, own)) is not None]
    if message.role == "assistant":
        while blocks and blocks[-1]["type"] in _REASONING:
            blocks.pop()
    elif not blocks:
        blocks.append({"type": "text", "text": EMPTY_MESSAGE})
    return blocks


def _block(part: Part, own: bool) -> Block | None:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Thinking(redacted=data) if data:
            return {"type": "redacted_thinking", "data": data} if own else None
        case Thinking(text=text, signature=signature):
            return {"type": "thinking", "thinking": text, "signature": signature} if own and signature else None
        case ToolCall():
            name = call_name(part.name)
            given = json.loads(object_text(part.arguments))
            return {"type": "tool_use", "id": call_id(part.call_id), "name": name, "input": given}
        case ToolResult():
            return _result(part)
        case Image(mime=mime, data=data):
            return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def _result(part: ToolResult) -> Block:
    items: tuple[Part, ...] = (Text(part.text), *part.images)
    content = [block for item in items if (block := _block(item, False)) is not None]
    result: Block = {"type": "tool_result", "tool_use_id": call_id(part.call_id)}
    if content:
        result["content"] = content
    if part.is_error:
        result["is_error"] = True
    return result


class EventReader:
    """Reads the events of one answer: https://platform.claude.com/docs/en/build-with-claude/streaming"""

    def __init__(self, name: str) -> None:
        self.ended = False
        self._name = name
        self._blocks: list[_OpenBlock] = []
        self._at: dict[int, _OpenBlock] = {}
        self._stop = ""
        self._usage: dict[str, int] = {}

    def feed(self, name: str, data: str) -> Iterable[StreamPart]:
        """Read one event; unknown kinds and fields are ignored."""
        if self.ended:
            return ()
        event = parsed(data)
        match event:
            case {"type": "content_block_delta", "index": int(at), "delta": {"type": "text_delta", "text": str(words)}}:
                if words and (open_block := self._at.get(at)) is not None and open_block.kind == "text":
                    open_block.pieces.append(words)
                    return (TextDelta(words),)
        kind = event.get("type") or name
        if kind == "content_block_delta":
            block = self._at.get(number(event.get("index")))
            return (block.add(record(event.get("delta"))) if block else Alive(),)
        if kind == "content_block_start":
            block = self._at[number(event.get("index"))] = _OpenBlock(record(event.get("content_block")))
            self._blocks.append(block)
            return (block.opening(),)
        if kind == "message_start":
            if self._blocks:  # a proxy has retried; what was streamed before cannot be taken back
                raise ModelError(ErrorKind.NETWORK, "the answer began anew in the middle of the stream")
            self._count(record(record(event.get("message")).get("usage")))
        elif kind == "message_delta":
            self._stop = text(record(event.get("delta")).get("stop_reason"))
            self._count(record(event.get("usage")))
        elif kind == "message_stop":
            self.ended = True
        elif kind == "error":
            raise failures.of_payload(event, ())
        return (Alive(),)

    def answer(self) -> Answer | None:
        """Return the complete answer; None before `message_stop`."""
        if not self.ended:
            return None
        found = [block.part() for block in self._blocks]
        message = Message("assistant", tuple(part for part in found if part is not None), self._name)
        return Answer(message, stop_reason(self._stop), self._used())

    def cut(self) -> None:
        """End the answer here, as if it had reached the model's limit of output."""
        self.ended, self._stop = True, "max_tokens"

    def _count(self, usage: dict[str, Any]) -> None:
        """Take counts of tokens, which are totals: the last one counts."""
        self._usage |= {key: number(value) for key, value in usage.items() if isinstance(value, int)}

    def _used(self) -> Usage:
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        plain = self._usage.get("input_tokens", 0)
        return Usage(plain + read + written, self._usage.get("output_tokens", 0), read, written)


class _OpenBlock:
    """A block of an answer while its pieces arrive."""

    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self.kind = text(start.get("type"))
        self.pieces = [text(start.get(self.kind))] if self.kind in ("text", "thinking") else []
        self._signature = text(start.get("signature"))
        self._id, self._name = text(start.get("id")), text(start.get("name"))

    def opening(self) -> StreamPart:
        """Return the part to stream when the block begins."""
        return self._told("".join(self.pieces))

    def add(self, delta: dict[str, Any]) -> StreamPart:
        """Add a piece; returns the part to stream."""
        kind = text(delta.get("type"))
        if kind == "signature_delta":
            self._signature += text(delta.get("signature"))
        if _DELTAS.get(kind) != self.kind:
            return Alive()
        piece = text(delta.get("partial_json" if self.kind == "tool_use" else self.kind))
        self.pieces.append(piece)
        return self._told(piece)

    def _told(self, piece: str) -> StreamPart:
        if self.kind == "tool_use":
            return ArgumentsDelta(self._id, self._name, piece)
        if not piece:
            return Alive()
        return TextDelta(piece) if self.kind == "text" else ThinkingDelta(piece)

    def part(self) -> Part | None:
        """Return the finished part; None when the block is empty or of an unknown kind."""
        said = "".join(self.pieces)
        match self.kind:
            case "text":
                return Text(said) if said else None
            case "thinking":
                return Thinking(said, self._signature) if said or self._signature else None
            case "redacted_thinking":
                return Thinking("", redacted=text(self._start.get("data")))
            case "tool_use":
                arguments = said or json.dumps(record(self._start.get("input")), ensure_ascii=False)
                return ToolCall(self._id, self._name, arguments)
        return None
