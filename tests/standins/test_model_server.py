"""The script language and the watch of the model stand-ins, over raw HTTP in both protocols."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from tests.standins.anthropic_server import AnthropicServer
from tests.standins.model_server import ModelServer
from tests.standins.openai_server import OpenAIServer
from tests.standins.request_log import Request
from tests.standins.script import Break, Call, Continuer, Fail, Gate, Hang, Say

Json = dict[str, Any]

HEADERS = {"x-api-key": "test-key", "anthropic-version": "2023-06-01", "authorization": "Bearer test-key"}


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Api:
    """One provider, called by hand."""

    server: ModelServer
    client: aiohttp.ClientSession

    def body(self, *messages: Json, **more: object) -> Json:
        talk = list(messages) or [{"role": "user", "content": "Hello"}]
        limit = {"max_tokens": 100} if isinstance(self.server, AnthropicServer) else {}
        return {"model": "model", "messages": talk, "stream": True, **limit, **more}

    def post(self, *messages: Json, **more: object) -> Any:
        body = self.body(*messages, **more)
        return self.client.post(self.server.url + self.server.path, json=body, headers=HEADERS)

    async def ask(self, *messages: Json, **more: object) -> tuple[int, str]:
        async with self.post(*messages, **more) as response:
            return response.status, await response.text()

    async def until_cut(self, *messages: Json, **more: object) -> str:
        """What arrives before the connection breaks; fails if it does not break."""
        got = b""
        try:
            async with self.post(*messages, **more) as response:
                async for chunk in response.content.iter_any():
                    got += chunk
        except aiohttp.ClientError:
            return got.decode()
        pytest.fail("the connection did not break")

    def text(self, stream: str) -> str:
        """The visible text of a stream."""
        said = ""
        for line in stream.splitlines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line.removeprefix("data: "))
            choices = event.get("choices") or [{"delta": event.get("delta") or {}}]
            said += choices[0]["delta"].get("content") or choices[0]["delta"].get("text") or ""
        return said


@pytest.fixture(params=[AnthropicServer, OpenAIServer])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    async with request.param(clock=Clock()) as server, aiohttp.ClientSession() as client:
        yield Api(server, client)


def said(role: str, text: str) -> Json:
    return {"role": role, "content": text}


async def test_answers_come_from_routes_then_the_queue_then_the_default(api: Api) -> None:
    api.server.add("queued")
    api.server.add(lambda request: f"computed from {request.last_user_text}")
    api.server.on("weather", Say("rain"))
    asked = ["Hello", "the weather", "the weather", "again"]
    answers = [api.text((await api.ask(said("user", text)))[1]) for text in asked]
    assert answers == ["queued", "rain", "computed from the weather", "echo: again"]
    assert (api.server.unused, api.server.count) == (0, 4)


async def test_a_request_is_kept_as_it_came(api: Api) -> None:
    body = json.dumps(api.body(system="x") if isinstance(api.server, AnthropicServer) else api.body(), indent=1)
    headers = {**HEADERS, "content-type": "application/json"}
    async with api.client.post(api.server.url + api.server.path, data=body, headers=headers) as response:
        await response.read()
    request = await api.server.wait_for(1)
    assert (request.raw.decode(), request.body) == (body, json.loads(body))
    assert (request.headers["X-API-Key"], request.at, request.model) == ("test-key", 100.0, "model")
    assert (request.status, request.finished, request.chunks) == (200, True, 2)


async def test_a_gate_lets_one_delta_pass_after_the_other(api: Api) -> None:
    gate = Gate()
    api.server.add(Say("one two three", gate=gate))
    async with api.post() as response:
        await gate.reached()
        gate.let(2)
        await gate.reached()
        assert api.server.requests[0].chunks == 2
        gate.open()
        assert api.text((await response.read()).decode()) == "one two three"


@pytest.mark.parametrize("how", ["cut", "reset"])
@pytest.mark.parametrize("count", [0, 1, 3])
async def test_a_break_cuts_after_so_many_deltas(api: Api, how: Any, count: int) -> None:
    api.server.add(Say("one two three"), Break(after_chunks=count, how=how))
    assert api.text(await api.until_cut()) == "".join(["one ", "two ", "three"][:count])
    await api.server.until(lambda: api.server.requests[0].cut, "cut")
    assert not api.server.requests[0].finished


async def test_a_break_can_come_within_a_call_or_before_any_byte(api: Api) -> None:
    api.server.add("Look.", Call("read", {"path": "a long path"}), Break(after_chunks=2))
    api.server.add(Break())
    stream = await api.until_cut()
    assert ('"name":"read"' in stream, "path" in stream, "a long path" in stream) == (True, True, False)
    assert await api.until_cut() == ""
    assert api.server.requests[1].status is None


async def test_a_break_that_cannot_happen_is_reported(api: Api) -> None:
    api.server.add("one two", Break(after_chunks=3))
    await api.ask()
    with pytest.raises(AssertionError, match="never happened"):
        api.server.check()
    api.server.tolerate("never happened")


async def test_a_hang_ends_by_release_or_when_the_client_leaves(api: Api) -> None:
    first, second = Hang(), Hang()
    api.server.add("before ", first, "after")
    api.server.add(second, "never")
    waiting = asyncio.create_task(api.ask())
    await first.entered()
    first.release()
    assert api.text((await waiting)[1]) == "before after"
    waiting = asyncio.create_task(api.ask())
    await second.entered()
    waiting.cancel()
    await api.server.until(lambda: api.server.requests[1].disconnected, "disconnection")
    assert (api.server.requests[0].disconnected, api.server.requests[1].finished) == (False, False)


async def test_a_malformed_request_is_a_violation_but_a_scripted_400_is_not(api: Api) -> None:
    api.server.add(Fail(400, message="the script says so"))
    assert (await api.ask())[0] == 400
    api.server.check()
    assert (await api.ask(temperature="hot"))[0] == 400
    with pytest.raises(AssertionError, match="request 2 is malformed"):
        api.server.check()
    api.server.tolerate("request 2 is malformed")


@pytest.mark.parametrize(("waited", "early"), [(1.9, True), (2.0, False)])
async def test_a_call_before_retry_after_has_ended_is_a_violation(waited: float, early: bool) -> None:
    clock = Clock()
    async with AnthropicServer(clock=clock) as server, aiohttp.ClientSession() as client:
        api = Api(server, client)
        server.tolerate("before retry-after ended")
        server.add(Fail(429, retry_after=2))
        await api.ask()
        clock.now += waited
        await api.ask()
    assert [("before retry-after ended" in text) for text in server.violations] == [True] * early


@pytest.mark.parametrize("cuts", [[], [0], [1, 0, 2], [5, 5], [99]])
async def test_a_continuer_goes_on_from_what_the_transcript_holds(api: Api, cuts: list[int]) -> None:
    whole = "one two three four five six seven eight nine ten"
    api.server.default = Continuer(whole, asked="Count", cuts=cuts)
    talk = [said("user", "Hello"), said("assistant", whole), said("user", "Count to ten.")]
    heard = ""
    for _ in cuts:
        piece = api.text(await api.until_cut(*talk))
        heard += piece
        if piece:
            talk += [said("assistant", piece), said("user", "Your reply was cut.")]
    status, stream = await api.ask(*talk)
    assert (status, heard + api.text(stream)) == (200, whole)


def tool(name: str) -> Json:
    return {"name": name, "input_schema": {"type": "object"}}


START: Json = {"system": "Be brief.", "tools": [tool("a"), tool("b")], "messages": [said("user", "Hello")]}
MORE = [said("assistant", "Hi"), said("user", "Go on.")]
MARKED = [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"messages": [*START["messages"], *MORE]}, None),
        ({"messages": [{"role": "user", "content": MARKED}, *MORE]}, None),
        ({"system": [{"type": "text", "text": "Be brief.", "cache_control": {}}]}, None),
        ({}, None),
        ({"system": "Be brief"}, "system differs at character"),
        ({"tools": [tool("b"), tool("a")]}, "tools differ at character"),
        ({"tools": [tool("a")]}, "tools differ at character"),
        (
            {"tools": [{"input_schema": {"type": "object"}, "name": "a"}, tool("b")]},
            "tools differ at character",
        ),
        ({"messages": [said("user", "Hello."), *MORE]}, "messages[0] differs at character"),
        ({"messages": [said("user", "Time: 9"), *START["messages"]]}, "messages[0] differs at character"),
        ({"messages": []}, "0 messages after 1"),
    ],
)
def test_the_prefix_of_consecutive_requests_is_compared(changes: Json, finding: str | None) -> None:
    server = AnthropicServer()
    server.tolerate("prefix changed")
    bodies = [START, {**START, "system": "Another conversation."}, {**START, **changes}]
    server.requests = [Request(n, 0.0, "/", {}, b"", body) for n, body in enumerate(bodies, 1)]
    found = server.prefix_violations(lambda request: request.number == 2)
    assert server.complaints()[0].startswith("prefix changed: 'Hello")
    assert len(found) == (finding is not None)
    assert not finding or f"request 1 → 3: {finding}" in found[0]
