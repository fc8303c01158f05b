"""The scripted model server from the side of the benchmark, questions to it, and the raw SDK calls it is asked by."""

import asyncio
import contextlib
import itertools
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from agent.models.base import ModelApi

ROOT = Path(__file__).resolve().parent.parent
KEY = "bench-key"
APIS: tuple[ModelApi, ...] = ("anthropic", "openai-chat")
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Seen:
    """One request at the model: when it had arrived, when the last token was sent, and how many bytes it had."""

    arrived: float
    said: float
    size: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, by its number: when it was asked, and when its answer was complete."""

    number: int
    sent: float
    done: float


Ask = Callable[[int], Awaitable[Asked]]
"""Asks one question in a session (by number) and waits for the answer."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What the server noted: requests by the question's number, and how many were open at once at most."""

    seen: dict[int, list[Seen]]
    most_open: int


class Model:
    """The server's control routes."""

    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._session = session

    async def answer_with(self, *, tokens: int = 20, delay: float = 0.0) -> None:
        """How long answers are from here on, and how many seconds the model thinks."""
        async with self._session.post(f"{self.url}/settings", json={"tokens": tokens, "delay": delay}) as response:
            response.raise_for_status()

    async def take(self) -> Taken:
        """What was noted since the last call."""
        async with self._session.post(f"{self.url}/take") as response:
            noted = await response.json()
        seen = {int(number): [Seen(*entry) for entry in entries] for number, entries in noted["seen"].items()}
        return Taken(seen, noted["most_open"])

    def base_url(self, api: ModelApi) -> str:
        """The address as the provider's library takes it."""
        return self.url if api == "anthropic" else f"{self.url}/v1"


@contextlib.asynccontextmanager
async def model_server() -> AsyncIterator[Model]:
    """A server while the context lasts."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.model_server"),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        async with aiohttp.ClientSession() as session:
            yield Model(port, session)
    finally:
        process.stdin.close()
        await process.wait()


def question(extra: str = "") -> tuple[int, str]:
    """A question of about 135 bytes and its number, by which the server's notes are found."""
    number = next(_numbers)
    return number, f"bench-{number} {extra} {'please tell me something about the weather of today, ' * 2}thank you"


@contextlib.asynccontextmanager
async def raw_sdk(model: Model, api: ModelApi) -> AsyncIterator[Ask]:
    """The provider's library alone: a request with the question in it, and the stream read to its end."""
    client = _client(model, api)

    async def ask(session: int) -> Asked:
        number, text = question()
        return await _call(client, api, number, [{"role": "user", "content": text}])

    async with client:
        yield ask


@contextlib.asynccontextmanager
async def raw_history(model: Model, api: ModelApi, exchanges: int) -> AsyncIterator[Ask]:
    """The library alone with a request of so many earlier questions and answers."""
    client = _client(model, api)
    history: list[dict[str, Any]] = []
    for _ in range(exchanges):
        history.append({"role": "user", "content": [{"type": "text", "text": "q" * 190}]})
        history.append({"role": "assistant", "content": [{"type": "text", "text": "a" * 140}]})

    async def ask(session: int) -> Asked:
        number, text = question()
        return await _call(client, api, number, [*history, {"role": "user", "content": text}])

    async with client:
        yield ask


def _client(model: Model, api: ModelApi) -> Any:
    import anthropic
    import openai

    made = anthropic.AsyncAnthropic if api == "anthropic" else openai.AsyncOpenAI
    return made(api_key=KEY, base_url=model.base_url(api), max_retries=0)


async def _call(client: Any, api: ModelApi, number: int, messages: list[dict[str, Any]]) -> Asked:
    sent = time.monotonic()
    if api == "anthropic":
        stream = await client.messages.create(model="model", max_tokens=1000, messages=messages, stream=True)
    else:
        stream = await client.chat.completions.create(model="model", messages=messages, stream=True)
    async for _ in stream:
        pass
    return Asked(number, sent, time.monotonic())
