"""Executes the calls of one step: marks them as running before they start, and persists results in call order.

Neighbouring calls of tools that are safe in parallel run side by side, all others alone. The run parks at a call about
which a person must decide: the calls before it have their results, those after it are checked when the turn is resumed.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agent.calls.pipeline import Pipeline, Ready
from agent.calls.repair import repaired
from agent.context import Context
from agent.events import AgentEnd
from agent.journal import CallResult, Journal
from agent.message import ToolCall
from agent.spec import RunSpec
from agent.tools.base import Ask


async def run_batch(
    spec: RunSpec, calls: Sequence[ToolCall], context: Context, journal: Journal, step: int
) -> AgentEnd | None:
    """Run all calls and append their results, and the steering texts that came meanwhile, to the context.

    Returns the end of the run when it parks at a call or a call ended the turn. There are no calls when a crash came
    after the last one; then only the end of the batch is persisted.
    """
    groups = deque(_groups(spec, calls)) or deque([[]])
    while groups:
        group = groups.popleft()
        pipeline = Pipeline(spec, context, journal, step)
        prepared: list[Ready | CallResult] = []
        asked: tuple[str, Ask] | None = None
        for call in group:
            item = await pipeline.prepare(call)
            if isinstance(item, Ask):
                asked = call.call_id, item
                break
            prepared.append(item)
        if prepared or not calls:
            results = await _run_group(pipeline, prepared, journal)
            ends = list(map(pipeline.end, results))
            done = asked is None and not groups
            silent = done and context.silenced([call.result for call in results])
            kept = await journal.results(results, ends, batch_done=done, silent=silent)
            context.append(kept.entries)
            if kept.end is not None:
                return kept.end
        if asked is not None:
            parked = await journal.park(*asked)
            if isinstance(parked, AgentEnd):
                return parked
            progress = replace(spec.progress, decisions={**spec.progress.decisions, asked[0]: parked})
            spec = replace(spec, progress=progress)
            groups.appendleft(group[len(prepared) :])
    return None


async def _run_group(pipeline: Pipeline, prepared: Sequence[Ready | CallResult], journal: Journal) -> list[CallResult]:
    """Run the ready calls side by side; returns all results in call order."""
    if ready := [item for item in prepared if isinstance(item, Ready)]:
        await journal.start_calls(list(map(pipeline.start, ready)))
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(pipeline.execute(item)) if isinstance(item, Ready) else item for item in prepared
            ]
    except ExceptionGroup as errors:  # only a lost run gets here: it ends all calls of the step
        raise errors.exceptions[0] from None
    return [item if isinstance(item, CallResult) else item.result() for item in running]


def _groups(spec: RunSpec, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    """Yield the calls in order, neighbours that may run side by side in one group."""

    def parallel(call: ToolCall) -> bool:
        tools = spec.tools.by_name
        name = repaired(call, tools).name
        return name not in tools or tools[name].parallel_safe

    for side_by_side, group in itertools.groupby(calls, parallel):
        if side_by_side:
            yield list(group)
        else:
            yield from ([call] for call in group)
