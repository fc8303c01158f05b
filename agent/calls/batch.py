"""Executes the calls of one step: marks them as running before they start, and persists results in call order.

Neighbouring calls of tools that are safe in parallel run side by side, all others alone. The run parks at a call about
which a person must decide: the calls before it have their results, those after it are checked when the turn is resumed.
Calls behind it that need a decision as well are decided with it. A decision counts only for a call that is the same
when its turn has come: what a call before it has changed can make it be asked about once more. When a person steers the
run, calls that have not begun are skipped; whether that is so is read from the store wherever calls begin or end.
"""

import asyncio
import hashlib
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agent.calls.pipeline import Pipeline, Ready
from agent.calls.repair import repaired
from agent.context import Context
from agent.errors import HALTED, RunLost, ToolError
from agent.events import AgentEnd
from agent.journal import Begun, CallResult, Journal
from agent.message import Mark, ToolCall, ToolResult
from agent.spec import RunSpec
from agent.tools.base import Ask, Asked

# The most calls that are decided together.
MOST_TOGETHER = 50
_SKIPPED = "Not executed: a person has written something new, which follows. Call it again if it is still wanted."


async def run_batch(
    spec: RunSpec, calls: Sequence[ToolCall], context: Context, journal: Journal, step: int, *, steered: bool = False
) -> AgentEnd | None:
    """Run all calls and append their results, and the steering texts that came meanwhile, to the context.

    steered: a steering text came before any of them could begin. Returns the end of the run when it parks at a call or
    a call ended the turn. There are no calls when a crash came after the last one; then only the end of the batch is
    persisted.
    """
    groups = deque(_groups(spec, calls)) or deque([[]])
    while groups:
        group = groups.popleft()
        pipeline = Pipeline(spec, context, journal, step)
        if steered:
            return await _skip(pipeline, (), itertools.chain(group, *groups), context, journal)
        prepared: list[Ready | CallResult] = []
        asked: Asked | None = None
        for call in group:
            item = await pipeline.prepare(call)
            if isinstance(item, Ask):
                asked = Asked(call.call_id, item)
                break
            prepared.append(item)
        if prepared or not calls:
            results = await _run_group(pipeline, prepared, journal)
            if results is None:
                behind = itertools.chain(group[len(prepared) :], *groups)
                return await _skip(pipeline, prepared, behind, context, journal)
            ends = list(map(pipeline.end, results))
            done = asked is None and not groups
            silent = done and context.silenced([call.result for call in results])
            kept = await journal.results(results, ends, batch_done=done, silent=silent)
            context.append(kept.entries)
            if kept.halted:
                raise RunLost(HALTED)
            if kept.end is not None:
                return kept.end
            steered = kept.steered
        if asked is not None:
            group = group[len(prepared) :]
            if steered:
                return await _skip(pipeline, (), itertools.chain(group, *groups), context, journal)
            ask = await _together(pipeline, asked, itertools.chain(group[1:], *groups))
            parked = await journal.park(asked.call_id, ask)
            if isinstance(parked, AgentEnd):
                return parked
            decided = ask.decisions(asked.call_id, parked.state, parked.reason)
            spec = replace(spec, progress=replace(spec.progress, decisions={**spec.progress.decisions, **decided}))
            groups.appendleft(group)
    return None


async def _together(pipeline: Pipeline, first: Asked, behind: Iterable[ToolCall]) -> Ask:
    """Return the Ask for a call and for those behind it that need a decision of the same people as well."""

    def alike(ask: Ask) -> bool:
        own, others = ((one.seconds, one.runs_unanswered, one.alone) for one in (ask, first.ask))
        return not ask.question and own == others

    found = [first]
    for call in behind if alike(first.ask) else ():
        item = await pipeline.prepare(call)
        if isinstance(item, Ask) and alike(item):
            found.append(Asked(call.call_id, item))
            if len(found) == MOST_TOGETHER:
                break
    if len(found) == 1:
        return first.ask
    task = any(one.ask.task for one in found)
    offering = [one.ask for one in found if one.ask.grants and one.ask.task == task]
    return replace(
        first.ask,
        digest=hashlib.sha256("".join(one.ask.digest for one in found).encode()).hexdigest(),
        subject="\n".join(f"{number}. {one.ask.subject}" for number, one in enumerate(found, 1)),
        why=tuple(dict.fromkeys(why for one in found for why in one.ask.why)),
        risks=tuple(dict.fromkeys(risk for one in found for risk in one.ask.risks)),
        grants=tuple(dict.fromkeys(grant for ask in offering for grant in ask.grants)),
        granted="; ".join(dict.fromkeys(ask.granted for ask in offering)),
        task=task,
        calls=tuple(found),
    )


async def _skip(
    pipeline: Pipeline,
    prepared: Iterable[Ready | CallResult],
    behind: Iterable[ToolCall],
    context: Context,
    journal: Journal,
) -> AgentEnd | None:
    """Give the calls that have not begun a result that says so; the text that steers follows it."""
    results = [item if isinstance(item, CallResult) else _skipped(item.call) for item in prepared]
    results += map(_skipped, behind)
    kept = await journal.results(results, list(map(pipeline.end, results)), batch_done=True, silent=False)
    context.append(kept.entries)
    if kept.halted:
        raise RunLost(HALTED)
    return kept.end


def _skipped(call: ToolCall) -> CallResult:
    return CallResult(ToolResult(call.call_id, call.name, _SKIPPED, is_error=True, mark=Mark.SKIPPED), "denied")


async def _run_group(
    pipeline: Pipeline, prepared: Sequence[Ready | CallResult], journal: Journal
) -> list[CallResult] | None:
    """Run the ready calls side by side; returns all results in call order, or None if a text that steers waits."""
    if ready := [item for item in prepared if isinstance(item, Ready)]:
        starts, follows = list(map(pipeline.start, ready)), [one.follows for one in ready if one.follows]
        begun = await journal.start_calls(starts, follows=follows)
        if begun is Begun.DEPENDS:
            begun = await journal.start_calls(starts, await _reach_out(ready), follows)
        if begun is Begun.STEERED:
            return None
        if begun is not Begun.YES:
            raise RunLost(HALTED)
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(pipeline.execute(item)) if isinstance(item, Ready) else item for item in prepared
            ]
    except ExceptionGroup as errors:  # only a lost run gets here: it ends all calls of the step
        raise errors.exceptions[0] from None
    return [item if isinstance(item, CallResult) else item.result() for item in running]


async def _reach_out(ready: Sequence[Ready]) -> bool:
    """Whether one of the calls leaves this machine, as its tool declares; so does one that cannot tell any more."""
    try:
        return any([await item.tool.reaches_out(item.parameters, item.context) for item in ready])
    except ToolError:
        return True


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
