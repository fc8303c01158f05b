"""A model client that plays the script language of the stand-ins in this process, without a provider's protocol.

It holds every request against what strict providers want; what is wrong is kept in `violations`.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from agent.errors import ErrorKind, ModelError
from agent.message import Mark, Message, Part, Text, Thinking, ToolCall, ToolResult, Usage
from agent.models import failures
from agent.models.base import (
    Alive,
    Answer,
    ArgumentsDelta,
    ModelRequest,
    StopReason,
    StreamPart,
    TextDelta,
    ThinkingDelta,
)
from tests.serving import PlainModel
from tests.standins.request_log import Request
from tests.standins.script import Break, Call, Fail, Hang, Ping, Say, Script, Stop, Think
from tests.watch import Watch

_STOPS: dict[str, StopReason] = {"max_tokens": "max_output", "refusal": "refusal", "end_turn": "end"}
USAGE = Usage(10, 5)
"""Of every answer."""


class ScriptedModel(Script, PlainModel):
    """Without a script it repeats what was said last."""

    name = "test/scripted"

    def __init__(self, watch: Watch | None = None, *, context_window: int = 100_000, max_output: int = 1000) -> None:
        Script.__init__(self)
        self.context_window = context_window
        self.max_output = max_output
        self.watch = watch or Watch()
        self.requests: list[ModelRequest] = []
        self.active = 0
        self._ids = itertools.count(1)
        self.whenever("Save now into a file", "nothing")

    async def until_requests(self, count: int) -> ModelRequest:
        """The request of that number (from 1), once it has come."""
        await self.watch.until(lambda: len(self.requests) >= count, f"request {count}")
        return self.requests[count - 1]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        self.requests.append(request)
        self.violations += invalid(request)
        answer = self.answer(as_record(request, len(self.requests)))
        self.active += 1
        self.watch.changed()
        try:
            async for part in self._play(answer, request):
                yield part
                await asyncio.sleep(0)
        finally:
            self.active -= 1
            self.watch.changed()

    async def _play(self, answer: Sequence[Any], request: ModelRequest) -> AsyncGenerator[StreamPart, None]:
        cut = next((part for part in answer if isinstance(part, Break)), None)
        parts: list[Part] = []
        stop: StopReason = "end"
        deltas = 0
        for part in answer:
            match part:
                case Say() | Think() | Call():
                    made = self._part(part)
                    for piece in part.pieces():
                        if cut is not None and deltas == cut.after_chunks:
                            raise _broken()
                        if part.gate is not None:
                            await part.gate.wait()
                        deltas += 1
                        yield _delta(made, piece)
                    parts.append(made)
                case Ping():
                    yield Alive()
                case Stop(reason=reason):
                    stop = _STOPS[reason]
                case Hang():
                    self.watch.changed()
                    await part.wait()
                case Fail():
                    raise _failed(part)
                case Break():
                    raise _broken()
        message = Message("assistant", tuple(parts), self.name)
        yield Answer(message, "tool_use" if message.tool_calls and stop == "end" else stop, USAGE)

    def _part(self, part: Say | Think | Call) -> Part:
        match part:
            case Say():
                return Text(part.text)
            case Think():
                return Thinking(part.text, signature="signed")
            case Call():
                return ToolCall(part.id if part.id is not None else f"call-{next(self._ids)}", part.name, part.raw)


def _delta(part: Part, piece: str) -> StreamPart:
    match part:
        case Text():
            return TextDelta(piece)
        case Thinking():
            return ThinkingDelta(piece)
        case ToolCall(call_id=call_id, name=name):
            return ArgumentsDelta(call_id, name, piece)
    raise AssertionError(part)


def _broken() -> ModelError:
    return ModelError(ErrorKind.NETWORK, "the connection broke, as scripted")


def _failed(part: Fail) -> ModelError:
    error = {"type": part.kind or "", "message": part.message or "A scripted failure."}
    headers = {} if part.retry_after is None else {"retry-after": f"{part.retry_after:g}"}
    return failures.of_payload({"error": error}, (), part.status, headers)


def as_record(request: ModelRequest, number: int) -> Request:
    """The request in the form that the script's functions read, without what is recalled, which nobody has said."""
    lines = (message for message in request.messages if message.mark is not Mark.RECALLED)
    messages = [{"role": message.role, "content": message.text} for message in lines]
    return Request(number, 0.0, "", {}, b"", {"system": request.system, "messages": messages})


def invalid(request: ModelRequest) -> list[str]:
    """What a strict provider would refuse."""
    wrong: list[str] = []
    messages = request.messages
    if not messages or messages[0].role != "user" or messages[-1].role == "assistant":
        wrong.append("begins without a user message, or ends with one of the assistant")
    seen: set[str] = set()
    asked: list[str] = []
    for number, message in enumerate(messages):
        found = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        if (message.role == "tool") != bool(asked) or found != asked:
            wrong.append(f"message {number} ({message.role}) has results of {found}, asked were {asked}")
        asked = [call.call_id for call in message.tool_calls]
        if len(set(asked)) != len(asked) or seen.intersection(asked):
            wrong.append(f"call ids used twice: {asked}")
        seen.update(asked)
        if message.role == "assistant" and not asked and not message.text.strip():
            wrong.append(f"message {number} of the assistant is empty")
    return wrong


def texts(request: ModelRequest, role: str) -> list[str]:
    """The texts of one role's messages; of results, those of a message joined by line ends."""
    if role != "tool":
        return [message.text for message in request.messages if message.role == role]
    results = (message.parts for message in request.messages if message.role == "tool")
    return ["\n".join(part.text for part in parts if isinstance(part, ToolResult)) for parts in results]
