"""The events of a run: one closed union, from which every surface (channels, HTTP, console) learns all it shows.

Rules (design.md, "Agent events"): `agent_start` and `agent_end` come exactly once per run, whatever retries happen
inside; a parked run ends with `agent_end` and starts again when the turn is resumed. Every event but an update has an
id made from turn, step and ordinal, and is persisted before it is published. Updates are not persisted.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from agent.message import Usage

# A number that is left out of the JSON, because the id has it.
_IdOnly = Annotated[int, Field(exclude=True)]

# The kind of a notice that holds Markdown of the service for people.
SAID = "said"
# The kind of a notice that says that a person has to decide.
WAITING = "waiting"
# The kind of a notice that says that the turn goes on when a model works again.
PARKED = "parked"


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
    """What all events have in common."""

    run: RunRef
    # When it happened, in milliseconds since the epoch.
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _PersistedEvent(_Event):
    """An event that is persisted under an id, so that it can be replayed."""

    # "<turn>/<step>/<ordinal>". A step that is repeated, or the repair after a crash, makes the same event with the
    # same id, so that it is persisted once.
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", f"{self.run.turn_id}/{self._ordinal()}")

    def _ordinal(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStart(_PersistedEvent):
    """A run started, or was resumed after it was parked; the attempt is then part of the id."""

    model: str
    # The thinking level; empty in events of earlier versions.
    thinking: str = ""
    # The words that the turn answers, for readers of the session; only in the first attempt.
    message: str = ""
    # Whether this is a beat: then people are shown nothing of the turn but its reply.
    is_beat: bool = False
    type: Literal["agent_start"] = "agent_start"

    def _ordinal(self) -> str:
        return "start" if self.run.attempt == 1 else f"start.{self.run.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStart(_PersistedEvent):
    """The model is asked for an answer. A second one for the same step, without message_end, makes the first void."""

    step: int
    # Counts the tries of this step within the attempt, from 1; it is part of the id.
    tries: _IdOnly = 1
    type: Literal["message_start"] = "message_start"

    def _ordinal(self) -> str:
        again = (self.run.attempt, self.tries) != (1, 1)
        return f"{self.step}/0.{self.run.attempt}.{self.tries}" if again else f"{self.step}/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageUpdate(_Event):
    """A piece of the answer."""

    step: int
    part: Literal["text", "thinking", "arguments"]
    delta: str
    # How many characters of the same part came before this piece, so that a reader notices when it has missed some.
    offset: int = 0
    # The call whose arguments these are; empty for other parts.
    call_id: str = ""
    type: Literal["message_update"] = "message_update"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEnd(_PersistedEvent):
    """The model's answer is complete, or was cut: then `text` is what was planned for delivery before the cut."""

    step: int
    text: str
    calls: tuple[str, ...]
    stop_reason: str
    usage: Usage
    cut: bool = False
    # The model that answered, "provider/model"; empty in events of earlier versions and after a crash.
    model: str = ""
    type: Literal["message_end"] = "message_end"

    def _ordinal(self) -> str:
        return f"{self.step}/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionStart(_PersistedEvent):
    """A call is about to be executed; it is persisted as running."""

    step: int
    call_id: str
    name: str
    arguments: str
    type: Literal["tool_execution_start"] = "tool_execution_start"

    def _ordinal(self) -> str:
        return f"{self.step}/{self.call_id}/start"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionUpdate(_Event):
    """A tool reports the progress of a call."""

    step: int
    call_id: str
    text: str
    type: Literal["tool_execution_update"] = "tool_execution_update"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExecutionEnd(_PersistedEvent):
    """A call has its result."""

    step: int
    call_id: str
    name: str
    # "cut" means that the outcome is unknown.
    state: Literal["done", "failed", "denied", "cut"]
    text: str
    type: Literal["tool_execution_end"] = "tool_execution_end"

    def _ordinal(self) -> str:
        return f"{self.step}/{self.call_id}/end"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStart(_PersistedEvent):
    """The older part of the conversation is about to be summed up: in a run, after its end, or by a command."""

    # The seq of the last line of the transcript.
    end: _IdOnly = 0
    # Of the next request without it, about.
    tokens: int
    type: Literal["compaction_start"] = "compaction_start"

    def _ordinal(self) -> str:
        return f"c{self.end}.{self.run.attempt}/start"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEnd(_PersistedEvent):
    """The conversation was summed up, or could not be and stays as it is."""

    end: _IdOnly = 0
    done: bool
    type: Literal["compaction_end"] = "compaction_end"

    def _ordinal(self) -> str:
        return f"c{self.end}.{self.run.attempt}/end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(_PersistedEvent):
    """A decision of the runner, or something that the service says itself."""

    step: _IdOnly = 0
    # Counts the notices of the attempt, from 1.
    number: _IdOnly = 1
    # retry, cut, limit, waiting, allowed, said, …
    kind: str
    # One plain sentence, empty when people have read it before in this run. Of kind `SAID`: Markdown for people.
    detail: str
    type: Literal["notice"] = "notice"

    def _ordinal(self) -> str:
        return f"{self.step}/n{self.run.attempt}.{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnd(_PersistedEvent):
    """A run ended. When it was parked its turn has not ended, and the attempt is part of the id."""

    outcome: Outcome
    model: str
    usage: Usage
    # Running time in seconds.
    duration: float
    # US dollars of the turn's model calls whose price is known; None if that is none.
    money: float | None = None
    # Both are set only when the run failed.
    error_kind: str | None = None
    error_message: str | None = None
    type: Literal["agent_end"] = "agent_end"

    @property
    def is_last(self) -> bool:
        """Whether the turn has ended with this run."""
        return self.outcome is not Outcome.PARKED

    def _ordinal(self) -> str:
        return "end" if self.is_last else f"end.{self.run.attempt}"


def answer_end(turn_id: str, step: int) -> str:
    """The id of a step's message_end."""
    return f"{turn_id}/{step}/1"


def first_and_last(turn_id: str) -> tuple[str, str]:
    """The ids of a run's first agent_start and last agent_end."""
    return f"{turn_id}/start", f"{turn_id}/end"


PersistedEvent = (
    AgentStart
    | MessageStart
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionEnd
    | CompactionStart
    | CompactionEnd
    | Notice
    | AgentEnd
)
UpdateEvent = MessageUpdate | ToolExecutionUpdate
AgentEvent = PersistedEvent | UpdateEvent

_json: TypeAdapter[AgentEvent] = TypeAdapter(AgentEvent)


def dump(event: AgentEvent) -> str:
    """Return the JSON of an event, as it is persisted and as every surface reads it."""
    return _json.dump_json(event).decode()


def load(text: str | bytes) -> AgentEvent:
    """Read an event from its JSON. Raises pydantic.ValidationError when the text is no event."""
    return _json.validate_json(text)
