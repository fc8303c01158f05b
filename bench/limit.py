"""Processor time and memory of `hark run` beside those of the least that any server must do (`limit_server.py`)."""

import contextlib
from statistics import median

from bench.figures import Row, Scale
from bench.load import at_once
from bench.model import Asked, Model
from bench.process import HarkProcess, hark_over_http, limit_over_http
from bench.service import folder

TITLE = "Limit: over HTTP, openai-chat, 20 tokens; beside (raw SDK): a bare server, three commits, one call of the SDK"
# Seconds that the model takes where it takes time.
_DELAY = 0.2
_SESSIONS = 10


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Both processes side by side, asked in turn."""
    async with contextlib.AsyncExitStack() as stack:
        home, beside = (stack.enter_context(folder()) for _ in range(2))
        limit = await stack.enter_async_context(limit_over_http(beside, model))
        hark = await stack.enter_async_context(hark_over_http(home, model, "openai-chat"))
        for one in (limit, hark):
            await one.ask(0)
        after_turn = Row(
            what="memory after the first turn, openai imported",
            unit="MiB",
            hark=hark.memory(),
            raw=limit.memory(),
            target="84",
        )
        rows = []
        for at_a_time, delay in ((1, 0.0), (_SESSIONS, 0.0), (_SESSIONS, _DELAY)):
            rows += await _cpu(model, scale, hark, limit, at_a_time, delay)
    return [*rows, after_turn]


async def _cpu(
    model: Model, scale: Scale, hark: HarkProcess, limit: HarkProcess, at_a_time: int, delay: float
) -> list[Row]:
    """CPU per turn, and how many times that of the limit it is. delay: seconds that the model takes."""
    await model.answer_with(delay=delay)
    turns, cpus = max(_SESSIONS, scale.turns // 4), dict[HarkProcess, list[float]]()
    for number in range(1 + 4 * scale.rounds):
        for one in (limit, hark):
            begun = one.cpu()
            asked = await (at_once(one.ask, _SESSIONS, turns) if at_a_time > 1 else _in_turn(one, turns))
            if number:  # the first round warms up
                cpus.setdefault(one, []).append(1000 * (one.cpu() - begun) / len(asked))
    await model.answer_with()
    ours, least = median(cpus[hark]), median(cpus[limit])
    what = f"{at_a_time} at a time, model takes {f'{delay:g} s' if delay else 'no time'}: CPU per turn"
    return [
        Row(what=what, unit="ms", hark=ours, raw=least),
        Row(what=f"{what}, as a multiple", unit="times", hark=ours / least),
    ]


async def _in_turn(one: HarkProcess, turns: int) -> list[Asked]:
    """One question after the other, in as many sessions as where they are asked at once."""
    return [await one.ask(number % _SESSIONS) for number in range(turns)]
