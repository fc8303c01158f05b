"""Ways to talk to a model client, whoever's it is."""

import traceback
from typing import Any

import pytest

from agent.errors import ModelError
from agent.message import Message
from agent.models import build
from agent.models.base import Answer, ModelApi, ModelClient, ModelRequest, ModelSpec, StreamPart, TextDelta
from tests.agent.models.makers import request, user

KEY = "secret-test-key"
MODELS: dict[ModelApi, str] = {"anthropic": "claude-opus-5-5", "openai-chat": "gpt-5.1", "openai-responses": "gpt-5.5"}


def client_of(api: ModelApi, url: str, model: str = "", keys: tuple[str, ...] = (KEY,), **options: Any) -> ModelClient:
    """A client of the server at `url` (without a path)."""
    base_url = url if api == "anthropic" else f"{url}/v1"
    spec = ModelSpec(provider="house", api=api, model=model or MODELS[api], base_url=base_url, api_keys=keys, **options)
    return build(spec)


async def listen(client: ModelClient, asked: ModelRequest) -> list[StreamPart]:
    """All parts of one call."""
    return [part async for part in client.stream(asked)]


async def ask(client: ModelClient, *messages: Message, **options: Any) -> Answer:
    """The answer of one call."""
    answer = (await listen(client, request(*messages, **options)))[-1]
    assert isinstance(answer, Answer)
    return answer


async def failure(client: ModelClient, said: list[str] | None = None) -> ModelError:
    """The error of one call, which never holds the key; the words that came before it go to `said`."""

    async def call() -> None:
        async for part in client.stream(request(user("hi"))):
            if said is not None and isinstance(part, TextDelta):
                said.append(part.text)

    with pytest.raises(ModelError) as raised:
        await call()
    assert KEY not in "".join(traceback.format_exception(raised.value))
    return raised.value
