"""What a turn costs as its session grows old: the store holds the whole past, the request the part that fits.

Every age has a service of its own; turns go round them, so that a slow moment of the machine meets all alike.
"""

import contextlib
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.channel import BenchChannel
from bench.figures import Row, Scale
from bench.load import at_once, before
from bench.model import Ask, Model, raw_history
from bench.seed import age
from bench.service import folder, hark

TITLE = "A turn as its session ages (question 135 B, answer 360 B, anthropic)"
SMALL = 8_000
"""Tokens of a context window that is full at every age but the first."""
_WORDS = 55
_LIMITS = {10: ("158", "352"), 1_000: ("857 (1,000 turns)", ""), 10_000: ("417 (10,000 turns)", "")}


@dataclass(slots=True)
class Old:
    """One service. first: milliseconds before the model of the first turn after its start."""

    lines: int
    channel: BenchChannel
    first: float = 0.0
    samples: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    raw: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


async def measure(model: Model, scale: Scale) -> list[Row]:
    """With a window of 200,000 tokens, beside the raw call with as many messages; then with a small window."""
    await model.answer_with(tokens=_WORDS)
    rows: list[Row] = []
    for window in (200_000, SMALL):
        async with contextlib.AsyncExitStack() as stack:
            olds = [await _open(stack, model, lines, window) for lines in scale.ages]
            for old in olds:
                old.first = (await _turns(model, old, old.channel.ask, 1))["in"][0]
                await _turns(model, old, old.channel.ask, 1)
            for _ in range(scale.rounds):
                for old in olds:
                    for name, values in (await _turns(model, old, old.channel.ask, max(2, scale.turns // 10))).items():
                        old.samples[name] += values
                    if window != SMALL:
                        await _beside(model, scale, old)
            for old in olds:
                rows += _rows(old, window)
    await model.answer_with()
    return rows


async def _open(stack: contextlib.AsyncExitStack, model: Model, lines: int, window: int) -> Old:
    home: Path = stack.enter_context(folder())
    async with hark(home, model, "anthropic") as channel:
        await channel.ask(0)
    age(home / "state", lines)
    async with hark(home, model, "anthropic", window=window) as channel:
        await channel.ask(0)  # moves the beginning of the context, as would have happened on the way
    return Old(lines, await stack.enter_async_context(hark(home, model, "anthropic", window=window)))


async def _turns(model: Model, old: Old, ask: Ask, turns: int) -> dict[str, list[float]]:
    """Turns one after the other: what each took."""
    await model.take()
    disk, cpu = _written(), time.process_time()
    asked = await at_once(ask, 1, turns)
    cpu, disk = time.process_time() - cpu, _written() - disk
    taken = await model.take()
    return {
        "in": before(asked, taken),
        "size": [taken.seen[one.number][0].size / 1000 for one in asked],
        "cpu": [1000 * cpu / turns],
        "disk": [disk / turns / 1000],
    }


async def _beside(model: Model, scale: Scale, old: Old) -> None:
    """The library alone, with a request of about the same size."""
    exchanges = int(old.samples["size"][-1] * 1000 // 460)
    async with raw_history(model, "anthropic", exchanges) as ask:
        await _turns(model, old, ask, 1)
        for name, values in (await _turns(model, old, ask, max(2, scale.turns // 30))).items():
            old.raw[name] += values


def _rows(old: Old, window: int) -> list[Row]:
    figures = {name: median(values) for name, values in old.samples.items()}
    if window == SMALL:
        what = f"{old.lines:,} lines, window of {SMALL:,} tokens"
        row = Row(what=f"{what}: in → model", unit="ms", hark=figures["in"], target="flat")
        cpu = Row(what=f"{what}: CPU per turn", unit="ms", hark=figures["cpu"], target="flat")
        return [row, cpu]
    nanobot, openclaw = _LIMITS.get(old.lines, ("", ""))
    what = f"{old.lines:,} lines"
    raw = {name: median(values) for name, values in old.raw.items()}
    return [
        Row(
            what=f"{what}: in → model", unit="ms", hark=figures["in"], raw=raw["in"], nanobot=nanobot, openclaw=openclaw
        ),
        Row(what=f"{what}: the same, first turn after a restart", unit="ms", hark=old.first),
        Row(what=f"{what}: CPU per turn", unit="ms", hark=figures["cpu"], raw=raw["cpu"], target="15"),
        Row(what=f"{what}: request", unit="kB", hark=figures["size"], raw=raw["size"], target="12 + history"),
        Row(what=f"{what}: written to disk per turn", unit="kB", hark=figures["disk"], target="20, flat"),
    ]


def _written() -> int:
    """Bytes that this process has caused to be written to a disk; a file system in memory counts none."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    return 0
