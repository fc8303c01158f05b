"""The commit path with a disk that takes 10 ms: this machine's own answers in a tenth of a millisecond.

One session reads each answer before it asks again; many at once do not, and their commits are made together.
"""

import contextlib
import time
from dataclasses import dataclass
from statistics import median
from typing import Literal

from bench.figures import Row, Scale
from bench.load import after, at_once, before, one_by_one
from bench.model import Ask, Model, raw_sdk
from bench.service import folder, hark

TITLE = "Commits, with a simulated fsync of 10 ms (anthropic)"
FSYNC = 0.010
READING = 0.05
"""Seconds from an answer to the next question of one session: the disk has everything by then."""


_NAMES = {"before": "in → model p50", "after": "last token → send p50", "whole": "whole turn p50", "rate": "turns"}
_UNITS = {"before": "ms", "after": "ms", "whole": "ms", "rate": "/s"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One round: medians in milliseconds, and turns per second."""

    before: float
    after: float
    whole: float
    rate: float


class SlowDisk:
    """A commit probe: counts commits and makes each take as long as a slow disk would."""

    def __init__(self) -> None:
        self.commits = 0
        self.seconds = FSYNC

    def __call__(self, moment: Literal["before", "after"]) -> None:
        if moment == "before":
            self.commits += 1
            time.sleep(self.seconds)


async def measure(model: Model, scale: Scale) -> list[Row]:
    """One session, then many at once, whose commits are made together."""
    rows: list[Row] = []
    disk = SlowDisk()
    async with contextlib.AsyncExitStack() as stack:
        raw = await stack.enter_async_context(raw_sdk(model, "anthropic"))
        home = stack.enter_context(folder())
        channel = await stack.enter_async_context(hark(home, model, "anthropic", probe=disk))
        for sessions in (1, scale.sessions[1]):
            await at_once(channel.ask, sessions, sessions)
            commits: list[float] = []
            samples: list[Sample] = []
            beside: list[Sample] = []
            for _ in range(scale.rounds):
                turns = max(sessions, scale.turns // 2)
                beside.append(await _sample(model, raw, sessions, turns))
                count = disk.commits
                samples.append(await _sample(model, channel.ask, sessions, turns))
                commits.append((disk.commits - count) / turns)
            what = "1 session" if sessions == 1 else f"{sessions} sessions at once"
            rows.append(Row(what=f"{what}: commits per turn", unit="", hark=median(commits)))
            for name, unit in _UNITS.items():
                if name == "rate" and sessions == 1:
                    continue
                hark_, raw_ = (median(getattr(one, name) for one in found) for found in (samples, beside))
                rows.append(Row(what=f"{what}: {_NAMES[name]}", unit=unit, hark=hark_, raw=raw_))
        disk.seconds = 0.0
    return rows


async def _sample(model: Model, ask: Ask, sessions: int, turns: int) -> Sample:
    await model.take()
    begun = time.monotonic()
    asked = await (one_by_one(ask, turns, READING) if sessions == 1 else at_once(ask, sessions, turns))
    rate = len(asked) / (time.monotonic() - begun)
    taken = await model.take()
    whole = median(1000 * (one.done - one.sent) for one in asked)
    return Sample(median(before(asked, taken)), median(after(asked, taken)), whole, rate)
