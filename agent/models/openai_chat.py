"""The client of OpenAI's chat completions and of compatible servers: Ollama, Gemini, vLLM, OpenRouter and others.

It sends only what https://platform.openai.com/docs/api-reference/chat defines, but accepts what servers really send:
they leave out usage, ids and `[DONE]`, repeat indexes, send a call in one piece, and have own fields for reasoning.
"""

import json
import secrets
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Iterator, Sequence
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
    alternating,
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
from agent.models.think_tags import ThinkTags

# Stands for the signature of a call that Gemini has not made: https://ai.google.dev/gemini-api/docs/thought-signatures
_UNSIGNED: Block = {"google": {"thought_signature": "skip_thought_signature_validator"}}
# Finish reasons that are errors.
_BROKEN = ("error", "insufficient_system_resource")


def _new_id() -> str:
    return "call_" + secrets.token_hex(12)


class Client(OpenAiClient):
    """A client of one model behind chat completions."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        used = (call.call_id for message in request.messages for call in message.tool_calls)
        reader = ChunkReader(self.name, used, _new_id)
        return self._post("/chat/completions", body_of(request, self._spec), reader)


def body_of(request: ModelRequest, spec: ModelSpec) -> dict[str, object]:
    """Return the request as JSON values. Messages come last, so the next request begins with the bytes of this one."""
    body: dict[str, object] = {
        "model": spec.model,
        compat.limit_field(spec): request.max_output,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.thinking != "auto" and (effort := compat.effort(spec, request.thinking)):
        body["reasoning_effort"] = effort
    elif request.thinking == "off" and compat.wants_reasoning(spec):
        body["thinking"] = {"type": "disabled"}
    body |= dict(spec.params)
    known = compat.takes(spec.api, spec.base_url, spec.model)
    forms = request.forms | known.forms
    if request.tools:
        tools = described(request.tools[: known.tools or None], "parameters", "plain" in forms)
        body["tools"] = [{"type": "function", "function": tool} for tool in tools]
    messages = _messages(request, spec, forms)
    body["messages"] = list(alternating(messages) if "turns" in forms else messages)
    if request.tools and not request.allow_calls:
        body["tool_choice"] = "none"
    return body


def _messages(request: ModelRequest, spec: ModelSpec, forms: Container[str]) -> Iterator[Block]:
    """Yield the messages. Images of tool results follow in a user message, because a tool message takes text only."""
    if request.system.strip():
        yield {"role": "system", "content": request.system}
    shown: list[Image] = []
    name, is_short = spec.name, "ids" in forms
    wanted = "reasoning" in forms or compat.wants_reasoning(spec)
    for message in with_recalled(request.messages):
        if shown and message.role != "tool":
            yield _images_of_tools(shown)
            shown = []
        # Most messages are one text; nothing else that a message may hold needs to be looked for then.
        if len(message.parts) == 1 and isinstance(only := message.parts[0], Text) and only.text.strip():
            yield {"role": message.role, "content": only.text}
            continue
        parts = message.parts if spec.vision else tuple(without_images(message.parts))
        match message.role:
            case "user":
                yield {"role": "user", "content": _content(parts)}
            case "assistant":
                if block := _assistant(parts, message.model == name, reasoning=wanted, forms=forms):
                    yield block
            case "tool":
                for part in parts:
                    if isinstance(part, ToolResult):
                        block = {"role": "tool", "tool_call_id": call_id(part.call_id, is_short)}
                        yield block | {"content": result_text(part)}
                        shown += part.images
    if shown:
        yield _images_of_tools(shown)


def _content(parts: Sequence[Part]) -> str | list[Block]:
    """Return the content of a user message: a string if it has no images, because every server takes that."""
    texts = [part.text for part in parts if isinstance(part, Text) and part.text.strip()]
    images = [part for part in parts if isinstance(part, Image)]
    if images:
        return [*({"type": "text", "text": text} for text in texts), *map(_image, images)]
    return "\n\n".join(texts) or EMPTY_MESSAGE


def _image(image: Image) -> Block:
    return {"type": "image_url", "image_url": {"url": f"data:{image.mime};base64,{image.data}"}}


def _images_of_tools(images: Iterable[Image]) -> Block:
    note = {"type": "text", "text": "(images from the tool results above)"}
    return {"role": "user", "content": [note, *map(_image, images)]}


def _assistant(parts: Sequence[Part], own: bool, *, reasoning: bool, forms: Container[str]) -> Block | None:
    """Return an assistant message with its text and calls; None if it holds only thinking.

    own: whether this model wrote it. reasoning: whether calls need the reasoning before them; that of other models is
    left empty. forms: see `Takes`.
    """
    text = "".join([part.text for part in parts if isinstance(part, Text)])
    if calls := [part for part in parts if isinstance(part, ToolCall)]:
        extras = _extras(parts) if own else {}
        if not extras and "signatures" in forms:
            extras = {calls[0].call_id: _UNSIGNED}
        called = [_call(call, extras, is_short="ids" in forms) for call in calls]
        block: Block = {"role": "assistant", "content": text if text.strip() else None, "tool_calls": called}
        thinking = [part for part in parts if isinstance(part, Thinking)] if own else []
        if reasoning:
            block["reasoning_content"] = "".join(part.text for part in thinking)
        return block | _details(thinking) if thinking else block
    return {"role": "assistant", "content": text} if text.strip() else None


def _call(part: ToolCall, extras: dict[str, Any], *, is_short: bool) -> Block:
    function = {"name": call_name(part.name), "arguments": object_text(part.arguments)}
    call: Block = {"id": call_id(part.call_id, is_short), "type": "function", "function": function}
    if part.call_id in extras:
        call["extra_content"] = extras[part.call_id]
    return call


def _extra_part(call: str, content: Any) -> Thinking:
    """Store what a server wants back with a call (Gemini: its thought signature) as the signature of a Thinking."""
    return Thinking("", signature=json.dumps({"call": call, "extra_content": content}, ensure_ascii=False))


def _extras(parts: Iterable[Part]) -> dict[str, Any]:
    """Read what `_extra_part` stored, by call id."""
    signatures = (part.signature for part in parts if isinstance(part, Thinking))
    found = (json.loads(signature) for signature in signatures if signature.startswith('{"call":'))
    return {extra["call"]: extra["extra_content"] for extra in found}


def _details(thinking: Iterable[Thinking]) -> Block:
    """Return the field in which OpenRouter wants its details of reasoning back unchanged; none where it gave none."""
    signatures = (part.signature for part in thinking)
    return next((json.loads(found) for found in signatures if found.startswith('{"reasoning_details":')), {})


def _words_alone(chunk: dict[str, Any]) -> str:
    """Return the text of a chunk that holds nothing else, as nearly all do; empty for any other chunk."""
    match chunk:
        case {"choices": [{"delta": {"content": str(words), **others}, **choice}], **about}:
            others.pop("role", None)
            ends = choice.get("finish_reason") or choice.get("index") or any(others.values())
            if not (ends or about.get("usage") or about.get("error") or about.get("object") == "error"):
                return words
    return ""


class ChunkReader:
    """Reads the chunks of one answer."""

    def __init__(self, name: str, used: Iterable[str], new_id: Callable[[], str]) -> None:
        """used: ids of calls in the transcript, which are not given again; it is read when the first call comes.

        new_id: makes ids for servers that give none.
        """
        self.ended = False
        self._name = name
        self._before = used
        self._used: set[str] = set()
        self._new_id = new_id
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._details: list[dict[str, Any]] = []
        self._tags = ThinkTags()
        self._calls: list[_OpenCall] = []
        self._at: dict[int, _OpenCall] = {}
        self._finish = ""
        self._refused = False
        self._usage = Usage()

    def feed(self, name: str, data: str) -> Iterable[StreamPart]:
        """Read one chunk; unknown fields are ignored."""
        if self.ended or data.startswith("[DONE]"):
            self.ended = True
            return tuple(self._held())
        chunk = parsed(data)
        if name != "error" and (words := _words_alone(chunk)) and (self._tags.done or self._tags.are_words(words)):
            self._text.append(words)
            return (TextDelta(words),)
        if name == "error" or chunk.get("error") or chunk.get("object") == "error":
            raise failures.of_payload(chunk, ())
        if usage := chunk.get("usage") or ("x_groq" in chunk and record(chunk["x_groq"]).get("usage")):
            self._usage = _usage(record(usage))
        parts: list[StreamPart] = []
        for choice in map(record, items(chunk.get("choices"))):
            if choice.get("index"):  # one answer was asked for; if the server gives more, the first counts
                continue
            parts += self._delta(record(choice.get("delta")))
            reason, _, _ = text(choice.get("finish_reason")).lower().partition(":")
            self._finish = reason or self._finish
            parts += self._held() if reason else ()
        if self._finish in _BROKEN:
            raise failures.of_payload(chunk, ())
        return parts or (Alive(),)

    def answer(self) -> Answer | None:
        """Return the complete answer; None before a finish reason came, or `[DONE]` after text or complete calls."""
        said = bool(self._text or self._calls) and all(call.complete() for call in self._calls)
        if not self._finish and not (self.ended and said):
            return None
        details = json.dumps({"reasoning_details": self._details}, ensure_ascii=False) if self._details else ""
        parts: list[Part] = [Thinking("".join(self._thinking), details)] if self._thinking or details else []
        if self._text:
            parts.append(Text("".join(self._text)))
        for call in self._calls:
            if call.extra is not None:
                parts.append(_extra_part(call.call_id, call.extra))
            parts.append(ToolCall(call.call_id, call.name, "".join(call.pieces) or "{}"))
        stop = stop_reason("refusal" if self._refused else self._finish or "stop")
        if self._calls and stop in ("end", "other"):
            stop = "tool_use"
        return Answer(Message("assistant", tuple(parts), self._name), stop, self._usage)

    def cut(self) -> None:
        """End the answer here, as if it had reached the model's limit of output."""
        self.ended, self._finish = True, "length"

    def _delta(self, delta: dict[str, Any]) -> Iterator[StreamPart]:
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            yield from self._thought(thought)
        if "reasoning_details" in delta:
            for detail in map(record, items(delta["reasoning_details"])):
                self._detail(detail)
        if refusal := text(delta.get("refusal")):
            self._refused = True
            yield from self._said(refusal)
        content = delta.get("content")
        for part in map(record, content) if isinstance(content, list) else ({"text": content},):
            if thought := part.get("thinking"):
                yield from self._thought(thought)
            yield from self._said(text(part.get("text")))
        for piece in items(delta.get("tool_calls")):
            yield self._piece(record(piece))

    def _detail(self, piece: dict[str, Any]) -> None:
        """Take a detail of reasoning, which is a piece of the one before if it has its kind and place."""
        last = self._details[-1] if self._details else {}
        if not last or any(last.get(name) != piece.get(name) for name in ("type", "index")):
            self._details.append(dict(piece))
            return
        for name, value in piece.items():
            is_piece = name in ("text", "summary", "data") and isinstance(value, str)
            if value is not None:
                last[name] = text(last.get(name)) + value if is_piece else value

    def _thought(self, thought: Any) -> Iterator[StreamPart]:
        """Take a piece of reasoning, which is a text or a list of parts with texts."""
        if found := text(thought) or "".join(text(record(part).get("text")) for part in items(thought)):
            self._thinking.append(found)
            yield ThinkingDelta(found)

    def _said(self, words: str) -> Iterator[StreamPart]:
        if words:
            yield from self._parted(((False, words),) if self._tags.done else self._tags.feed(words))

    def _held(self) -> Iterator[StreamPart]:
        """Give out what may have been the beginning of a tag."""
        if not self._tags.done:
            yield from self._parted(self._tags.end())

    def _parted(self, pieces: Iterable[tuple[bool, str]]) -> Iterator[StreamPart]:
        for is_thought, piece in pieces:
            (self._thinking if is_thought else self._text).append(piece)
            yield ThinkingDelta(piece) if is_thought else TextDelta(piece)

    def _piece(self, piece: dict[str, Any]) -> StreamPart:
        function = record(piece.get("function"))
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        index = piece.get("index")
        given, name = text(piece.get("id")), text(function.get("name"))
        call = self._call_of(index if isinstance(index, int) else None, given, name)
        call.pieces.append(arguments)
        call.extra = piece.get("extra_content") or call.extra
        return ArgumentsDelta(call.call_id, call.name, arguments)

    def _call_of(self, index: int | None, given: str, name: str) -> "_OpenCall":
        """Return the call that a piece belongs to: the one of its index, unless id or name begin a new one."""
        last = self._calls[-1] if self._calls else None
        call = last if index is None else self._at.get(index)
        if call is None or call.ends_before(given, name):
            call = _OpenCall(self._fresh(given), given, name)
            self._calls.append(call)
        if index is not None:
            self._at[index] = call
        call.name = call.name or name
        return call

    def _fresh(self, given: str) -> str:
        self._used.update(self._before)
        self._before = ()
        found = given if given and given not in self._used else self._new_id()
        self._used.add(found)
        return found


class _OpenCall:
    """A call while its pieces arrive."""

    def __init__(self, call_id: str, given: str, name: str) -> None:
        """given: the id that the server gave the call, which may be empty or used before."""
        self.call_id = call_id
        self.given = given
        self.name = name
        self.pieces: list[str] = []
        self.extra: Any = None

    def ends_before(self, given: str, name: str) -> bool:
        """Whether a piece with this id and name begins another call."""
        if given and self.given:
            return given != self.given
        return bool(name and self.name) and self.complete()

    def complete(self) -> bool:
        """Whether its arguments are JSON."""
        try:
            json.loads("".join(self.pieces))
        except (ValueError, RecursionError):
            return False
        return True


def _usage(usage: dict[str, Any]) -> Usage:
    details = record(usage.get("prompt_tokens_details"))
    # DeepSeek has a field of its own, and so has Moonshot.
    read = number(details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens"))
    written = number(details.get("cache_write_tokens"))
    return Usage(number(usage.get("prompt_tokens")), number(usage.get("completion_tokens")), read, written)
