"""What a run tells the world: one closed union, read by every surface (channels, HTTP, console) and nothing else.

Rules (design.md, "Agent events"): `agent_start` and `agent_end` come exactly once per run, whatever retries happen
inside; a run that is parked ends so, and begins again when it goes on. All but the updates carry an id made from turn,
step and ordinal, and are stored before anybody is told of them; updates are not stored.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agent.message import Usage

# Told by the id alone.
_IdOnly = Annotated[int, Field(exclude=True)]


# Kind of a notice that is a sentence of the service for people.
SAID = "said"
# Kind of a notice that a person has to decide.
WAITING = "waiting"


class Outcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    TIMEOUT = "timeout"
    LIMIT = "limit"
    FAILED = "failed"
    PARKED = "parked"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRef:
    """Which run an event belongs to, and which attempt of it writes."""

    run_id: str
    turn_id: str
    session_key: str
    # From 1, raised whenever a turn is resumed: a run of an earlier attempt writes nothing any more.
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """run: whose. at: milliseconds since the epoch."""

    run: RunRef
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _PersistedEvent(_Event):
    """An event with an id, stored, so that it can be replayed.

    id: "<turn>/<step>/<ordinal>", made here and nowhere else: an event that is made again, by a step that is done anew
    or by the repair after a crash, has the same one, and is kept once.
    """

    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", f"{self.run.turn_id}/{self._ordinal()}")

    def _ordinal(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStart(_PersistedEvent):
    """A run began, or goes on after it was parked: then with an id of its own, by its attempt.

    message: the words that it answers, where those who read the session are to see them; only as the turn begins.
    is_beat: nobody has written; people are shown nothing of it but what it says. model, thinking: of the turn as it
    begins or goes on; thinking is empty in what earlier versions have kept.
    """

    model: str
    thinking: str = ""
    message: str = ""
    is_beat: bool = False
    type: Literal["agent_start"] = "agent_start"

    def _ordinal(self) -> str:
        return "start" if self.run.attempt == 1 else f"start.{self.run.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStart(_PersistedEvent):
    """The model is asked for an answer. A second one for a step without a message_end between: the first is void.

    tries: of this attempt, from 1; each has an id of its own.
    """

    step: int
    tries: _IdOnly = 1
    type: Literal["message_start"] = "message_start"

    def _ordinal(self) -> str:
        again = (self.run.attempt, self.tries) != (1, 1)
        return f"{self.step}/0.{self.run.attempt}.{self.tries}" if again else f"{self.step}/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageUpdate(_Event):
    """A piece of the answer. call_id: whose arguments, for part "arguments".

    offset: how many characters of the same part stand before it, so that a reader knows when it has missed some.
    """

    step: int
    part: Literal["text", "thinking", "arguments"]
    delta: str
    offset: int = 0
    call_id: str = ""
    type: Literal["message_update"] = "message_update"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnd(_PersistedEvent):
    """The model's answer is whole, or cut: then text is what was planned for delivery before the cut."""

    step: int
    text: str
    calls: tuple[str, ...]
    stop_reason: str
    usage: Usage
    cut: bool = False
    type: Literal["message_end"] = "message_end"

    def _ordinal(self) -> str:
        return f"{self.step}/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionStart(_PersistedEvent):
    """A call is about to be executed; it is stored as running."""

    step: int
    call_id: str
    name: str
    arguments: str
    type: Literal["tool_execution_start"] = "tool_execution_start"

    def _ordinal(self) -> str:
        return f"{self.step}/{self.call_id}/start"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionUpdate(_Event):
    """A tool reports progress."""

    step: int
    call_id: str
    text: str
    type: Literal["tool_execution_update"] = "tool_execution_update"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionEnd(_PersistedEvent):
    """A call has its result. state: done, failed, denied or cut (outcome unknown)."""

    step: int
    call_id: str
    name: str
    state: Literal["done", "failed", "denied", "cut"]
    text: str
    type: Literal["tool_execution_end"] = "tool_execution_end"

    def _ordinal(self) -> str:
        return f"{self.step}/{self.call_id}/end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(_PersistedEvent):
    """A decision of the runner, or about it. kind: retry, cut, limit, waiting, allowed, ...

    detail: one plain sentence, empty when it was said.

    Of kind "said" it is Markdown for people: what the service says itself in a conversation that is read from events.
    number: of this attempt, from 1.
    """

    step: _IdOnly = 0
    number: _IdOnly = 1
    kind: str
    detail: str
    type: Literal["notice"] = "notice"

    def _ordinal(self) -> str:
        return f"{self.step}/n{self.run.attempt}.{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnd(_PersistedEvent):
    """A run ended, or is parked: that is no end of its turn, and has an id of its own, by the attempt.

    duration: seconds of running time. error_kind and error_message: only when it failed.
    """

    outcome: Outcome
    model: str
    usage: Usage
    duration: float
    error_kind: str | None = None
    error_message: str | None = None
    type: Literal["agent_end"] = "agent_end"

    @property
    def is_last(self) -> bool:
        """Nothing more comes of the turn."""
        return self.outcome is not Outcome.PARKED

    def _ordinal(self) -> str:
        return "end" if self.is_last else f"end.{self.run.attempt}"


def answer_end(turn_id: str, step: int) -> str:
    """The id of a step's message_end."""
    return f"{turn_id}/{step}/1"


def first_and_last(turn_id: str) -> tuple[str, str]:
    """The ids of a run's first agent_start and last agent_end."""
    return f"{turn_id}/start", f"{turn_id}/end"


PersistedEvent = AgentStart | MessageStart | MessageEnd | ToolExecutionStart | ToolExecutionEnd | Notice | AgentEnd
UpdateEvent = MessageUpdate | ToolExecutionUpdate
AgentEvent = PersistedEvent | UpdateEvent

_json: TypeAdapter[AgentEvent] = TypeAdapter(AgentEvent)


def dump(event: AgentEvent) -> str:
    """An event as the JSON that is stored and that every surface reads."""
    return _json.dump_json(event).decode()


def load(text: str | bytes) -> AgentEvent:
    """Raises pydantic.ValidationError when the text is no event."""
    return _json.validate_json(text)
