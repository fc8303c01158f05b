"""What a day of quiet beats costs in a session of 200 turns: tokens of all requests, estimated as Hark does."""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from agent.message import Message, Text, Usage, estimate, estimate_text, estimate_tools
from agent.models.base import Answer, ModelRequest, StreamPart, TextDelta
from bench.channel import BenchChannel
from bench.figures import Row, Scale
from bench.model import Model
from bench.model_server import LAST_WORD
from bench.service import folder, logs
from bot.clock import Clock
from bot.config.model import Config
from bot.service import Service
from heartbeat.quiet import HEARTBEAT_OK

TITLE = "48 quiet beats in a session of 200 turns (question 135 B, answer 240 B, HEARTBEAT.md 160 B)"
BEATS = 48
_HALF_AN_HOUR = 1_800_000
_IN_SESSION = {"isolated": False, "light_context": False}
_CHECKLIST = """# Garden
- Tell me when the forecast says that it will be below zero tonight.
- Is there anything in inbox.md that cannot wait until tomorrow?
"""
_ANSWER = f"{'It will be a dry day, so water them in the evening. ' * 4}{LAST_WORD}"


@dataclass(eq=False)
class Counting:
    """A model that has nothing to say to a beat. asked: tokens of each request."""

    name: str = "bench/counting"
    context_window: int = 200_000
    max_output: int = 1024
    thinks = False
    key = ""
    asked: list[int] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """See ModelClient."""
        size = estimate_text(request.system) + estimate_tools(request.tools) + sum(map(estimate, request.messages))
        self.asked.append(size)
        text = HEARTBEAT_OK if "heartbeat" in request.messages[-1].text else _ANSWER
        yield TextDelta(text)
        yield Answer(Message("assistant", (Text(text),), self.name), "end", Usage(size, estimate_text(text)))

    async def preload(self) -> None:
        """See ModelClient."""

    async def close(self) -> None:
        """See ModelClient."""


async def measure(model: Model, scale: Scale) -> list[Row]:
    """In the session itself, and as by default, isolated with light context; `model` is not asked."""
    turns = 2 if scale.turns == 2 else 200
    shared, base = await _day(turns, _IN_SESSION)
    alone, _ = await _day(turns, {})
    each = shared[0] - base
    stayed = sum(shared[0] + number * each for number in range(BEATS))
    return [
        Row(what="a request of the session, after its turns", unit="tokens", hark=base),
        Row(what="one quiet beat in the session", unit="tokens", hark=shared[-1], target="no more than the first"),
        Row(what="one quiet beat, isolated and light", unit="tokens", hark=alone[-1], target="3,000"),
        Row(what="48 quiet beats in the session", unit="tokens", hark=sum(shared)),
        Row(what="the same if they stayed in the context", unit="tokens", hark=stayed),
        Row(what="48 quiet beats, isolated and light", unit="tokens", hark=sum(alone)),
        Row(what="added to the session's next request by 48 quiet beats", unit="tokens", hark=await _left(turns)),
    ]


async def _day(turns: int, heartbeat: dict[str, Any]) -> tuple[list[int], int]:
    """Tokens of each beat of a day, and of the last request before."""
    asked = await _asked(turns, heartbeat, BEATS)
    return asked[turns : turns + BEATS], asked[turns - 1]


async def _left(turns: int) -> int:
    """How much larger a request is because of the beats before it."""
    with_beats = (await _asked(turns, _IN_SESSION, BEATS))[-1]
    return with_beats - (await _asked(turns, _IN_SESSION, 0))[-1]


async def _asked(turns: int, heartbeat: dict[str, Any], beats: int) -> list[int]:
    """Tokens of all requests: of turns, beats, and one more turn."""
    from bot.wiring import Dependencies, build

    model, channel, passed = Counting(), BenchChannel(), [0]
    began = time.time_ns() // 1_000_000
    clock = Clock(now=lambda: began + passed[0])
    with folder() as home, logs(home):
        document = {
            "owners": ["telegram:0"],
            "queue": {"debounce_ms": 0, "mode": "followup"},
            "channels": {"console": {"enabled": False}, "telegram": {"dm": {"policy": "open"}}},
            "heartbeat": {"every": "30m", "daily_budget": 999_999_999} | heartbeat,
            "workspace": str(home / "workspace"),
            "state": str(home / "state"),
        }
        around = Dependencies(environ={}, clock=clock, model=model, channels=[channel], gateway=False)
        service = await build(Config.model_validate(document), around)
        await service.start()
        try:
            (home / "workspace" / "HEARTBEAT.md").write_text(_CHECKLIST)
            for _ in range(turns):
                await channel.ask(0)
            for number in range(beats):
                passed[0] += _HALF_AN_HOUR
                await _beat(service, model, turns + number + 1)
            await channel.ask(0)
        finally:
            await service.close()
    return model.asked


async def _beat(service: Service, model: Counting, requests: int) -> None:
    """One beat, until it is over."""
    while await service.parts.dispatcher.tick() <= 15 and len(model.asked) < requests:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    while len(model.asked) < requests or service.parts.lanes.active:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
