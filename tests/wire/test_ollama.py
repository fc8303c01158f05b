"""The context of Ollama's models: it is set, read, and no message is left out in silence."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.errors import ErrorKind, ModelError
from agent.models import build
from agent.models.base import ModelClient, ModelSpec
from bot.telemetry.payloads import LoggedClient, PayloadLog
from bot.telemetry.redact import Redactor
from tests.agent.models.makers import user
from tests.standins.ollama_server import OllamaServer
from tests.standins.script import Fail
from tests.wire.model_clients import ask

pytestmark = pytest.mark.xdist_group("openai")
LONG = "some words " * 1500
"""About 4,100 tokens."""


@pytest.fixture
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer(models=["qwen3:8b", "llama3.2:latest"]) as server:
        server.default = lambda request: "ok"
        yield server


def client_of(server: OllamaServer, model: str = "qwen3:8b", window: int = 16_384, **options: Any) -> ModelClient:
    where = {"provider": "ollama", "api": "openai-chat", "base_url": f"{server.url}/v1"} | options
    return build(ModelSpec(model=model, context_window=window, **where))


async def cut(server: OllamaServer) -> bool:
    """Whether the last request lost a message."""
    return len(server.seen[-1]) < len(server.requests[-1].body["messages"])


async def test_the_stand_in_cuts_what_does_not_fit_as_ollama_does(server: OllamaServer) -> None:
    messages = [{"role": "system", "content": "s"}, *({"role": "user", "content": LONG} for _ in range(2))]
    async with aiohttp.ClientSession() as http:
        for model, options, lost in (("qwen3:8b", {}, True), ("qwen3:8b", {"num_ctx": 16_384}, True)):
            body = {"model": model, "messages": messages, "options": options, **options}
            async with http.post(f"{server.base_url}/chat/completions", json=body) as response:
                assert response.status == 200
            assert (await cut(server), server.seen[-1][0]["role"]) == (lost, "system")
        # what another program loads by the API itself does not last for chat completions
        loading = {"model": "qwen3:8b", "options": {"num_ctx": 16_384}, "stream": False}
        await (await http.post(f"{server.url}/api/generate", json=loading)).read()
        assert server.running["qwen3:8b"][1] == 16_384
        body = {"model": "qwen3:8b", "messages": messages}
        await (await http.post(f"{server.base_url}/chat/completions", json=body)).read()
        assert await cut(server)
        made = {"model": "mine", "from": "absent", "parameters": {"num_ctx": 9}, "stream": False}
        assert (await http.post(f"{server.url}/api/create", json=made)).status == 200
        assert server.pulled == ["absent"], "it takes gigabytes"
        assert (await http.post(f"{server.url}/api/show", json={"model": "gone"})).status == 404


@pytest.mark.parametrize("model", ["qwen3:8b", "llama3.2"])
async def test_the_context_that_is_wanted_is_set(server: OllamaServer, model: str) -> None:
    client = client_of(server, model)
    for _ in range(2):
        await ask(client, user("The code is 4711."), user(LONG), user("What is the code?"))
        assert not await cut(server)
    assert (client.context_window, client.name) == (16_384, f"ollama/{model}")
    assert server.calls == ["/api/show", "/api/create", "/api/generate", "/api/ps"]  # once
    await client.close()


async def test_a_server_that_gives_less_is_believed(server: OllamaServer) -> None:
    server.trained = 2048
    client = client_of(server)
    with pytest.raises(ModelError, match="2,048") as raised:
        await ask(client, user("The code is 4711."), user(LONG), user("What is the code?"))
    assert (raised.value.kind, server.count) == (ErrorKind.CONTEXT_OVERFLOW, 0)
    assert (client.context_window, client.max_output) == (2048, 512)
    await client.close()


async def test_the_payload_log_hides_no_context(server: OllamaServer, tmp_path: Path) -> None:
    server.trained = 2048
    client = LoggedClient(client_of(server), PayloadLog(tmp_path, Redactor(()), 1_000_000))
    await ask(client, user("hi"))
    assert (client.context_window, client.max_output) == (2048, 512)
    await client.close()


async def test_a_server_that_makes_no_variants_is_asked_what_it_has(server: OllamaServer) -> None:
    server.refuses_create = True
    client = client_of(server)
    await ask(client, user("hi"))
    assert (client.context_window, server.requests[-1].body["model"]) == (4096, "qwen3:8b")
    await client.close()


async def test_the_answer_has_no_more_room_than_the_context(server: OllamaServer) -> None:
    client = client_of(server, window=8192, max_output=2048)
    await ask(client, user(LONG), user("hi"), max_output=7000)
    assert (await cut(server), server.shifted) == (False, 0)
    await client.close()


async def test_it_is_known_by_its_port_and_asked_after_the_start(server: OllamaServer) -> None:
    assert type(client_of(server, provider="local")) is not type(client_of(server))
    elsewhere = client_of(server, provider="local", base_url="http://127.0.0.1:11434/v1")
    client = client_of(server)
    assert type(elsewhere) is type(client)
    await client.preload()
    await server.until(lambda: True, "anything")
    await ask(client, user("hi"))
    assert server.calls.count("/api/create") == 1
    await client.close()


async def test_a_server_that_comes_later_is_asked_then(server: OllamaServer) -> None:
    client = client_of(server)
    await server.stop()
    await client.preload()
    with pytest.raises(ModelError) as raised:
        await ask(client, user("hi"))
    assert raised.value.kind is ErrorKind.NETWORK
    await server.start()
    await ask(client, user("The code is 4711."), user(LONG), user("What is the code?"))
    assert not await cut(server)
    await client.close()


async def test_a_variant_that_was_removed_is_made_again(server: OllamaServer) -> None:
    client = client_of(server)
    await ask(client, user("hi"))
    server.models = ["qwen3:8b"]
    with pytest.raises(ModelError):
        await ask(client, user("hi"))
    await ask(client, user("The code is 4711."), user(LONG), user("What is the code?"))
    assert (await cut(server), server.requests[-1].body["model"]) == (False, "qwen3:8b-hark16384")
    await client.close()


async def test_a_cloud_model_and_one_that_is_missing_are_just_asked(server: OllamaServer) -> None:
    server.models = ["gpt-oss:120b-cloud"]
    cloud, missing = client_of(server, "gpt-oss:120b-cloud"), client_of(server, "absent")
    await ask(cloud, user("hi"))
    assert server.calls == []
    with pytest.raises(ModelError) as raised:
        await ask(missing, user("hi"))
    assert (raised.value.kind, server.pulled) == (ErrorKind.MODEL_NOT_FOUND, [])
    server.models = ["absent:latest"]
    server.add(Fail(500, message="busy"))
    with pytest.raises(ModelError):
        await ask(missing, user("hi"))
    assert server.running["absent:latest"][1] == 16_384
    await cloud.close()
    await missing.close()
