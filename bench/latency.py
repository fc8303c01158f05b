"""Overhead of a turn: from the event to the request at the model, and from the last token to the send.

Sessions write at a steady rate below what the process can do, so that the figures are of the work and not of a queue;
all at once is `throughput`.
"""

import contextlib
from functools import partial
from statistics import median

from bench.figures import Row, Scale, mid
from bench.load import after, at_once, before, paced
from bench.model import APIS, Ask, Model, raw_sdk
from bench.model_server import TOOL
from bench.process import hark_over_http
from bench.service import folder, hark

TITLE = "Latency, model time zero, 20 tokens"
RATE = 50.0
"""Turns per second."""


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Per provider: through the in-process channel for each number of sessions, then over HTTP."""
    rows: list[Row] = []
    for api in APIS:
        async with contextlib.AsyncExitStack() as stack:
            raw = await stack.enter_async_context(raw_sdk(model, api))
            channel = await stack.enter_async_context(hark(stack.enter_context(folder()), model, api))
            for sessions in scale.sessions:
                rows += await _compare(model, scale, f"{api}, {_people(sessions)}", channel.ask, raw, sessions)
            rows.append(await _tool_step(model, scale, api, partial(channel.ask, extra=TOOL)))
    async with contextlib.AsyncExitStack() as stack:
        raw = await stack.enter_async_context(raw_sdk(model, "anthropic"))
        process = await stack.enter_async_context(hark_over_http(stack.enter_context(folder()), model, "anthropic"))
        for sessions in scale.sessions[:2]:
            what = f"anthropic over HTTP, {_people(sessions)}"
            rows += await _compare(model, scale, what, process.ask, raw, sessions)
    return rows


async def _compare(model: Model, scale: Scale, what: str, ask: Ask, raw: Ask, sessions: int) -> list[Row]:
    """Rounds of both in turn; the first turn of every session is not counted."""
    await at_once(ask, sessions, sessions)
    await at_once(raw, min(sessions, 20), 20)
    await model.take()
    samples: dict[str, list[list[float]]] = {name: [] for name in ("before", "after", "raw before", "raw after")}
    for _ in range(scale.rounds):
        for prefix, one in (("raw ", raw), ("", ask)):
            asked = await (at_once(one, 1, scale.turns) if sessions == 1 else paced(one, sessions, scale.turns, RATE))
            taken = await model.take()
            samples[f"{prefix}before"].append(before(asked, taken))
            samples[f"{prefix}after"].append(after(asked, taken))

    def row(moment: str, name: str, part: float, target: str, nanobot: str, openclaw: str) -> Row:
        anchors = {"target": target, "nanobot": nanobot, "openclaw": openclaw} if sessions == 1 else {"target": target}
        return Row(
            what=f"{what}: {moment} p{round(100 * part)}",
            unit="ms",
            hark=mid(samples[name], part),
            raw=mid(samples[f"raw {name}"], part),
            **anchors,
        )

    return [
        row("in → model", "before", 0.5, "5", "144", "266"),
        row("in → model", "before", 0.99, "20", "192 (p95)", "342 (p95)"),
        row("last token → send", "after", 0.5, "5", "23", "58"),
        row("last token → send", "after", 0.99, "10", "30 (p95)", "89 (p95)"),
    ]


async def _tool_step(model: Model, scale: Scale, api: str, ask: Ask) -> Row:
    """From the last token of a call to the next request, the tool `read` in between."""
    await ask(0)
    await model.take()
    asked = await at_once(ask, 1, scale.turns // 2)
    taken = await model.take()
    between = [1000 * (taken.seen[one.number][1].arrived - taken.seen[one.number][0].said) for one in asked]
    return Row(
        what=f"{api}: tool call → next request p50", unit="ms", hark=median(between), target="8", nanobot="31–45"
    )


def _people(sessions: int) -> str:
    return "1 session" if sessions == 1 else f"{sessions} sessions"
