"""The Anthropic client against the stand-in, through the real SDK and real connections."""

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from agent.errors import ErrorKind, ModelError
from agent.message import Image, Message, Text, Thinking, ToolResult
from agent.models.base import Answer, ModelClient, ModelRequest, StreamPart, TextDelta, ThinkingDelta
from agent.models.registry import build
from agent.models.spec import ModelSpec
from tests.agent.models.makers import PNG, READ, WRITE, request, user
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.proxy import FaultProxy
from tests.standins.script import Break, Call, Fail, Hang, Ping, Say, Stop, Think

pytestmark = pytest.mark.xdist_group("anthropic")


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer(keys=["secret-test-key"]) as server:
        yield server


@pytest.fixture
async def client(server: AnthropicServer) -> AsyncIterator[ModelClient]:
    client = client_of(server.url)
    yield client
    await client.close()


def client_of(url: str, model: str = "claude-opus-5-5", **options: Any) -> ModelClient:
    return build(
        ModelSpec(
            provider="house", api="anthropic", model=model, base_url=url, api_keys=("secret-test-key",), **options
        )
    )


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


async def test_words(server: AnthropicServer, client: ModelClient) -> None:
    server.add(Say("Hello 👩‍👩‍👧 there"), Ping())
    parts = await listen(client, request(user("hi")))
    answer = parts[-1]
    assert isinstance(answer, Answer)
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "Hello 👩‍👩‍👧 there"
    assert (answer.message.parts, answer.stop_reason) == ((Text("Hello 👩‍👩‍👧 there"),), "end")
    assert answer.usage.input > 0
    assert server.requests[0].headers["x-api-key"] == "secret-test-key"


async def test_a_conversation_with_thinking_calls_and_images_is_accepted_and_its_prefix_stays(
    server: AnthropicServer, client: ModelClient
) -> None:
    server.add(
        Think("Let me see."), Think("x", redacted=True), Say("I look."), Call("read", {"path": "ü"}), Call("write")
    )
    server.add(Think("And on."), Call("read", {}))
    server.add(Think("Done."), Say("It says A."))
    server.add("Goodbye.")
    talk: list[Message] = [user("look", Image("image/png", PNG.data))]
    for _ in range(3):
        answer = await ask(client, *talk, thinking="high")
        talk.append(answer.message)
        if answer.message.tool_calls:
            made = (ToolResult(call.call_id, call.name, "A", images=(PNG,)) for call in answer.message.tool_calls)
            talk.append(Message("tool", tuple(made)))
    thought = talk[1].parts[:2]
    assert all(isinstance(part, Thinking) for part in thought)
    assert [bool(part.redacted) for part in thought if isinstance(part, Thinking)] == [False, True]
    talk.append(user("thanks"))
    last = await ask(client, *talk, thinking="high", allow_calls=False)
    assert last.message.text == "Goodbye."
    assert server.requests[-1].body["tool_choice"] == {"type": "none"}


async def test_what_was_read_before_comes_from_the_cache(server: AnthropicServer, client: ModelClient) -> None:
    long = "a long text " * 1000
    server.add("one")
    server.add(*(Call("read", {"path": str(n)}) for n in range(25)))
    server.add("three")
    talk = [user(long)]
    answers = []
    for _ in range(3):
        answers.append(answer := await ask(client, *talk))
        talk.append(answer.message)
        made = tuple(ToolResult(call.call_id, call.name, "A") for call in answer.message.tool_calls)
        talk.append(Message("tool", made) if made else user("more"))
    assert [answer.usage.cache_read > 2900 for answer in answers] == [False, True, True]
    assert answers[0].usage.cache_write > 2900
    assert all(answer.usage.input >= answer.usage.cache_read + answer.usage.cache_write for answer in answers)


async def test_thinking_with_a_budget_and_of_another_model(server: AnthropicServer) -> None:
    old = client_of(server.url, "claude-haiku-4-5")
    server.add(Think("hm"), Call("read", {}))
    server.add(Think("hm"), Say("A"))
    server.add("B")
    first = await ask(old, user("go"), thinking="low")
    result = Message("tool", (ToolResult(first.message.tool_calls[0].call_id, "read", "A"),))
    await ask(old, user("go"), first.message, result, thinking="low")
    assert server.requests[-1].body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    await old.close()
    other = client_of(server.url, "claude-sonnet-4-5")
    server.tolerate("prefix changed: 'go': request 2 → 3")
    plain = Message("assistant", (*first.message.parts[1:],), "elsewhere/model")
    await ask(other, user("go"), plain, Message("tool", result.parts), thinking="low")
    assert "thinking" not in server.requests[-1].body
    await other.close()


async def test_malformed_arguments_are_kept_as_written(server: AnthropicServer, client: ModelClient) -> None:
    server.add(Call("read", '{"path": "a'), Stop("max_tokens"))
    server.add("sorry")
    answer = await ask(client, user("go"))
    call = answer.message.tool_calls[0]
    assert (call.arguments, answer.stop_reason) == ('{"path": "a', "max_output")
    await ask(client, user("go"), answer.message, Message("tool", (ToolResult(call.call_id, "read", "?", True),)))


async def test_a_refusal(server: AnthropicServer, client: ModelClient) -> None:
    server.add(Say("No."), Stop("refusal"))
    assert (await ask(client, user("go"))).stop_reason == "refusal"


@pytest.mark.parametrize(
    ("fail", "kind", "wait"),
    [
        (Fail(429, retry_after=2), ErrorKind.RATE_LIMIT, 2),
        (Fail(500), ErrorKind.OVERLOADED, None),
        (Fail(502, body=b"<html>bad gateway</html>"), ErrorKind.OVERLOADED, None),
        (Fail(529), ErrorKind.OVERLOADED, None),
        (Fail(402), ErrorKind.BILLING, None),
        (Fail(413), ErrorKind.CONTEXT_OVERFLOW, None),
        (Fail(504), ErrorKind.TIMEOUT, None),
        (Fail(401, message="invalid x-api-key: secret-test-key"), ErrorKind.AUTH, None),
    ],
)
async def test_refused_requests_are_made_once(
    server: AnthropicServer, client: ModelClient, fail: Fail, kind: ErrorKind, wait: float | None
) -> None:
    server.add(fail)
    error = await failure(client)
    assert (error.kind, error.retry_after, server.count) == (kind, wait, 1)


async def test_too_long_and_wrong_key(server: AnthropicServer, client: ModelClient) -> None:
    server.tolerate("prompt is too long")
    server.abilities = type(server.abilities)(context_window=10)
    assert (await failure(client)).kind is ErrorKind.CONTEXT_OVERFLOW
    server.keys.clear()
    assert (await failure(client)).kind is ErrorKind.AUTH


async def test_an_error_in_the_middle(server: AnthropicServer, client: ModelClient) -> None:
    server.add("half of it", Fail(529))
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
    server: AnthropicServer, client: ModelClient, parts: list[Any], words: str, how: Any
) -> None:
    server.add(*(Break(part.after_chunks, how) if isinstance(part, Break) else part for part in parts))
    said: list[str] = []
    assert (await failure(client, said)).kind is ErrorKind.NETWORK
    assert "".join(said) in (words, "") if how == "reset" else "".join(said) == words
    assert server.count == 1
    server.add("whole")
    assert (await ask(client, user("again"))).message.text == "whole"


async def test_nobody_listens(server: AnthropicServer) -> None:
    port = server.port
    await server.stop()
    client = client_of(f"http://127.0.0.1:{port}")
    assert (await failure(client)).kind is ErrorKind.NETWORK
    await client.close()


async def test_cut_in_the_request_and_at_every_part_of_the_answer(server: AnthropicServer) -> None:
    server.default = lambda request: "one two three"
    for after in (0, 50, 200, 600, 1000):
        async with FaultProxy(server.port) as proxy:
            client = client_of(f"http://127.0.0.1:{proxy.port}")
            proxy.cut_answer(after=after)
            assert (await failure(client)).kind is ErrorKind.NETWORK
            await client.close()
    async with FaultProxy(server.port) as proxy:
        client = client_of(f"http://127.0.0.1:{proxy.port}")
        proxy.cut_request(after=100)
        assert (await failure(client)).kind is ErrorKind.NETWORK
        await client.close()


async def test_closing_the_stream_closes_the_connection(server: AnthropicServer, client: ModelClient) -> None:
    silence = Hang()
    server.add(Say("one"), silence)
    parts: Any = client.stream(request(user("hi")))
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextDelta):
                break
        await silence.entered()
    await server.until(lambda: server.requests[0].disconnected, "end of the connection")


async def test_cancelling_a_silent_call_closes_the_connection(server: AnthropicServer, client: ModelClient) -> None:
    silence = Hang()
    server.add(silence)
    task = asyncio.create_task(listen(client, request(user("hi"))))
    await silence.entered()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.until(lambda: server.requests[0].disconnected, "end of the connection")


async def test_connections_are_used_again_by_a_caller_that_stops_at_the_answer(server: AnthropicServer) -> None:
    async with FaultProxy(server.port) as proxy:
        client = client_of(f"http://127.0.0.1:{proxy.port}")
        for _ in range(3):
            parts: Any = client.stream(request(user("hi")))
            async with aclosing(parts):
                async for part in parts:
                    if isinstance(part, Answer):
                        break
        assert (len(proxy.requests), proxy.connections) == (3, 1)
        await client.close()


async def test_many_at_once(server: AnthropicServer, client: ModelClient) -> None:
    answers = await asyncio.gather(*(ask(client, user(f"number {n}")) for n in range(20)))
    assert [answer.message.text for answer in answers] == [f"echo: number {n}" for n in range(20)]


async def test_half_characters_and_odd_text_survive(server: AnthropicServer, client: ModelClient) -> None:
    await ask(client, user("a lone \ud83d surrogate, \u2028 and \x00"), tools=(READ, WRITE))
    assert server.requests[0].last_user_text == "a lone ? surrogate, \u2028 and \x00"


async def test_hidden_thinking_is_kept_too(server: AnthropicServer) -> None:
    client = client_of(server.url, params=(("thinking", {"type": "adaptive", "display": "omitted"}),))
    server.add(Think("secret"), Call("read", {}))
    server.add("done")
    parts = await listen(client, request(user("go")))
    answer = parts[-1]
    assert isinstance(answer, Answer)
    assert not [part for part in parts if isinstance(part, ThinkingDelta)]
    result = Message("tool", (ToolResult(answer.message.tool_calls[0].call_id, "read", "A"),))
    await ask(client, user("go"), answer.message, result)
    assert server.requests[1].body["messages"][1]["content"][0]["thinking"] == ""
    await client.close()
