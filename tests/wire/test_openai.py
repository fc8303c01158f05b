"""What only the OpenAI chat client does, against the stand-ins for OpenAI and Ollama, through the real SDK."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Message, Text, Thinking, ToolResult
from agent.models.base import ModelClient
from tests.agent.models.makers import user
from tests.standins.ollama_server import OllamaServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.proxy import FaultProxy
from tests.standins.script import Call, Fail, Say, Think
from tests.wire.model_clients import KEY, ask, client_of, failure

pytestmark = pytest.mark.xdist_group("openai")


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(keys=[KEY]) as server:
        yield server


@pytest.fixture
async def client(server: OpenAIServer) -> AsyncIterator[ModelClient]:
    client = client_of("openai-chat", server.url)
    yield client
    await client.close()


async def test_hidden_reasoning_and_its_effort(server: OpenAIServer, client: ModelClient) -> None:
    server.add(Think("hidden"), Say("Hello"))
    assert (await ask(client, user("hi"), thinking="x-high")).message.parts == (Text("Hello"),)
    assert server.requests[-1].body["reasoning_effort"] == "xhigh"


async def test_what_was_read_before_comes_from_the_cache(server: OpenAIServer, client: ModelClient) -> None:
    talk = [user("a long text " * 1000)]
    first = await ask(client, *talk)
    second = await ask(client, *talk, first.message, user("more"))
    assert (first.usage.cache_read, second.usage.cache_read > 2500) == (0, True)
    assert second.usage.input > second.usage.cache_read


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_a_compatible_server_that_shows_its_reasoning(field: Any) -> None:
    async with OpenAIServer(reasoning=field, keys=[KEY]) as server:
        client = client_of("openai-chat", server.url, "deep-model")
        server.add(Think("Let me see."), Say("ok"))
        answer = await ask(client, user("hi"))
        assert answer.message.parts == (Thinking("Let me see."), Text("ok"))
        await ask(client, user("hi"), answer.message, user("more"))
        assert server.requests[0].body["max_tokens"] == 4096
        await client.close()


async def test_ollama() -> None:
    async with OllamaServer(models=["qwen3:8b"]) as server:
        client = client_of("openai-chat", server.url, "qwen3:8b", keys=())
        server.add(Think("hm"), Say("I look."), Call("read", {"path": "a"}), Call("read", {"path": "b"}))
        server.add("done")
        answer = await ask(client, user("go"))
        calls = answer.message.tool_calls
        assert [call.arguments for call in calls] == ['{"path": "a"}', '{"path": "b"}']
        assert (len({call.call_id for call in calls}), answer.stop_reason) == (2, "tool_use")
        made = tuple(ToolResult(call.call_id, call.name, "A") for call in calls)
        assert (await ask(client, user("go"), answer.message, Message("tool", made))).message.text == "done"
        wrong = client_of("openai-chat", server.url, "missing", keys=())
        error = await failure(wrong)
        assert (error.kind, error.status) == (ErrorKind.MODEL_NOT_FOUND, 404)
        await wrong.close()
        await client.close()


@pytest.mark.parametrize(
    ("fail", "kind", "wait"),
    [
        (Fail(429, retry_after=1.5), ErrorKind.RATE_LIMIT, 1.5),
        (Fail(429, "insufficient_quota"), ErrorKind.BILLING, None),
        (Fail(400, "context_length_exceeded"), ErrorKind.CONTEXT_OVERFLOW, None),
        (Fail(400, "content_filter"), ErrorKind.CONTENT_FILTER, None),
    ],
)
async def test_refused_requests_are_made_once(
    server: OpenAIServer, client: ModelClient, fail: Fail, kind: ErrorKind, wait: float | None
) -> None:
    server.add(fail)
    error = await failure(client)
    assert (error.kind, error.retry_after, server.count) == (kind, wait, 1)


async def test_effort_that_a_model_does_not_know(server: OpenAIServer) -> None:
    server.tolerate("is malformed")
    client = client_of("openai-chat", server.url, "gpt-4o")
    with pytest.raises(ModelError) as raised:
        await ask(client, user("hi"), thinking="low")
    assert raised.value.kind is ErrorKind.THINKING_UNSUPPORTED
    await client.close()


async def test_broken_after_the_finish_reason_is_a_whole_answer(server: OpenAIServer) -> None:
    """Only usage and `[DONE]` are missing then; the words are not asked for again."""
    server.tolerate("prefix changed")  # by the raw request that measures
    async with FaultProxy(server.port) as proxy:
        client = client_of("openai-chat", f"http://127.0.0.1:{proxy.port}")
        server.add("whole")
        size = await _size_until(server, b'"finish_reason": "stop"', b'"finish_reason":"stop"')
        proxy.cut_answer(after=size)
        server.add("whole")
        answer = await ask(client, user("hi"))
        assert (answer.message.text, answer.stop_reason) == ("whole", "end")
        await client.close()


async def _size_until(server: OpenAIServer, *marks: bytes) -> int:
    """How many bytes of an answer lead up to the end of the chunk with the finish reason."""
    import json

    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    talk = [{"role": "user", "content": "hi"}]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    body = json.dumps({"model": "gpt-5.1", "messages": talk, **options}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret-test-key\r\n"
    writer.write(
        head + b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    )
    writer.write(body)
    got = await reader.read()
    writer.close()
    found = max(got.find(mark) for mark in marks)
    assert found > 0
    return got.index(b"\n\n", found) + 2
