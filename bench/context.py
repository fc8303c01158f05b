"""What long conversations cost: reading a context behind a summary, the cache over summaries, and the summaries."""

import sqlite3
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.context import Context
from agent.message import Message, Text, Usage, estimate, estimate_text, estimate_tools
from agent.models.base import Answer, ModelRequest, StreamPart, TextDelta
from bench.channel import BenchChannel
from bench.figures import Row, Scale, mid
from bench.model import Model
from bench.model_server import LAST_WORD
from bench.seed import age
from bench.service import folder, logs
from bot.clock import Clock
from bot.config.model import Config
from bot.service import Service

TITLE = "Long conversations (question 135 B, answer 1,100 B, window 20,000 tokens)"
# Lines behind the summary.
_KEPT = 20
_WINDOW = 20_000
_ANSWER = f"{'It will be a dry day, so water them in the evening. ' * 20}{LAST_WORD}"


@dataclass(eq=False)
class Summing:
    """A model that answers, and sums up when it is asked to; a provider caches what its last request began with."""

    name: str = "bench/summing"
    context_window: int = _WINDOW
    max_output: int = 1024
    thinks = False
    key = ""
    # Tokens of all requests of turns, of those of them that the request before began with, and of other requests.
    asked: int = 0
    cached: int = 0
    beside: int = 0
    summaries: int = 0
    _last: Sequence[Message] = field(default_factory=list)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        """See ModelClient."""
        fixed = estimate_text(request.system) + estimate_tools(request.tools)
        size = fixed + sum(map(estimate, request.messages))
        newest = request.messages[-1].text
        if "Write a summary" in newest or "Save now into a file" in newest:
            self.summaries += "Write a summary" in newest
            self.beside += size
            text = "They watered the garden."
        else:
            pairs = zip(self._last, request.messages, strict=False)
            same = next((number for number, (old, new) in enumerate(pairs) if old != new), len(self._last))
            self.cached += fixed + sum(map(estimate, request.messages[:same])) if self._last else 0
            self.asked += size
            self._last = request.messages
            text = _ANSWER
        yield TextDelta(text)
        yield Answer(Message("assistant", (Text(text),), self.name), "end", Usage(size, estimate_text(text)))

    async def preload(self) -> None:
        """See ModelClient."""

    async def close(self) -> None:
        """See ModelClient."""


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Take the figures in a service with a model of its own; `model` is not asked."""
    rows = []
    for lines in scale.ages:
        samples = [await _read(lines) for _ in range(scale.rounds)]
        what = f"reading and assembling {_KEPT} lines behind a summary, of {lines:,}"
        rows.append(Row(what=what, unit="ms", hark=mid(samples, 0.5), target="the same at every age"))
    turns = 2 if scale.turns == 2 else 100
    with folder() as home, logs(home):
        summing = Summing()
        service, channel = await _started(home, summing)
        for _ in range(turns):
            await channel.ask(0)
        await service.close()
    share = 100 * summing.cached / summing.asked
    return [
        *rows,
        Row(what=f"read from the cache in {turns} turns, of all input", unit="%", hark=share, target="90"),
        Row(what=f"summaries in {turns} turns", unit="", hark=summing.summaries),
        Row(
            what="their requests, of all input", unit="%", hark=100 * summing.beside / (summing.asked + summing.beside)
        ),
    ]


async def _read(lines: int) -> list[float]:
    """Return how many milliseconds reading took, several times, in a transcript of so many lines."""
    with folder() as home, logs(home):
        service, channel = await _started(home, Summing(context_window=10_000_000))
        await channel.ask(0)
        await service.close()
        age(home / "state", lines)
        transcript_id = _summed_up(home / "state")
        service, _ = await _started(home, Summing())
        try:
            samples = []
            for _ in range(10):
                began = time.perf_counter()
                context = Context(await service.parts.store.reads.context(transcript_id))
                context.messages()
                samples.append((time.perf_counter() - began) * 1000)
            return samples
        finally:
            await service.close()


def _summed_up(state: Path) -> str:
    """Let a summary stand for all lines but the last; returns the transcript."""
    db = sqlite3.connect(state / "hark.db", isolation_level=None)
    try:
        transcript_id, last = db.execute("SELECT transcript_id, max(seq) FROM entry GROUP BY transcript_id").fetchone()
        start = max(last - _KEPT + 1, 1)
        db.execute(
            "INSERT INTO entry (transcript_id, seq, turn_id, step, kind, body, tokens, covers)"
            " SELECT transcript_id, ?, NULL, 0, 'summary', body, tokens, ? FROM entry WHERE transcript_id=? AND seq=1",
            (last + 1, start, transcript_id),
        )
        db.execute("UPDATE transcript SET summary=?, context_start=?", (last + 1, start))
        return str(transcript_id)
    finally:
        db.close()


async def _started(home: Path, model: Summing) -> tuple[Service, BenchChannel]:
    from bot.wiring import Dependencies, build

    channel = BenchChannel()
    document = {
        "queue": {"debounce_ms": 0, "mode": "followup"},
        "channels": {"console": {"enabled": False}, "telegram": {"dm": {"policy": "open"}}},
        "compaction": {"keep_recent_tokens": 2000},
        "workspace": str(home / "workspace"),
        "state": str(home / "state"),
    }
    around = Dependencies(environ={}, clock=Clock(), model=model, channels=[channel], gateway=False)
    service = await build(Config.model_validate(document), around)
    await service.start()
    return service, channel
