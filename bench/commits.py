"""The commit path with a disk that takes 10 ms: this machine's own answers in a tenth of a millisecond."""

import contextlib
import time
from statistics import median
from typing import Literal

from bench.figures import Row, Scale
from bench.load import after, at_once, before
from bench.model import Model
from bench.service import folder, hark

TITLE = "Commits, with a simulated fsync of 10 ms (anthropic)"
FSYNC = 0.010


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
        channel = await stack.enter_async_context(
            hark(stack.enter_context(folder()), model, "anthropic", probe=disk),
        )
        for sessions in (1, scale.sessions[1]):
            await at_once(channel.ask, sessions, sessions)
            commits, rates, waits = [], [], []
            ins: list[float] = []
            outs: list[float] = []
            for _ in range(scale.rounds):
                await model.take()
                count, begun = disk.commits, time.monotonic()
                asked = await at_once(channel.ask, sessions, max(sessions, scale.turns // 2))
                rates.append(len(asked) / (time.monotonic() - begun))
                commits.append((disk.commits - count) / len(asked))
                taken = await model.take()
                ins += before(asked, taken)
                outs += after(asked, taken)
                waits += [1000 * (one.done - one.sent) for one in asked]
            what = "1 session" if sessions == 1 else f"{sessions} sessions at once"
            rows += [
                Row(what=f"{what}: commits per turn", unit="", hark=median(commits)),
                Row(what=f"{what}: in → model p50", unit="ms", hark=median(ins)),
                Row(what=f"{what}: last token → send p50", unit="ms", hark=median(outs)),
                Row(what=f"{what}: whole turn p50", unit="ms", hark=median(waits)),
                Row(what=f"{what}: turns", unit="/s", hark=median(rates)),
            ]
        disk.seconds = 0.0
    return rows
