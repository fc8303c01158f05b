"""Executes the calls of one step: validated, marked as running before they begin, results stored in call order.

Neighbouring calls that declare themselves safe in parallel run side by side, all others alone. Whatever a tool does
wrong becomes an error result the model can read; nothing of it ends the run. At a call about which a person must
decide the run parks: those before it have their results, those behind it are checked anew when the turn goes on.
"""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from agent.context import Context
from agent.errors import AgentError, ToolError
from agent.events import AgentEnd, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from agent.journal import CallResult, CallState, Journal
from agent.message import Image, ToolCall, ToolOutput, ToolResult
from agent.spec import RunSpec
from agent.text import well_formed
from agent.tools.base import Ask, CallContext, Decision, Tool
from agent.tools.schema import ArgumentsError, parse_arguments

# A call that may run: tool, parameters, context.
_Ready = tuple[Tool[Any], Any, CallContext]


async def run_batch(
    spec: RunSpec, calls: Sequence[ToolCall], context: Context, journal: Journal, step: int
) -> AgentEnd | None:
    """Run all calls and append their results, and steering texts that came meanwhile, to the context.

    Returns the end of the run when it parks at one of them, or one of them ended the turn. Without calls (a crash came
    behind the last one) what is left to do is that.
    """
    groups = list(_groups(spec, calls)) or [[]]
    for number, group in enumerate(groups, 1):
        prepared: list[_Ready | CallResult] = []
        asked: tuple[str, Ask] | None = None
        for call in group:
            item = await _prepare(spec, call, journal, step)
            if isinstance(item, Ask):
                asked = call.call_id, item
                break
            prepared.append(item)
        if prepared or not calls:
            results = await _run_group(spec, group[: len(prepared)], prepared, journal, step)
            ends = [_end(spec, step, result) for result in results]
            done = asked is None and number == len(groups)
            silent = done and context.silenced([call.result for call in results])
            kept = await journal.results(results, ends, batch_done=done, silent=silent)
            context.append(kept.entries)
            if kept.end is not None:
                return kept.end
        if asked is not None:
            return await journal.park(*asked)
    return None


async def _run_group(
    spec: RunSpec, calls: Sequence[ToolCall], prepared: Sequence[_Ready | CallResult], journal: Journal, step: int
) -> list[CallResult]:
    """Run side by side what is ready; returns all results, in call order."""
    ready = [call for call, item in zip(calls, prepared, strict=True) if not isinstance(item, CallResult)]
    if ready:
        await journal.start_calls([_start(spec, step, call) for call in ready])
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [
                item if isinstance(item, CallResult) else tasks.create_task(_execute(call, *item))
                for call, item in zip(calls, prepared, strict=True)
            ]
    except ExceptionGroup as errors:  # only a lost run gets here: it ends all calls of the step
        raise errors.exceptions[0] from None
    return [item if isinstance(item, CallResult) else item.result() for item in running]


def _groups(spec: RunSpec, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    """Calls in order; neighbours that may run side by side stand in one group."""

    def parallel(call: ToolCall) -> bool:
        return call.name not in spec.tools or spec.tools[call.name].parallel_safe

    for side_by_side, group in itertools.groupby(calls, parallel):
        if side_by_side:
            yield list(group)
        else:
            yield from ([call] for call in group)


async def _prepare(spec: RunSpec, call: ToolCall, journal: Journal, step: int) -> _Ready | CallResult | Ask:
    """The steps before a call runs: it is ready, or has its result already, or a person must decide."""
    decision = spec.decisions.get(call.call_id)
    if decision is not None and not decision.allows:
        return _denied(call, decision)
    tool = spec.tools.get(call.name)
    if tool is None:
        names = ", ".join(sorted(spec.tools)) or "none"
        return _result(call, "failed", f"There is no tool named {call.name!r}. Tools: {names}.")
    try:
        parameters = parse_arguments(tool, call.arguments)
        context = _context(spec, call, journal, step)
        ask = await tool.asks(parameters, context)
    except ArgumentsError as error:
        return _result(call, "failed", str(error))
    except AgentError:
        raise
    except Exception as error:
        return _result(call, "failed", f"{type(error).__name__}: {error}")
    if ask is None or (decision is not None and decision.digest == ask.digest):
        return tool, parameters, context
    return ask


def _context(spec: RunSpec, call: ToolCall, journal: Journal, step: int) -> CallContext:
    def update(text: str) -> None:
        journal.tell(ToolExecutionUpdate(run=spec.ref, at=spec.now(), step=step, call_id=call.call_id, text=text))

    return CallContext(
        turn_id=spec.ref.turn_id,
        session_key=spec.ref.session_key,
        call_id=call.call_id,
        update=update,
        started=partial(journal.process_started, call.call_id),
        background=spec.background,
    )


async def _execute(call: ToolCall, tool: Tool[Any], parameters: Any, context: CallContext) -> CallResult:
    try:
        output: ToolOutput = await tool.run(parameters, context)
    except AgentError:
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _result(call, "failed", "The tool was cancelled by itself; its outcome is unknown.")
    except ToolError as error:
        return _result(call, "failed", str(error))
    except Exception as error:
        return _result(call, "failed", f"{type(error).__name__}: {error}")
    return _result(call, "failed" if output.is_error else "done", output.text, output.images)


def _start(spec: RunSpec, step: int, call: ToolCall) -> ToolExecutionStart:
    at, call_id = spec.now(), call.call_id
    return ToolExecutionStart(run=spec.ref, at=at, step=step, call_id=call_id, name=call.name, arguments=call.arguments)


def _end(spec: RunSpec, step: int, call: CallResult) -> ToolExecutionEnd:
    return ToolExecutionEnd(
        run=spec.ref,
        at=spec.now(),
        step=step,
        call_id=call.result.call_id,
        name=call.result.name,
        state=call.state,
        text=call.result.text,
    )


def _denied(call: ToolCall, decision: Decision) -> CallResult:
    text = decision.reason
    if decision.state == "denied":
        text = "A person denied this call; it was not executed." + (f" They said: {text}" if text else "")
    return _result(call, "denied", text)


def _result(call: ToolCall, state: CallState, text: str, images: tuple[Image, ...] = ()) -> CallResult:
    return CallResult(ToolResult(call.call_id, call.name, well_formed(text), state != "done", images), state)
