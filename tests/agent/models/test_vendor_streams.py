"""Streams in the shape of each vendor, sent over a socket at odd byte boundaries, read by the real clients.

What a vendor wants back in the next request is looked for in the body of that request.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent.message import Usage
from agent.models import build
from agent.models.base import Answer, ModelApi, ModelSpec, StreamPart, TextDelta, ThinkingDelta
from tests.agent.models.makers import chunks, events, request, results, user
from tests.agent.models.test_contract import BODY_OF


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A stream, and what it must give."""

    body: bytes
    text: str = ""
    thinking: str = ""
    # Names and arguments.
    calls: tuple[tuple[str, Any], ...] = ()
    ids: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    stop: str = "end"
    api: ModelApi = "openai-chat"
    # The root of the vendor's API, where requests differ by it.
    url: str = "http://127.0.0.1/v1"
    # What the next request must hold, as JSON values.
    back: tuple[Any, ...] = ()


def delta(finish: str | None = None, /, **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": fields, "finish_reason": finish}
    return {"id": "x-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def call(call_id: str | None, name: str | None, arguments: str, **fields: Any) -> dict[str, Any]:
    head = {"id": call_id, "type": "function"} if call_id is not None else {}
    function = ({"name": name} if name else {}) | {"arguments": arguments}
    return {**head, "function": function, **fields}


def usage(prompt: int, completion: int, **fields: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **fields}


def ended(used: dict[str, Any]) -> dict[str, Any]:
    return {"id": "x-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": used}


PATH = {"path": "ü.txt"}
WORDS = json.dumps(PATH, ensure_ascii=False)
SIGNED = {"google": {"thought_signature": "c2ln"}}
DETAIL = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}

STREAMS = {
    "openai": Recorded(
        body=chunks(
            delta(role="assistant", content="", refusal=None),
            delta(content="Grüße "),
            delta(content="你好"),
            delta(tool_calls=[call("call_1", "read", "", index=0)]),
            delta(tool_calls=[call(None, None, WORDS[:5], index=0)]),
            delta(tool_calls=[call(None, None, WORDS[5:], index=0)]),
            delta(tool_calls=[call("call_2", "read", "{}", index=1)]),
            delta("tool_calls"),
            ended(usage(100, 20, prompt_tokens_details={"cached_tokens": 64})),
            "[DONE]",
        ),
        text="Grüße 你好",
        calls=(("read", PATH), ("read", {})),
        ids=("call_1", "call_2"),
        usage=Usage(100, 20, 64),
        stop="tool_use",
    ),
    "gemini": Recorded(
        body=chunks(
            delta(role="assistant", content="<thought>Let me", extra_content={"google": {"thought": True}}),
            delta(role="assistant", content=" see.", extra_content={"google": {"thought": True}}),
            delta(role="assistant", content="</thought>I look."),
            delta(role="assistant", tool_calls=[call("", "read", WORDS, extra_content=SIGNED)]),
            delta("tool_calls", role="assistant", tool_calls=[call("", "read", "{}")]),
            ended(usage(50, 9)),
            "[DONE]",
        ),
        text="I look.",
        thinking="Let me see.",
        calls=(("read", PATH), ("read", {})),
        usage=Usage(50, 9),
        stop="tool_use",
        url="https://generativelanguage.googleapis.com/v1beta/openai",
        back=(SIGNED,),
    ),
    "gemini, all calls with the same index": Recorded(
        body=chunks(
            delta(role="assistant", tool_calls=[call("function-call-1", "read", WORDS, index=0)]),
            delta("stop", role="assistant", tool_calls=[call("function-call-2", "write", "{}", index=0)]),
            "[DONE]",
        ),
        calls=(("read", PATH), ("write", {})),
        ids=("function-call-1", "function-call-2"),
        stop="tool_use",
    ),
    "deepseek": Recorded(
        body=b": keep-alive\n\n"
        + chunks(
            delta(role="assistant", content=None, reasoning_content=""),
            delta(content=None, reasoning_content="Erst "),
            delta(content=None, reasoning_content="lesen."),
            delta(content="", reasoning_content=None, tool_calls=[call("call_00_a", "read", "", index=0)]),
            delta(tool_calls=[call(None, None, WORDS, index=0)]),
            {**delta("tool_calls", content=""), "usage": usage(
                80, 30, prompt_cache_hit_tokens=64, prompt_cache_miss_tokens=16,
                completion_tokens_details={"reasoning_tokens": 20})},
            "[DONE]",
        ),
        thinking="Erst lesen.",
        calls=(("read", PATH),),
        ids=("call_00_a",),
        usage=Usage(80, 30, 64),
        stop="tool_use",
        url="https://api.deepseek.com",
        back=("Erst lesen.",),
    ),
    "openrouter": Recorded(
        body=b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"
        + chunks(
            delta(role="assistant", content="", reasoning="Hm", reasoning_details=[{**DETAIL, "text": "Hm"}]),
            delta(role="assistant", content="", reasoning="m.", reasoning_details=[{**DETAIL, "text": "m."}]),
            delta(role="assistant", content="", reasoning=None, reasoning_details=[{**DETAIL, "signature": "sig"}]),
            delta(role="assistant", content="Ja."),
            delta(role="assistant", content=None, tool_calls=[call("toolu_1", "read", WORDS, index=0)]),
            {**delta("tool_calls", role="assistant", content=""), "provider": "Anthropic"},
            {**delta(role="assistant", content=""), "usage": usage(
                70, 12, cost=0.01, prompt_tokens_details={"cached_tokens": 10, "cache_write_tokens": 5})},
            "[DONE]",
        ),
        text="Ja.",
        thinking="Hmm.",
        calls=(("read", PATH),),
        ids=("toolu_1",),
        usage=Usage(70, 12, 10, 5),
        stop="tool_use",
        url="https://openrouter.ai/api/v1",
        back=([{**DETAIL, "text": "Hmm.", "signature": "sig"}],),
    ),
    "mistral": Recorded(
        body=chunks(
            delta(role="assistant", content=""),
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Also"}]}]),
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": " gut."}]}]),
            delta(content="Hier: "),
            delta(content=[{"type": "text", "text": "x"}]),
            {**delta("tool_calls", content="", tool_calls=[call("D681PevKs", "read", WORDS, index=0)]),
             "usage": usage(11, 7)},
            "[DONE]",
        ),
        text="Hier: x",
        thinking="Also gut.",
        calls=(("read", PATH),),
        ids=("D681PevKs",),
        usage=Usage(11, 7),
        stop="tool_use",
    ),
    "groq": Recorded(
        body=chunks(
            {**delta(role="assistant", content=""), "x_groq": {"id": "req_1"}},
            delta(reasoning="Kurz.", channel="analysis"),
            delta(content="Ja."),
            {**delta("stop"), "x_groq": {"id": "req_1", "usage": usage(9, 4)}},
            "[DONE]",
        ),
        text="Ja.",
        thinking="Kurz.",
        usage=Usage(9, 4),
    ),
    "ollama": Recorded(
        body=chunks(
            delta(role="assistant", content="", reasoning="So."),
            delta(role="assistant", content="Da."),
            delta(role="assistant", content="", tool_calls=[call("call_a", "read", WORDS, index=0)]),
            delta("tool_calls", role="assistant", content=""),
            ended(usage(5, 6)),
            "[DONE]",
        ),
        text="Da.",
        thinking="So.",
        calls=(("read", PATH),),
        ids=("call_a",),
        usage=Usage(5, 6),
        stop="tool_use",
    ),
    "vllm": Recorded(
        body=chunks(
            delta(role="assistant", content=""),
            delta(content="<th"),
            delta(content="ink>\nWenn "),
            delta(content="a < b.</thi"),
            delta(content="nk>\n\nDann b."),
            delta("length"),
            ended(usage(5, 6)),
            "[DONE]",
        ),
        text="Dann b.",
        thinking="Wenn a < b.",
        usage=Usage(5, 6),
        stop="max_output",
    ),
    "anthropic": Recorded(
        body=events(
            ("message_start", {"message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [],
                                           "usage": {"input_tokens": 5, "cache_read_input_tokens": 40,
                                                     "cache_creation_input_tokens": 7, "output_tokens": 1}}}),
            ("content_block_start", {"index": 0, "content_block": {
                "type": "thinking", "thinking": "", "signature": ""}}),
            ("ping", {}),
            ("content_block_delta", {"index": 0, "delta": {"type": "thinking_delta", "thinking": "Mal sehen."}}),
            ("content_block_delta", {"index": 0, "delta": {"type": "signature_delta", "signature": "EqQB"}}),
            ("content_block_stop", {"index": 0}),
            ("content_block_start", {"index": 1, "content_block": {"type": "redacted_thinking", "data": "RWVt"}}),
            ("content_block_stop", {"index": 1}),
            ("content_block_start", {"index": 2, "content_block": {"type": "text", "text": ""}}),
            ("content_block_delta", {"index": 2, "delta": {"type": "text_delta", "text": "Ich lese."}}),
            ("content_block_stop", {"index": 2}),
            ("content_block_start", {"index": 3, "content_block": {
                "type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}}),
            ("content_block_delta", {"index": 3, "delta": {"type": "input_json_delta", "partial_json": ""}}),
            ("content_block_delta", {"index": 3, "delta": {"type": "input_json_delta", "partial_json": WORDS}}),
            ("content_block_stop", {"index": 3}),
            ("message_delta", {"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 33}}),
            ("message_stop", {}),
        ),
        api="anthropic",
        text="Ich lese.",
        thinking="Mal sehen.",
        calls=(("read", PATH),),
        ids=("toolu_1",),
        usage=Usage(52, 33, 40, 7),
        stop="tool_use",
        back=({"type": "thinking", "thinking": "Mal sehen.", "signature": "EqQB"},
              {"type": "redacted_thinking", "data": "RWVt"}),
    ),
    "openai responses": Recorded(
        body=events(
            ("response.created", {"response": {"id": "resp_1", "status": "in_progress", "output": []}}),
            ("response.output_item.added", {"output_index": 0, "item": {
                "id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "half"}}),
            ("response.reasoning_summary_text.delta", {"item_id": "rs_1", "output_index": 0, "delta": "Kurz."}),
            ("response.output_item.done", {"output_index": 0, "item": {
                "id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Kurz."}],
                "encrypted_content": "gAAA"}}),
            ("response.output_item.added", {"output_index": 1, "item": {
                "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "read", "arguments": ""}}),
            ("response.function_call_arguments.delta", {"item_id": "fc_1", "output_index": 1, "delta": WORDS}),
            ("response.output_item.done", {"output_index": 1, "item": {
                "id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "read", "arguments": WORDS}}),
            ("response.completed", {"response": {"id": "resp_1", "status": "completed", "usage": {
                "input_tokens": 90, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 12,
                "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 102}}}),
        ),
        api="openai-responses",
        thinking="Kurz.",
        calls=(("read", PATH),),
        ids=("call_1",),
        usage=Usage(90, 12, 30),
        stop="tool_use",
        back=({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Kurz."}],
               "encrypted_content": "gAAA"},),
    ),
}  # fmt: skip


@asynccontextmanager
async def played(body: bytes, size: int) -> AsyncIterator[str]:
    """A server that answers every request with this stream, in chunks of so many bytes; gives its root."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for at in range(0, len(body), size):
            piece = body[at : at + size]
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def holds(value: Any, wanted: Any) -> bool:
    """Whether a JSON value stands somewhere in another one."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return bool(value == wanted) or any(holds(one, wanted) for one in inner)


@pytest.mark.parametrize("size", [7, 101, 65536])
@pytest.mark.parametrize("vendor", STREAMS)
async def test_the_stream_of_a_vendor(vendor: str, size: int) -> None:
    wanted = STREAMS[vendor]
    given = request(user("read it"))
    async with played(wanted.body, size) as root:
        url = root if wanted.api == "anthropic" else f"{root}/v1"
        client = build(ModelSpec(provider="house", api=wanted.api, model="m", base_url=url, api_keys=("sk-test",)))
        try:
            parts: list[StreamPart] = [part async for part in client.stream(given)]
        finally:
            await client.close()
    answer = parts[-1]
    assert isinstance(answer, Answer)
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == answer.message.text == wanted.text
    assert "".join(part.text for part in parts if isinstance(part, ThinkingDelta)) == wanted.thinking
    calls = answer.message.tool_calls
    assert tuple((made.name, json.loads(made.arguments)) for made in calls) == wanted.calls
    assert len({made.call_id for made in calls} - {""}) == len(calls), "each call has an id of its own"
    assert not wanted.ids or tuple(made.call_id for made in calls) == wanted.ids
    assert (answer.stop_reason, answer.usage) == (wanted.stop, wanted.usage)
    spec = ModelSpec(provider="house", api=wanted.api, model="m", base_url=wanted.url)
    after = results(*((made.call_id, "done") for made in calls)) if calls else user("go on")
    body = BODY_OF[wanted.api](request(user("read it"), answer.message, after), spec)
    for item in wanted.back:
        assert holds(body, item), "it is sent back as it came"
    other = ModelSpec(provider="house", api=wanted.api, model="another", base_url=wanted.url)
    body = BODY_OF[wanted.api](request(user("read it"), answer.message, after), other)
    assert not any(holds(body, item) for item in wanted.back), "another model gets none of it"
