"""What every model client must do, against its provider's stand-in, through the real SDK and real connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import ClientSession

from agent.errors import ErrorKind
from agent.message import Message, Text, ToolResult
from agent.models import sdk
from agent.models.base import Answer, ArgumentsDelta, ModelApi, ModelClient, TextDelta
from tests.agent.models.makers import PNG, READ, WRITE, request, user
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.model_server import ModelServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.proxy import FaultProxy
from tests.standins.responses_server import ResponsesServer
from tests.standins.script import Break, Call, Fail, Hang, Ping, Say, Stop, Think
from tests.wire.model_clients import KEY, ask, client_of, failure, listen

SERVERS: dict[ModelApi, type[ModelServer]] = {
    "anthropic": AnthropicServer,
    "openai-chat": OpenAIServer,
    "openai-responses": ResponsesServer,
}
CUTS: dict[ModelApi, tuple[int, ...]] = {
    "anthropic": (0, 50, 200, 600, 1000),
    "openai-chat": (0, 50, 200, 400, 600),
    "openai-responses": (0, 50, 200, 600, 1500),
}
"""Bytes of an answer, headers and all, of which none is the whole."""
FORBIDDEN: dict[ModelApi, object] = {"anthropic": {"type": "none"}, "openai-chat": "none", "openai-responses": "none"}


@pytest.fixture(
    params=[
        pytest.param("anthropic", marks=pytest.mark.xdist_group("anthropic")),
        pytest.param("openai-chat", marks=pytest.mark.xdist_group("openai")),
        pytest.param("openai-responses", marks=pytest.mark.xdist_group("openai")),
    ]
)
def api(request: pytest.FixtureRequest) -> ModelApi:
    found: ModelApi = request.param
    return found


@pytest.fixture
async def server(api: ModelApi) -> AsyncIterator[ModelServer]:
    async with SERVERS[api](keys=[KEY]) as server:
        yield server


@pytest.fixture
async def client(api: ModelApi, server: ModelServer) -> AsyncIterator[ModelClient]:
    client = client_of(api, server.url)
    yield client
    await client.close()


async def test_words(server: ModelServer, client: ModelClient) -> None:
    server.add(Say("Hello 👩‍👩‍👧 there"), Ping())
    parts = await listen(client, request(user("hi")))
    answer = parts[-1]
    assert isinstance(answer, Answer)
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "Hello 👩‍👩‍👧 there"
    assert (answer.message.parts, answer.stop_reason) == ((Text("Hello 👩‍👩‍👧 there"),), "end")
    assert answer.usage.input > 0
    assert answer.usage.output > 0


async def test_a_conversation_with_calls_and_images_is_accepted_and_its_prefix_stays(
    api: ModelApi, server: ModelServer, client: ModelClient
) -> None:
    """Parts come in the order of the answer; arguments that were cut off are kept, and sent back, as written."""
    server.add(Say("I look."), Call("read", {"path": "ü"}), Call("write"))
    server.add(Call("read", '{"path": "unfinished'), Stop("max_tokens"))
    server.add(Say("It says A."))
    server.add("Goodbye.")
    talk: list[Message] = [user("look", PNG)]
    stops = []
    for _ in range(3):
        answer = await ask(client, *talk)
        stops.append(answer.stop_reason)
        talk.append(answer.message)
        if answer.message.tool_calls:
            made = (ToolResult(call.call_id, call.name, "A", images=(PNG,)) for call in answer.message.tool_calls)
            talk.append(Message("tool", tuple(made)))
    assert stops == ["tool_use", "max_output", "end"]
    assert [part.type for part in talk[1].parts] == ["text", "tool_call", "tool_call"]
    assert [call.name for call in talk[1].tool_calls] == ["read", "write"]
    assert talk[3].tool_calls[0].arguments == '{"path": "unfinished'
    talk.append(user("thanks"))
    last = await ask(client, *talk, allow_calls=False)
    assert last.message.text == "Goodbye."
    assert server.requests[-1].body["tool_choice"] == FORBIDDEN[api]


@pytest.mark.parametrize(
    ("fail", "kind", "wait"),
    [
        (Fail(429, retry_after=2), ErrorKind.RATE_LIMIT, 2),
        (Fail(500), ErrorKind.OVERLOADED, None),
        (Fail(502, body=b"<html>bad gateway</html>"), ErrorKind.OVERLOADED, None),
        (Fail(200, body=b'{"error": {"message": "Rate limit exceeded", "code": 429}}'), ErrorKind.RATE_LIMIT, None),
        (Fail(200, body=b"<html>log in</html>"), ErrorKind.NETWORK, None),
        (Fail(503), ErrorKind.OVERLOADED, None),
        (Fail(402), ErrorKind.BILLING, None),
        (Fail(413), ErrorKind.CONTEXT_OVERFLOW, None),
        (Fail(504), ErrorKind.TIMEOUT, None),
        (Fail(401, message=f"Incorrect API key provided: {KEY}"), ErrorKind.AUTH, None),
    ],
)
async def test_refused_requests_are_made_once(
    server: ModelServer, client: ModelClient, fail: Fail, kind: ErrorKind, wait: float | None
) -> None:
    server.add(fail)
    error = await failure(client)
    assert (error.kind, error.retry_after, server.count) == (kind, wait, 1)


async def test_a_wrong_key(server: ModelServer, client: ModelClient) -> None:
    server.keys.clear()
    assert (await failure(client)).kind is ErrorKind.AUTH


async def test_an_error_in_the_middle(server: ModelServer, client: ModelClient) -> None:
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
    server: ModelServer, client: ModelClient, parts: list[Any], words: str, how: Any
) -> None:
    server.add(*(Break(part.after_chunks, how) if isinstance(part, Break) else part for part in parts))
    said: list[str] = []
    assert (await failure(client, said)).kind is ErrorKind.NETWORK
    assert words.startswith("".join(said))  # a reset may overtake words that are under way
    assert how == "reset" or "".join(said) == words
    assert server.count == 1
    server.add("whole")
    assert (await ask(client, user("again"))).message.text == "whole"


async def test_nobody_listens(api: ModelApi, server: ModelServer) -> None:
    await server.stop()
    client = client_of(api, server.url)
    assert (await failure(client)).kind is ErrorKind.NETWORK
    await client.close()


async def test_cut_in_the_request_and_at_every_part_of_the_answer(api: ModelApi, server: ModelServer) -> None:
    server.default = lambda request: "one two three"
    for after in CUTS[api]:
        async with FaultProxy(server.port) as proxy:
            client = client_of(api, f"http://127.0.0.1:{proxy.port}")
            proxy.cut_answer(after=after)
            assert (await failure(client)).kind is ErrorKind.NETWORK
            await client.close()
    async with FaultProxy(server.port) as proxy:
        client = client_of(api, f"http://127.0.0.1:{proxy.port}")
        proxy.cut_request(after=100)
        assert (await failure(client)).kind is ErrorKind.NETWORK
        await client.close()


async def test_closing_the_stream_closes_the_connection(server: ModelServer, client: ModelClient) -> None:
    silence = Hang()
    server.add(Say("one"), silence)
    parts: Any = client.stream(request(user("hi")))
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextDelta):
                break
        await silence.entered()
    await server.until(lambda: server.requests[0].disconnected, "end of the connection")


async def test_cancelling_a_silent_call_closes_the_connection(server: ModelServer, client: ModelClient) -> None:
    silence = Hang()
    server.add(silence)
    task = asyncio.create_task(listen(client, request(user("hi"))))
    await silence.entered()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.until(lambda: server.requests[0].disconnected, "end of the connection")


async def test_connections_are_used_again_by_a_caller_that_stops_at_the_answer(
    api: ModelApi, server: ModelServer
) -> None:
    async with FaultProxy(server.port) as proxy:
        client = client_of(api, f"http://127.0.0.1:{proxy.port}")
        for _ in range(3):
            parts: Any = client.stream(request(user("hi")))
            async with aclosing(parts):
                async for part in parts:
                    if isinstance(part, Answer):
                        break
        assert (len(proxy.requests), proxy.connections) == (3, 1)
        await client.close()


ENDLESS = ["x" * 16_384] * 1_000


@pytest.mark.parametrize("sort", [Say, Call])
async def test_an_answer_without_end_is_cut_and_what_was_said_stays(
    server: ModelServer, client: ModelClient, sort: type[Say] | type[Call]
) -> None:
    """16 MB: what is not read stays with the server, whose connection ends."""
    words = "".join(ENDLESS)
    part = Say(words, chunks=ENDLESS) if sort is Say else Call("write", words, chunks=ENDLESS)
    server.add(Say("I write. "), part)
    parts = await listen(client, request(user("hi")))
    answer = parts[-1]
    assert isinstance(answer, Answer)
    most = sdk.MOST_CHARACTERS if sort is Say else sdk.MOST_ARGUMENTS
    streamed = sum(len(part.text) for part in parts if isinstance(part, TextDelta | ArgumentsDelta))
    assert most < streamed < most + 200_000
    assert answer.stop_reason == "max_output"
    assert answer.message.text == "".join(part.text for part in parts if isinstance(part, TextDelta))
    assert answer.message.text.startswith("I write. ")
    await server.until(lambda: server.requests[0].disconnected, "end of the connection")
    assert server.requests[0].chunks < len(ENDLESS)


async def test_calls_without_end_are_cut(server: ModelServer, client: ModelClient) -> None:
    large = "x" * 900_000
    server.add(*(Call("write", large, chunks=10) for _ in range(9)))
    answer = await ask(client, user("hi"))
    assert answer.stop_reason == "max_output"
    held = sum(len(call.arguments) for call in answer.message.tool_calls)
    assert sdk.MOST_CHARACTERS < held < sdk.MOST_CHARACTERS + 200_000


async def test_a_large_file_is_written_in_one_call(server: ModelServer, client: ModelClient) -> None:
    server.add(Call("write", {"path": "a", "content": "x" * 1_000_000}, chunks=100))
    answer = await ask(client, user("hi"))
    assert (answer.stop_reason, len(answer.message.tool_calls[0].arguments) > 1_000_000) == ("tool_use", True)


@pytest.mark.parametrize(("name", "most"), [("MOST_BYTES", 20_000), ("MOST_EVENT_BYTES", 5_000)])
async def test_bytes_that_say_nothing_are_bounded(
    server: ModelServer, client: ModelClient, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(sdk, name, most)
    silent = [Ping()] * 2_000 if name == "MOST_BYTES" else [Say("x" * 1_000_000, chunks=1)]
    server.add(Say("one "), *silent, Say("two"))
    answer = await ask(client, user("hi"))
    assert (answer.message.text, answer.stop_reason) == ("one ", "max_output")


async def test_many_events_may_be_longer_than_one(
    api: ModelApi, server: ModelServer, client: ModelClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = 500_000 if api == "openai-responses" else 0  # the last events have all of the answer once more
    monkeypatch.setattr(sdk, "MOST_EVENT_BYTES", 200_000 + whole)
    server.add(Say("x" * 400_000, chunks=400))
    answer = await ask(client, user("hi"))
    assert (len(answer.message.text), answer.stop_reason) == (400_000, "end")


async def test_many_at_once(server: ModelServer, client: ModelClient) -> None:
    answers = await asyncio.gather(*(ask(client, user(f"number {n}")) for n in range(20)))
    assert [answer.message.text for answer in answers] == [f"echo: number {n}" for n in range(20)]


async def test_half_characters_and_odd_text_survive(server: ModelServer, client: ModelClient) -> None:
    await ask(client, user("a lone \ud83d surrogate, \u2028 and \x00"), tools=(READ, WRITE))
    assert server.requests[0].last_user_text == "a lone ? surrogate, \u2028 and \x00"


async def test_encrypted_reasoning_is_taken_back_by_the_responses_api() -> None:
    async with ResponsesServer(keys=[KEY]) as server:
        client = client_of("openai-responses", server.url)
        server.add(Think("I look first."), Call("read", {"path": "a"}))
        server.add(Think("It says A."), Say("It says A."))
        server.add("You are welcome.")
        talk = [user("look")]
        first = await ask(client, *talk, thinking="high")
        result = ToolResult(first.message.tool_calls[0].call_id, "read", "A", images=(PNG,))
        talk += [first.message, Message("tool", (result,))]
        talk += [(await ask(client, *talk, thinking="high")).message, user("thanks")]
        assert (await ask(client, *talk, thinking="high")).message.text == "You are welcome."
        kinds = [item.get("type", item.get("role")) for item in server.requests[-1].body["input"]]
        reasoned = ["reasoning", "function_call", "function_call_output", "reasoning", "assistant"]
        assert kinds == ["user", *reasoned, "user"]
        server.check()
        await client.close()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"store": True}, "store=false"),
        ({"max_tokens": 100}, "max_tokens"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": "A"}]}, "No tool call found"),
        ({"input": [{"role": "user", "content": []}]}, "content"),
        ({"input": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}, "type"),
        ({"input": [{"type": "function_call", "call_id": "x", "name": "read", "arguments": "{}"}]}, "No tool output"),
        (
            {"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}]},
            "required following item",
        ),
        ({"tools": [{"type": "function", "function": {"name": "read"}}]}, "tools"),
    ],
)
async def test_the_stand_in_refuses_what_the_responses_api_refuses(change: dict[str, Any], said: str) -> None:
    async with ResponsesServer(keys=[KEY]) as server, ClientSession() as session:
        server.tolerate("malformed")
        body = {"model": "gpt-5.5", "input": [{"role": "user", "content": "hi"}], "store": False, "stream": True}
        head = {"Authorization": f"Bearer {KEY}"}
        async with session.post(f"{server.url}/v1/responses", json=body | change, headers=head) as answer:
            assert answer.status == 400
            assert said in await answer.text()
