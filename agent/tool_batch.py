"""Executes the calls of one step: validated, marked as running before they begin, results stored in call order.

Neighbouring calls that declare themselves safe in parallel run side by side, all others alone. Whatever a tool does
wrong becomes an error result the model can read; nothing of it ends the run.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from agent.context import Context
from agent.errors import AgentError
from agent.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from agent.journal import CallResult, Journal
from agent.message import ToolCall, ToolOutput, ToolResult
from agent.spec import RunSpec
from agent.text import well_formed
from agent.tools.base import CallContext, Parameters, Tool
from agent.tools.schema import ArgumentsError, parse_arguments


async def run_batch(spec: RunSpec, calls: Sequence[ToolCall], context: Context, journal: Journal, step: int) -> None:
    """Run all calls and append their results, and steering texts that came meanwhile, to the context."""
    groups = list(_groups(spec, calls))
    for number, group in enumerate(groups, 1):
        prepared = [_prepare(spec, call) for call in group]
        ready = [call for call, item in zip(group, prepared, strict=True) if not isinstance(item, CallResult)]
        if ready:
            await journal.start_calls([_start(spec, step, call) for call in ready])
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    item
                    if isinstance(item, CallResult)
                    else tasks.create_task(_execute(spec, call, *item, journal, step))
                    for call, item in zip(group, prepared, strict=True)
                ]
        except ExceptionGroup as errors:  # only a lost run gets here: it ends all calls of the step
            raise errors.exceptions[0] from None
        results = [item if isinstance(item, CallResult) else item.result() for item in running]
        ends = [_end(spec, step, result) for result in results]
        context.append(await journal.results(results, ends, batch_done=number == len(groups)))


def _groups(spec: RunSpec, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    """Calls in order; neighbours that may run side by side stand in one group."""
    group: list[ToolCall] = []
    for call in calls:
        tool = spec.tools.get(call.name)
        parallel = tool is None or tool.parallel_safe
        if not parallel and group:
            yield group
            group = []
        group.append(call)
        if not parallel:
            yield group
            group = []
    if group:
        yield group


def _prepare(spec: RunSpec, call: ToolCall) -> tuple[Tool[Any], Parameters] | CallResult:
    tool = spec.tools.get(call.name)
    if tool is None:
        names = ", ".join(sorted(spec.tools)) or "none"
        return _failed(call, f"There is no tool named {call.name!r}. Tools: {names}.")
    try:
        return tool, parse_arguments(tool, call.arguments)
    except ArgumentsError as error:
        return _failed(call, str(error))


async def _execute(
    spec: RunSpec, call: ToolCall, tool: Tool[Any], parameters: Parameters, journal: Journal, step: int
) -> CallResult:
    def update(text: str) -> None:
        journal.tell(ToolExecutionUpdate(run=spec.ref, at=spec.now(), step=step, call_id=call.call_id, text=text))

    async def started(pid: int, since: str) -> None:
        await journal.process_started(call.call_id, pid, since)

    context = CallContext(
        turn_id=spec.ref.turn_id,
        session_key=spec.ref.session_key,
        call_id=call.call_id,
        update=update,
        started=started,
    )
    try:
        output: ToolOutput = await tool.run(parameters, context)
    except AgentError:
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return _failed(call, "The tool was cancelled by itself; its outcome is unknown.")
    except Exception as error:
        return _failed(call, f"{type(error).__name__}: {error}")
    result = ToolResult(call.call_id, call.name, well_formed(output.text), output.is_error, output.images)
    return CallResult(result, "failed" if output.is_error else "done", output.sends)


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
        sends=call.sends,
    )


def _failed(call: ToolCall, text: str) -> CallResult:
    return CallResult(ToolResult(call.call_id, call.name, well_formed(text), is_error=True), "failed")
