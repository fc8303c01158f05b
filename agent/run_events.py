"""Makes the kept events of runs; the only place that knows how their ids are made: "<turn>/<step>/<ordinal>".

An event that is made again, by a step that is done anew or by the repair after a crash, has the same id, and is kept
once.
"""

from collections.abc import Sequence
from typing import Literal

from agent.events import (
    AgentEnd,
    AgentStart,
    MessageEnd,
    MessageStart,
    Notice,
    Outcome,
    RunRef,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from agent.message import Message, ToolCall, ToolResult, ToolSend, Usage


def start_id(turn_id: str) -> str:
    """The id of a run's first event."""
    return f"{turn_id}/start"


def end_id(turn_id: str) -> str:
    """The id of a run's last event."""
    return f"{turn_id}/end"


def answer_ids(turn_id: str, step: int) -> tuple[str, str]:
    """Between which ids the message_starts of a step stand: from the first of these, before the second."""
    return f"{turn_id}/{step}/0", f"{turn_id}/{step}/1"


def agent_start(run: RunRef, at: int, model: str) -> AgentStart:
    """A run begins. model: which one will answer."""
    return AgentStart(run=run, at=at, id=start_id(run.turn_id), model=model)


def agent_end(
    run: RunRef,
    at: int,
    outcome: Outcome,
    *,
    model: str,
    usage: Usage,
    duration: float,
    error_kind: str | None,
    error_message: str | None,
) -> AgentEnd:
    """A run has ended. duration: seconds of running time."""
    return AgentEnd(
        run=run,
        at=at,
        id=end_id(run.turn_id),
        outcome=outcome,
        model=model,
        usage=usage,
        duration=duration,
        error_kind=error_kind,
        error_message=error_message,
    )


def message_start(run: RunRef, at: int, step: int, tries: int = 1) -> MessageStart:
    """An answer begins. tries: of this attempt, from 1; each has an id of its own."""
    first, _ = answer_ids(run.turn_id, step)
    event_id = first if (run.attempt, tries) == (1, 1) else f"{first}.{run.attempt}.{tries}"
    return MessageStart(run=run, at=at, id=event_id, step=step)


def message_end(
    run: RunRef,
    at: int,
    step: int,
    message: Message,
    *,
    stop_reason: str = "other",
    usage: Usage = Usage(),  # noqa: B008 (frozen)
    cut: bool = False,
) -> MessageEnd:
    """An answer is whole, or cut."""
    return MessageEnd(
        run=run,
        at=at,
        id=answer_ids(run.turn_id, step)[1],
        step=step,
        text=message.text,
        calls=tuple(call.call_id for call in message.tool_calls),
        stop_reason=stop_reason,
        usage=usage,
        cut=cut,
    )


def tool_start(run: RunRef, at: int, step: int, call: ToolCall) -> ToolExecutionStart:
    """A call is about to be executed."""
    return ToolExecutionStart(
        run=run,
        at=at,
        id=f"{run.turn_id}/{step}/{call.call_id}/start",
        step=step,
        call_id=call.call_id,
        name=call.name,
        arguments=call.arguments,
    )


def tool_end(
    run: RunRef,
    at: int,
    step: int,
    result: ToolResult,
    state: Literal["done", "failed", "denied", "cut"],
    sends: Sequence[ToolSend] = (),
) -> ToolExecutionEnd:
    """A call has its result."""
    return ToolExecutionEnd(
        run=run,
        at=at,
        id=f"{run.turn_id}/{step}/{result.call_id}/end",
        step=step,
        call_id=result.call_id,
        name=result.name,
        state=state,
        text=result.text,
        sends=tuple(sends),
    )


def notice(run: RunRef, at: int, step: int, number: int, kind: str, detail: str) -> Notice:
    """A decision of the runner. number: of this attempt, from 1."""
    return Notice(run=run, at=at, id=f"{run.turn_id}/{step}/n{run.attempt}.{number}", kind=kind, detail=detail)
