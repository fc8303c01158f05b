"""The OpenAI chat client against the stand-ins for OpenAI and Ollama, through the real SDK and real connections."""

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Message, Text, Thinking, ToolResult
from agent.models.base import Answer, ModelClient, ModelRequest, StreamPart, TextDelta
from agent.models.registry import build
from agent.models.spec import ModelSpec
from tests.agent.models.makers import PNG, request, user
from tests.standins.openai_server import OllamaServer, OpenAIServer
from tests.standins.proxy import FaultProxy
from tests.standins.script import Break, Call, Fail, Hang, Ping, Say, Stop, Think

pytestmark = pytest.mark.xdist_group("openai")


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(keys=["secret-test-key"]) as server:
        yield server


@pytest.fixture
async def client(server: OpenAIServer) -> AsyncIterator[ModelClient]:
    client = client_of(server.base_url)
    yield client
    await client.close()


def client_of(base_url: str, model: str = "gpt-5.1", keys: tuple[str, ...] = ("secret-test-key",)) -> ModelClient:
    return build(ModelSpec(provider="house", api="openai-chat", model=model, base_url=base_url, api_keys=keys))


async def listen(client: ModelClient, asked: ModelRequest) -> list[StreamPart]:
    return [part async for part in client.stream(asked)]


async def ask(client: ModelClient, *messages: Message, **options: Any) -> Answer:
    answer = (await listen(client, request(*messages, **options)))[-1]
    assert isinstance(answer, Answer)
    return answer


async def failure(client: ModelClient, said: list[str] | None = None) -> ModelError:
    """The error of one call; the words that came before it go to `said`."""

    async def call() -> None:
        async for part in client.stream(request(user("hi"))):
            if said is not None and isinstance(part, TextDelta):
                said.append(part.text)

    with pytest.raises(ModelError) as raised:
        await call()
    assert "secret-test-key" not in "".join(traceback.format_exception(raised.value))
    return raised.value


async def test_words(server: OpenAIServer, client: ModelClient) -> None:
    server.add(Think("hidden"), Say("Hello 👩‍👩‍👧 there"), Ping())
    parts = await listen(client, request(user("hi")))
    answer = parts[-1]
    assert isinstance(answer, Answer)
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "Hello 👩‍👩‍👧 there"
    assert (answer.message.parts, answer.stop_reason) == ((Text("Hello 👩‍👩‍👧 there"),), "end")
    assert answer.usage.input > 0
    assert answer.usage.output > 0


async def test_a_conversation_with_calls_and_images_is_accepted_and_its_prefix_stays(
    server: OpenAIServer, client: ModelClient
) -> None:
    server.add(Say("I look."), Call("read", {"path": "ü"}), Call("write"))
    server.add(Call("read", '{"path": "unfinished'), Stop("max_tokens"))
    server.add(Say("It says A."))
    server.add("Goodbye.")
    talk: list[Message] = [user("look", PNG)]
    for _ in range(3):
        answer = await ask(client, *talk, thinking="x-high")
        talk.append(answer.message)
        if answer.message.tool_calls:
            made = (ToolResult(call.call_id, call.name, "A", images=(PNG,)) for call in answer.message.tool_calls)
            talk.append(Message("tool", tuple(made)))
    assert [call.name for call in talk[1].tool_calls] == ["read", "write"]
    assert talk[3].tool_calls[0].arguments == '{"path": "unfinished'
    talk.append(user("thanks"))
    last = await ask(client, *talk, thinking="x-high", allow_calls=False)
    assert last.message.text == "Goodbye."
    assert (server.requests[-1].body["tool_choice"], server.requests[-1].body["reasoning_effort"]) == ("none", "xhigh")


async def test_what_was_read_before_comes_from_the_cache(server: OpenAIServer, client: ModelClient) -> None:
    talk = [user("a long text " * 1000)]
    first = await ask(client, *talk)
    second = await ask(client, *talk, first.message, user("more"))
    assert (first.usage.cache_read, second.usage.cache_read > 2500) == (0, True)
    assert second.usage.input > second.usage.cache_read


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_a_compatible_server_that_shows_its_reasoning(field: Any) -> None:
    async with OpenAIServer(reasoning=field, keys=["secret-test-key"]) as server:
        client = client_of(server.base_url, "deep-model")
        server.add(Think("Let me see."), Say("ok"))
        answer = await ask(client, user("hi"))
        assert answer.message.parts == (Thinking("Let me see."), Text("ok"))
        await ask(client, user("hi"), answer.message, user("more"))
        assert server.requests[0].body["max_tokens"] == 4096
        await client.close()


async def test_ollama() -> None:
    async with OllamaServer(models=["qwen3:8b"]) as server:
        client = client_of(server.base_url, "qwen3:8b", keys=())
        server.add(Think("hm"), Say("I look."), Call("read", {"path": "a"}), Call("read", {"path": "b"}))
        server.add("done")
        answer = await ask(client, user("go"))
        calls = answer.message.tool_calls
        assert [call.arguments for call in calls] == ['{"path": "a"}', '{"path": "b"}']
        assert (len({call.call_id for call in calls}), answer.stop_reason) == (2, "tool_use")
        made = tuple(ToolResult(call.call_id, call.name, "A") for call in calls)
        assert (await ask(client, user("go"), answer.message, Message("tool", made))).message.text == "done"
        wrong = client_of(server.base_url, "missing", keys=())
        error = await failure(wrong)
        assert (error.kind, error.status) == (ErrorKind.MODEL_NOT_FOUND, 404)
        await wrong.close()
        await client.close()


@pytest.mark.parametrize(
    ("fail", "kind", "wait"),
    [
        (Fail(429, retry_after=1.5), ErrorKind.RATE_LIMIT, 1.5),
        (Fail(429, "insufficient_quota"), ErrorKind.BILLING, None),
        (Fail(500), ErrorKind.OVERLOADED, None),
        (Fail(502, body=b"<html>bad gateway</html>"), ErrorKind.OVERLOADED, None),
        (Fail(503), ErrorKind.OVERLOADED, None),
        (Fail(400, "context_length_exceeded"), ErrorKind.CONTEXT_OVERFLOW, None),
        (Fail(400, "content_filter"), ErrorKind.CONTENT_FILTER, None),
        (Fail(401, message="Incorrect API key provided: secret-test-key"), ErrorKind.AUTH, None),
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
    client = client_of(server.base_url, "gpt-4o")
    with pytest.raises(ModelError) as raised:
        await ask(client, user("hi"), thinking="low")
    assert raised.value.kind is ErrorKind.THINKING_UNSUPPORTED
    await client.close()


async def test_an_error_in_the_middle(server: OpenAIServer, client: ModelClient) -> None:
    server.add("half of it", Fail(503))
    said: list[str] = []
    assert (await failure(client, said)).kind is ErrorKind.OVERLOADED
    assert "".join(said) == "half of it"


@pytest.mark.parametrize("how", ["cut", "reset", "end"])
@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Break()], ""),
        ([Say("one two three"), Break(after_chunks=2)], "one two "),
        ([Say("one "), Call("read", {"path": "abc"}), Break(after_chunks=2)], "one "),
        ([Say("one"), Break()], "one"),
    ],
)
async def test_a_broken_connection(
    server: OpenAIServer, client: ModelClient, parts: list[Any], words: str, how: Any
) -> None:
    server.add(*(Break(part.after_chunks, how) if isinstance(part, Break) else part for part in parts))
    said: list[str] = []
    assert (await failure(client, said)).kind is ErrorKind.NETWORK
    assert words.startswith("".join(said))  # a reset may overtake words that are under way
    assert how == "reset" or "".join(said) == words
    assert server.count == 1
    server.add("whole")
    assert (await ask(client, user("again"))).message.text == "whole"


async def test_broken_after_the_finish_reason_is_a_whole_answer(server: OpenAIServer) -> None:
    """Only usage and `[DONE]` are missing then; the words are not asked for again."""
    server.tolerate("prefix changed")  # by the raw request that measures
    async with FaultProxy(server.port) as proxy:
        client = client_of(f"http://127.0.0.1:{proxy.port}/v1")
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


async def test_nobody_listens(server: OpenAIServer) -> None:
    port = server.port
    await server.stop()
    client = client_of(f"http://127.0.0.1:{port}/v1")
    assert (await failure(client)).kind is ErrorKind.NETWORK
    await client.close()


async def test_closing_the_stream_closes_the_connection(server: OpenAIServer, client: ModelClient) -> None:
    silence = Hang()
    server.add(Say("one"), silence)
    parts: Any = client.stream(request(user("hi")))
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextDelta):
                break
        await silence.entered()
    await server.until(lambda: server.requests[0].disconnected, "end of the connection")


async def test_connections_are_used_again_by_a_caller_that_stops_at_the_answer(server: OpenAIServer) -> None:
    async with FaultProxy(server.port) as proxy:
        client = client_of(f"http://127.0.0.1:{proxy.port}/v1")
        for _ in range(3):
            parts: Any = client.stream(request(user("hi")))
            async with aclosing(parts):
                async for part in parts:
                    if isinstance(part, Answer):
                        break
        assert (len(proxy.requests), proxy.connections) == (3, 1)
        await client.close()
