"""Thousands of messages through a service, and nothing of them stays in the process."""

import asyncio
import gc
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import pytest
from pydantic_core import from_json

from agent.message import Message, Text, Usage
from agent.models.base import Answer, ModelRequest, StreamPart, TextDelta, ThinkingLevel
from bot.config.model import Config
from bot.service import Service
from bot.wiring import Surroundings, build
from channels.base import Capabilities, Health, HealthState, Mark, Sink
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Delivery, SendResult, Sent

SESSIONS = 20


class QuickModel:
    """Implements `agent.models.base.ModelClient`: one word, and nothing kept."""

    name = "test/quick"
    context_window = 4000
    max_output = 100
    thinking: ThinkingLevel = "off"

    async def warm(self) -> None:
        """See ModelClient."""

    async def close(self) -> None:
        """See ModelClient."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """See ModelClient."""
        yield TextDelta("fine")
        yield Answer(Message("assistant", (Text("fine"),)), "end", Usage(1, 1))


class QuickChannel:
    """Implements `channels.base.Channel`: takes everything and keeps nothing but counts."""

    name = "telegram"
    account = "bot"
    capabilities = Capabilities(block_chars=4000, typing_seconds=4, rules="Be brief.")

    def __init__(self) -> None:
        self.sent = 0
        self.moved = asyncio.Event()
        self._sink: Sink | None = None
        self._written = 0

    async def write(self, count: int, text: str) -> None:
        """So many messages, over all sessions, and their answers."""
        assert self._sink is not None
        until = self.sent + count
        for first in range(0, count, SESSIONS):
            batch = [self._message(person, text) for person in range(min(SESSIONS, count - first))]
            await self._sink.accept(batch, Mark("telegram:bot", str(self._written)))
        async with asyncio.timeout(60):
            while self.sent < until:
                self.moved.clear()
                await self.moved.wait()

    def _message(self, person: int, text: str) -> InboundMessage:
        self._written += 1
        place = Place(channel="telegram", account="bot", chat=str(person), kind=ChatKind.DIRECT)
        origin = Origin(place=place, sender=str(person), message_id=str(self._written))
        return InboundMessage(
            origin=origin, event_key=f"m:{self._written}", kind=InboundKind.MESSAGE, text=text, sent_at=0
        )

    async def start(self, sink: Sink) -> None:
        """See Channel."""
        self._sink = sink

    async def stop_intake(self) -> None:
        """See Channel."""

    async def close(self) -> None:
        """See Channel."""

    def render(self, text: str) -> Sequence[str]:
        """See Channel."""
        return (text,)

    def pass_limit(self, place: Place) -> float:
        """See Channel."""
        return 0.0

    async def send(self, delivery: Delivery) -> SendResult:
        """See Channel."""
        self.sent += 1
        self.moved.set()
        return Sent(str(self.sent))

    async def working(self, place: Place) -> None:
        """See Channel."""

    def health(self) -> Health:
        """See Channel."""
        return Health(HealthState.READY, 0)


async def _measure(service: Service) -> tuple[Counter[str], int, int]:
    """Tasks by name, open descriptors, and blocks of memory, once everything is quiet and no context is cached.

    SQLite's driver keeps up to 200 dead references to cursors per connection: a few hundred blocks mean nothing.
    """
    parts = service.parts
    async with asyncio.timeout(10):
        await parts.lanes.wait_idle()
        while parts.outbox._conversations or parts.commands._tasks:  # noqa: ASYNC110 (nobody tells when they have ended)
            await asyncio.sleep(0)
    contexts = parts.lanes._runner.contexts
    while contexts._cached:
        contexts._tokens -= contexts._cached.popitem()[1].tokens
    gc.collect()
    tasks = Counter(task.get_name() for task in asyncio.all_tasks())
    return tasks, len(os.listdir("/dev/fd")), sys.getallocatedblocks()


def _fill_string_cache() -> None:
    """pydantic keeps up to 16,384 strings that it has read; with all its places taken it grows no more."""
    from_json(json.dumps([f"filler {number}" for number in range(300_000)]), cache_strings="all")


async def _leaks(home: Path, messages: int) -> None:
    config = Config.model_validate(
        {
            "channels": {"console": {"enabled": False}, "telegram": {"enabled": False, "dm": {"policy": "open"}}},
            "workspace": home / "workspace",
            "state": home / "state",
        }
    )
    channel = QuickChannel()
    around = Surroundings(environ={}, ollama=lambda _: None, model=QuickModel(), channels=[channel], gateway=False)
    service = await build(config, around)
    await service.start()
    _fill_string_cache()
    try:
        await channel.write(1_500, "how are you?")  # as many as fill what is remembered of events
        await channel.write(SESSIONS, "/new")
        before = await _measure(service)
        await channel.write(messages, "how are you?")
        await channel.write(SESSIONS, "/new")
        after = await _measure(service)
    finally:
        await service.close()
    assert after[:2] == before[:2]
    grown = after[2] - before[2]
    assert grown < messages // 2, f"{grown} blocks of memory more after {messages} messages"


async def test_nothing_stays(fresh: Callable[[], Path]) -> None:
    await _leaks(fresh(), 2_000)


@pytest.mark.soak
async def test_nothing_stays_of_many(fresh: Callable[[], Path]) -> None:
    await _leaks(fresh(), 10_000)
