"""Thousands of messages through a service, and nothing of them stays in the process."""

import asyncio
import gc
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from pydantic_core import from_json

from agent.message import Message, Text, Usage
from agent.models.base import Answer, ModelRequest, StreamPart, TextDelta
from agent.prompt import requests
from bot.config.model import Config
from bot.runs import runner
from bot.sessions import service
from channels.base import Capabilities, Mark
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place
from channels.outgoing import Delivery, SendResult, Sent
from tests.serving import PlainChannel, PlainModel, serving
from tests.watch import lanes_idle

# Rounds of messages after which memory has grown each time, where something of each message stays.
ROUNDS = 4
SESSIONS = 20


class QuickModel(PlainModel):
    """One word, and nothing kept."""

    context_window = 4000
    max_output = 100

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        yield TextDelta("fine")
        yield Answer(Message("assistant", (Text("fine"),)), "end", Usage(1, 1))


class QuickChannel(PlainChannel):
    """Takes everything and keeps nothing but counts."""

    capabilities = Capabilities(block_chars=4000, typing_seconds=4, rules="Be brief.")

    def __init__(self) -> None:
        self.sent = 0
        super().__init__()
        self.moved = asyncio.Event()
        self._written = 0

    async def write(self, count: int, text: str) -> None:
        """So many messages, over all sessions, and their answers."""
        assert self.sink is not None
        until = self.sent + count
        for first in range(0, count, SESSIONS):
            batch = [self._message(person, text) for person in range(min(SESSIONS, count - first))]
            await self.sink.accept(batch, Mark("telegram:bot", str(self._written)))
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

    async def send(self, delivery: Delivery) -> SendResult:
        self.sent += 1
        self.moved.set()
        return Sent(str(self.sent))


async def _measure() -> tuple[Counter[str], int, int]:
    """Tasks by name, open descriptors, and blocks of memory, once everything is quiet.

    SQLite's driver keeps up to 200 dead references to cursors per connection: a few hundred blocks mean nothing.
    """
    async with asyncio.timeout(10):
        await lanes_idle()
        # nobody tells when they have ended, and when the look at the requests is over
        while any(name.startswith(("deliver-", "command-")) for name in _names()) or "requests-timer" not in _names():  # noqa: ASYNC110
            await asyncio.sleep(0)
    gc.collect()
    return Counter(_names()), len(os.listdir("/dev/fd")), sys.getallocatedblocks()


def _names() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks()]


def _fill_string_cache() -> None:
    """pydantic keeps up to 16,384 strings that it has read; with all its places taken it grows no more."""
    from_json(json.dumps([f"filler {number}" for number in range(300_000)]), cache_strings="all")


async def _leaks(home: Path, messages: int) -> None:
    config = Config.model_validate(
        {
            "channels": {"console": {"enabled": False}, "telegram": {"enabled": False, "dm": {"policy": "open"}}},
            "queue": {"debounce_ms": 0, "mode": "followup", "cap": 1000},
            "workspace": home / "workspace",
            "state": home / "state",
        }
    )
    channel = QuickChannel()
    async with serving(config, model=QuickModel(), channels=[channel]):
        _fill_string_cache()
        await channel.write(600, "how are you?")  # as many as fill what is remembered of events
        await channel.write(SESSIONS, "/new")
        grown = [await _growth(channel, messages)]
        while grown[-1] >= messages * 3 // 4 and len(grown) < ROUNDS:  # what stays of each message does so every time
            grown.append(await _growth(channel, messages))
    assert grown[-1] < messages * 3 // 4, f"{grown} blocks of memory more, each time after {messages} messages"


async def _growth(channel: QuickChannel, messages: int) -> int:
    """Blocks of memory that are taken after so many messages and were not before."""
    before = await _measure()
    await channel.write(messages, "how are you?")
    await channel.write(SESSIONS, "/new")
    after = await _measure()
    assert after[:2] == before[:2]
    return after[2] - before[2]


@pytest.fixture(autouse=True)
def _no_contexts_between_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_TOKENS", 0)
    monkeypatch.setattr(requests, "MAX_TOKENS", 0)


@pytest.fixture(autouse=True)
def _no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds files for moments, and one of the store from its first use on (`tests/bot/store/test_search.py`)."""
    monkeypatch.setattr(service, "FILL_EVERY", 1e6)


@pytest.mark.waits
async def test_nothing_stays(fresh: Callable[[], Path]) -> None:
    """Waits for what libraries do each second."""
    await _leaks(fresh(), 600)


@pytest.mark.soak
async def test_nothing_stays_of_many(fresh: Callable[[], Path]) -> None:
    await _leaks(fresh(), 10_000)
