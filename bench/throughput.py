"""Turns per second and processor time per turn, all sessions at once; the price of a streamed token; a slow model."""

import contextlib
import time
from statistics import median

from bench.figures import Row, Scale
from bench.load import at_once
from bench.model import APIS, Ask, Model, raw_sdk
from bench.process import hark_over_http
from bench.service import folder, hark

TITLE = "Throughput, model time zero, 20 tokens"
LONG = 2_000
"""Tokens of the long answer."""


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Per provider: turns per second and CPU for each number of sessions; then the figures taken once."""
    rows: list[Row] = []
    for api in APIS:
        async with contextlib.AsyncExitStack() as stack:
            raw = await stack.enter_async_context(raw_sdk(model, api))
            channel = await stack.enter_async_context(hark(stack.enter_context(folder()), model, api))
            await at_once(raw, 1, 20)
            await at_once(channel.ask, 1, 20)
            for sessions in sorted({*scale.sessions, min(10, scale.sessions[-1])}):
                rows += await _compare(scale, f"{api}, {sessions} at once", channel.ask, raw, sessions)
            rows.append(await _per_token(model, scale, f"{api}: CPU per streamed token above a turn", channel.ask, raw))
            if api == "anthropic":
                rows.append(await _slow_model(model, scale, channel.ask, raw))
    rows += await _over_http(model, scale)
    await model.take()
    return rows


async def _compare(scale: Scale, what: str, ask: Ask, raw: Ask, sessions: int) -> list[Row]:
    turns = max(scale.turns, sessions)
    rates: dict[Ask, list[float]] = {raw: [], ask: []}
    cpus: dict[Ask, list[float]] = {raw: [], ask: []}
    for _ in range(scale.rounds if sessions < 500 else 2):
        for one in (raw, ask):
            begun, cpu = time.monotonic(), time.process_time()
            asked = await at_once(one, sessions, turns)
            rates[one].append(len(asked) / (time.monotonic() - begun))
            cpus[one].append(1000 * (time.process_time() - cpu) / len(asked))
    peers = {1: ("5", "2.8"), 10: ("6", "2.9"), 100: ("6", "2.2")}.get(sessions, ("", ""))
    return [
        Row(
            what=f"{what}: turns",
            unit="/s",
            hark=median(rates[ask]),
            raw=median(rates[raw]),
            target="60",
            nanobot=peers[0],
            openclaw=peers[1],
        ),
        Row(
            what=f"{what}: CPU per turn",
            unit="ms",
            hark=median(cpus[ask]),
            raw=median(cpus[raw]),
            target="15",
            nanobot="163" if peers[0] else "",
            openclaw="392" if peers[0] else "",
        ),
    ]


async def _over_http(model: Model, scale: Scale) -> list[Row]:
    """`hark run`, asked from outside; its processor time is the kernel's count."""
    sessions, turns = min(10, scale.sessions[-1]), scale.rounds * scale.turns
    async with contextlib.AsyncExitStack() as stack:
        raw = await stack.enter_async_context(raw_sdk(model, "anthropic"))
        process = await stack.enter_async_context(hark_over_http(stack.enter_context(folder()), model, "anthropic"))
        rates, cpus = [], []
        for ask, clock in ((raw, time.process_time), (process.ask, process.cpu)):
            await at_once(ask, 1, 20)
            begun, cpu = time.monotonic(), clock()
            asked = await at_once(ask, sessions, turns)
            rates.append(len(asked) / (time.monotonic() - begun))
            cpus.append(1000 * (clock() - cpu) / len(asked))
    what = f"anthropic over HTTP, {sessions} at once"
    return [
        Row(what=f"{what}: turns", unit="/s", hark=rates[1], raw=rates[0], target="60"),
        Row(what=f"{what}: CPU per turn", unit="ms", hark=cpus[1], raw=cpus[0], target="15"),
    ]


async def _per_token(model: Model, scale: Scale, what: str, ask: Ask, raw: Ask) -> Row:
    """Microseconds by which a token more makes a turn dearer."""
    turns = max(2, scale.turns // 20)
    found: dict[Ask, list[float]] = {raw: [], ask: []}
    for _ in range(scale.rounds):
        for one in (raw, ask):
            used = []
            for tokens in (20, LONG):
                await model.answer_with(tokens=tokens)
                cpu = time.process_time()
                await at_once(one, 1, turns)
                used.append((time.process_time() - cpu) / turns)
            found[one].append(1e6 * (used[1] - used[0]) / (LONG - 20))
    await model.answer_with()
    return Row(
        what=what,
        unit="µs",
        hark=median(found[ask]),
        raw=median(found[raw]),
        target="SDK + 150",
        nanobot="650–830",
        openclaw="430–1,100",
    )


async def _slow_model(model: Model, scale: Scale, ask: Ask, raw: Ask) -> Row:
    """A model that takes a second, with as many people as are measured at the middle: all of them must be there."""
    sessions = scale.sessions[1]
    await model.answer_with(delay=1.0)
    await model.take()
    rates, most = [], 0
    for one in (raw, ask):
        begun = time.monotonic()
        await at_once(one, sessions, sessions)
        rates.append(sessions / (time.monotonic() - begun))
        most = (await model.take()).most_open
    await model.answer_with()
    return Row(
        what=f"anthropic, {sessions} at once, model takes 1 s: turns ({most} at the model at once)",
        unit="/s",
        hark=rates[1],
        raw=rates[0],
        target="40",
        nanobot="5.8 (9)",
        openclaw="2.1 (8)",
    )
