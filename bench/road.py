"""What one message costs in calls, statements, commits and changes of thread: counts, the same on every machine."""

import asyncio
from pathlib import Path

import structlog

from bench.figures import Row, Scale
from bench.model import Model
from bench.service import folder
from tests.road.roads import AGED, Road, travelling

TITLE = "Road: from a message at Telegram to its answer recorded as sent (see `python -m tests.road`)"


async def measure(model: Model, scale: Scale) -> list[Row]:
    """In a thread with an event loop of its own, because the counting changes the loop."""
    aged = min(AGED, scale.ages[-1])
    with folder() as home:
        young, message, tool = await asyncio.to_thread(asyncio.run, _counted(home, aged))
    rows = [
        Row(what="young session: calls", unit="", hark=len(young.trace.calls), target="600"),
        Row(what="young session: files", unit="", hark=len(young.trace.files()), target="60"),
        Row(what=f"after {aged} turns: calls", unit="", hark=len(message.trace.calls), target="600"),
    ]
    for what, road, target in (("plain message", message, "55"), ("with a tool", tool, "85")):
        name = f"after {aged} turns, {what}"
        rows.append(Row(what=f"{name}: SQL statements", unit="", hark=len(road.work.statements), target=target))
        rows.append(Row(what=f"{name}: commits", unit="", hark=road.work.commits))
        rows.append(Row(what=f"{name}: changes of thread", unit="", hark=road.work.hops))
    return rows


async def _counted(home: Path, aged: int) -> tuple[Road, Road, Road]:
    with structlog.testing.capture_logs():
        async with travelling(home) as traveller:
            young = await traveller.message()
            for _ in range(aged):
                await traveller.message()
            return young, await traveller.message(), await traveller.tool()
