"""CPU of a model call, beside the SDK's own way: the request of 1,500 messages, and one event of a stream.

Answers come from an HTTP transport inside the process, so that only the client's own work is measured.
"""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anthropic
import httpx2
import openai

from agent.message import Message, Text, ToolCall, ToolResult, ToolSpec
from agent.models.anthropic import Client as AnthropicClient
from agent.models.base import ModelApi, ModelRequest, ModelSpec
from agent.models.openai_chat import Client as OpenAIChatClient
from bench.figures import Row, Scale
from bench.model import APIS, Model

MESSAGES = 1_500
EVENTS = 4_000
_WORD = "a word or two of a conversation that has been going on for quite a while by now, "
TITLE = "CPU of a model call, without a server (best of several tries)"


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Take all figures; about ten seconds."""
    tries = min(5, scale.turns)
    rows = []
    for api in APIS:
        short = await _best(_hark(api, _sse(api, 1), _request(2)), tries)
        long = await _best(_hark(api, _sse(api, 1), _request(MESSAGES)), tries)
        stream = await _best(_hark(api, _sse(api, EVENTS), _request(2)), tries)
        sdk_short = await _best(_sdk(api, _sse(api, 1), 2), tries)
        sdk_long = await _best(_sdk(api, _sse(api, 1), MESSAGES), tries)
        sdk_stream = await _best(_sdk(api, _sse(api, EVENTS), 2), tries)
        event, sdk_event = (
            1e6 * (many - one) / (EVENTS - 1) for many, one in ((stream, short), (sdk_stream, sdk_short))
        )
        rows += [
            _row(f"{api}: call of {MESSAGES:,} messages", 1e3 * long, 1e3 * sdk_long, "ms", "50"),
            _row(f"{api}: call of 2 messages", 1e3 * short, 1e3 * sdk_short, "ms", ""),
            _row(f"{api}: event of a stream", event, sdk_event, "µs", "60"),
        ]
    return rows


def _row(what: str, hark: float, sdk: float, unit: str, target: str) -> Row:
    return Row(what=what, unit=unit, hark=hark, raw=sdk, target=target)


async def _best(call: Callable[[], Awaitable[None]], tries: int) -> float:
    """The least CPU of a few tries, in seconds; the first one warms up."""
    await call()
    taken = []
    for _ in range(tries):
        start = time.process_time()
        await call()
        taken.append(time.process_time() - start)
    return min(taken)


def _hark(api: ModelApi, body: bytes, request: ModelRequest) -> Callable[[], Awaitable[None]]:
    spec = ModelSpec(provider="bench", api=api, model="model", api_keys=("key",))
    client = AnthropicClient(spec) if api == "anthropic" else OpenAIChatClient(spec)
    client._sdk = _open(api, body)  # instead of one that asks a server

    async def call() -> None:
        async for _ in client.stream(request):
            pass

    return call


def _sdk(api: ModelApi, body: bytes, count: int) -> Callable[[], Awaitable[None]]:
    client = _open(api, body)
    messages = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": [{"type": "text", "text": _text(place)}]}
        for place in range(count - 1)
    ]
    messages.append({"role": "user", "content": [{"type": "text", "text": "go on"}]})

    async def call() -> None:
        if api == "anthropic":
            stream = await client.messages.create(model="model", max_tokens=100, messages=messages, stream=True)
        else:
            stream = await client.chat.completions.create(model="model", messages=messages, stream=True)
        async for _ in stream:
            pass

    return call


def _open(api: ModelApi, body: bytes) -> Any:
    http = httpx2.AsyncClient(transport=_Canned(body))
    if api == "anthropic":
        return anthropic.AsyncAnthropic(api_key="key", base_url="http://bench", max_retries=0, http_client=http)
    return openai.AsyncOpenAI(api_key="key", base_url="http://bench/v1", max_retries=0, http_client=http)


class _Canned(httpx2.AsyncBaseTransport):
    """Answers every request with the same events, eight to a piece."""

    def __init__(self, body: bytes) -> None:
        events = body.split(b"\n\n")
        self._pieces = [b"\n\n".join(events[at : at + 8]) + b"\n\n" for at in range(0, len(events) - 1, 8)]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Pieces(self._pieces))


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def _text(place: int) -> str:
    return f"{place}: {_WORD * 7}"


def _request(count: int) -> ModelRequest:
    """A conversation with a tool call in every fifth exchange."""
    messages: list[Message] = []
    while len(messages) < count - 1:
        place = len(messages)
        messages.append(Message("user", (Text(_text(place)),)))
        if place % 10 == 8:
            call = ToolCall(f"call_{place}", "read", '{"path": "notes.txt"}')
            messages.append(Message("assistant", (call,)))
            messages.append(Message("tool", (ToolResult(call.call_id, "read", _text(place)),)))
        messages.append(Message("assistant", (Text(_text(place)),)))
    messages.append(Message("user", (Text("go on"),)))
    tools = (ToolSpec("read", "Read a file.", '{"type": "object", "properties": {"path": {"type": "string"}}}'),)
    return ModelRequest(system="Be brief.", messages=tuple(messages), tools=tools, max_output=1000)


def _sse(api: ModelApi, words: int) -> bytes:
    """A whole answer of so many deltas."""
    if api == "anthropic":
        usage = {"input_tokens": 10, "output_tokens": 1}
        delta = {"index": 0, "delta": {"type": "text_delta", "text": "word "}}
        events: list[tuple[str, dict[str, Any]]] = [
            (
                "message_start",
                {"message": {"id": "m", "content": [], "role": "assistant", "model": "m", "usage": usage}},
            ),
            ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
            *(("content_block_delta", delta) for _ in range(words)),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": usage}),
            ("message_stop", {}),
        ]
        return b"".join(
            b"event: %b\ndata: %b\n\n" % (k.encode(), json.dumps({"type": k, **e}).encode()) for k, e in events
        )
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunk = {**head, "choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]}
    last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    lines = [*(chunk for _ in range(words)), last]
    return b"".join(b"data: %b\n\n" % json.dumps(line).encode() for line in lines) + b"data: [DONE]\n\n"
