"""What only the Anthropic client does, against the stand-in, through the real SDK and real connections."""

from collections.abc import AsyncIterator

import pytest

from agent.errors import ErrorKind
from agent.message import Image, Message, Thinking, ToolResult
from agent.models.base import Answer, ModelClient, ThinkingDelta
from tests.agent.models.makers import PNG, request, user
from tests.standins.anthropic_server import AnthropicServer
from tests.standins.script import Call, Fail, Say, Stop, Think
from tests.wire.model_clients import KEY, ask, client_of, failure, listen

pytestmark = pytest.mark.xdist_group("anthropic")


@pytest.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer(keys=[KEY]) as server:
        yield server


@pytest.fixture
async def client(server: AnthropicServer) -> AsyncIterator[ModelClient]:
    client = client_of("anthropic", server.url)
    yield client
    await client.close()


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
    old = client_of("anthropic", server.url, "claude-haiku-4-5")
    server.add(Think("hm"), Call("read", {}))
    server.add(Think("hm"), Say("A"))
    server.add("B")
    first = await ask(old, user("go"), thinking="low")
    result = Message("tool", (ToolResult(first.message.tool_calls[0].call_id, "read", "A"),))
    await ask(old, user("go"), first.message, result, thinking="low")
    assert server.requests[-1].body["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    await old.close()
    other = client_of("anthropic", server.url, "claude-sonnet-4-5")
    server.tolerate("prefix changed: 'go': request 2 → 3")
    plain = Message("assistant", (*first.message.parts[1:],), "elsewhere/model")
    await ask(other, user("go"), plain, Message("tool", result.parts), thinking="low")
    assert "thinking" not in server.requests[-1].body
    await other.close()


async def test_a_refusal(server: AnthropicServer, client: ModelClient) -> None:
    server.add(Say("No."), Stop("refusal"))
    assert (await ask(client, user("go"))).stop_reason == "refusal"


@pytest.mark.parametrize(
    ("fail", "kind"),
    [
        (Fail(529), ErrorKind.OVERLOADED),
        (Fail(401, message=f"invalid x-api-key: {KEY}"), ErrorKind.AUTH),
    ],
)
async def test_refused_requests_are_made_once(
    server: AnthropicServer, client: ModelClient, fail: Fail, kind: ErrorKind
) -> None:
    server.add(fail)
    assert ((await failure(client)).kind, server.count) == (kind, 1)


async def test_too_long(server: AnthropicServer, client: ModelClient) -> None:
    server.tolerate("prompt is too long")
    server.abilities = type(server.abilities)(context_window=10)
    assert (await failure(client)).kind is ErrorKind.CONTEXT_OVERFLOW


async def test_hidden_thinking_is_kept_too(server: AnthropicServer) -> None:
    client = client_of("anthropic", server.url, params=(("thinking", {"type": "adaptive", "display": "omitted"}),))
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
