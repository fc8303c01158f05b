"""Cold start and memory of `hark run`, from outside, beside the library alone; the help beside a bare interpreter."""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.figures import Row, Scale
from bench.model import KEY, ROOT, Model, question
from bench.process import HarkProcess, hark_over_http
from bench.service import folder

TITLE = "Start and memory (anthropic, no platform connected)"
_SESSIONS = 50


@dataclass(frozen=True, slots=True)
class _Samples:
    """Seconds of each start, by what was started. memory: MiB in the last one, by moment, then turns per second."""

    bare: list[float] = field(default_factory=list)
    help: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    raw: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    raw_memory: list[float] = field(default_factory=list)


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Several starts; memory in the last of them."""
    taken = _Samples()
    for number in range(scale.rounds):
        taken.bare.append((await _run("-c", "pass"))[0])
        taken.help.append((await _run("-m", "bot", "--help"))[0])
        seconds, resident = await _run("-m", "bench.raw_start", model.url, KEY)
        taken.raw.append(seconds)
        taken.raw_memory.append(float(resident))
        with folder() as home:
            begun = time.monotonic()
            async with hark_over_http(home, model, "anthropic") as hark:
                taken.ready.append(hark.started)
                at_ready = hark.memory()
                await hark.ask(0)
                taken.first.append(time.monotonic() - begun)
                if number == scale.rounds - 1:
                    taken.memory.extend((at_ready, hark.memory(), *await _many(model, hark, scale.messages)))
    return [*_times(taken), *_memory(taken, scale.messages)]


def _times(taken: _Samples) -> list[Row]:
    return [
        Row(
            what="process start → /readyz says yes, a message is accepted",
            unit="s",
            hark=median(taken.ready),
            target="1.2",
            nanobot="1.53",
            openclaw="11.8",
        ),
        Row(
            what="process start → first answer complete",
            unit="s",
            hark=median(taken.first),
            raw=median(taken.raw),
            target="2.5",
            nanobot="2.6–3.1",
            openclaw="17–20",
        ),
        Row(
            what="hark --help (beside: python -c pass)",
            unit="s",
            hark=median(taken.help),
            raw=median(taken.bare),
            target="0.12",
            nanobot="1.07",
            openclaw="0.14",
        ),
    ]


def _memory(taken: _Samples, messages: int) -> list[Row]:
    ready, after_turn, after_many, turns = taken.memory
    return [
        Row(what="memory when ready", unit="MiB", hark=ready, target="100", nanobot="95", openclaw="747–792"),
        Row(
            what="memory after the first turn, SDK imported",
            unit="MiB",
            hark=after_turn,
            raw=taken.raw_memory[-1],
            target="110",
            nanobot="158 (50 turns)",
            openclaw="1,166",
        ),
        Row(
            what=f"memory after {messages:,} messages in {_SESSIONS} sessions",
            unit="MiB",
            hark=after_many,
            target="+ 10",
            nanobot="172 (1,000)",
            openclaw="1,340 (1,080)",
        ),
        Row(
            what=f"turns during these {messages:,} messages",
            unit="/s",
            hark=turns,
            target="60",
            nanobot="5.4",
        ),
    ]


async def _run(*arguments: str) -> tuple[float, bytes]:
    """Seconds that a process takes, the better of two, and what it printed."""
    taken = []
    for _ in range(2):
        begun = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        taken.append(time.monotonic() - begun)
    return min(taken), printed


async def _many(model: Model, hark: HarkProcess, messages: int) -> Sequence[float]:
    """Post messages without waiting, then wait for the last of each session: memory then, and turns per second."""
    begun = time.monotonic()
    each = max(1, messages // _SESSIONS)

    async def talk(session: int) -> None:
        for _ in range(each - 1):
            await hark.post(session, question()[1])
        await hark.ask(session)

    await model.answer_with(tokens=5)
    await asyncio.gather(*(talk(session) for session in range(_SESSIONS)))
    await model.answer_with()
    return hark.memory(), each * _SESSIONS / (time.monotonic() - begun)
