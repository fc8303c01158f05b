"""What a run persists and publishes, as a protocol that the service implements.

Each asynchronous method is one durable transaction. It raises RunLost when the run was stopped or its turn belongs to
another worker, and whatever the store raises when it cannot write; both end the run at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from agent.errors import BudgetReached, ErrorKind
from agent.events import (
    AgentEnd,
    MessageEnd,
    MessageUpdate,
    Notice,
    Outcome,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from agent.message import Entry, Message, ToolCall, ToolResult, Usage
from agent.models.base import ThinkingLevel
from agent.tools.base import Ask, Decision

CallState = Literal["done", "failed", "denied", "cut"]


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call ended."""

    result: ToolResult
    state: CallState
    # Whether the process that the call started runs on in the background, so that its pid stays recorded.
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A complete answer. If it has no calls and no steering text came meanwhile, the turn ends with it."""

    message: Message
    # The event that is persisted together with it.
    ended: MessageEnd
    # Tokens of the turn so far.
    usage: Usage
    # The seq of the first transcript line that was sent to the model.
    context_start: int
    # The seq of the first one whose results were sent whole.
    pruned_below: int
    # How the turn ends, if it ends with this answer.
    outcome: Outcome
    # For an answer that was cut and will be continued: what the model is told about it.
    note: Message | None = None
    # A failed call that people are told about, if the turn ends with this answer.
    failed: ToolResult | None = None
    # The calls that succeeded since people were last answered in this turn, oldest first; empty where the turn goes on.
    acts: tuple[ToolCall, ...] = ()


class Begun(Enum):
    """Whether calls may be executed now; true only for YES."""

    YES = "yes"
    # A steering text waits: calls that have not begun are skipped.
    STEERED = "steered"
    # The turn was put back into the queue, so that the run is over.
    HALTED = "halted"
    # It depends on whether one of them leaves this machine, which was not said; nothing was done.
    DEPENDS = "depends"

    def __bool__(self) -> bool:
        return self is Begun.YES


@dataclass(frozen=True, slots=True)
class Kept:
    """What persisting an answer or results led to."""

    # The lines that were added to the transcript, steering texts last.
    entries: tuple[Entry, ...]
    # Set when the turn ended.
    end: AgentEnd | None
    # Whether the turn was put back into the queue instead of another model call, so that the run is over.
    halted: bool = False
    # A steering text waits, so calls that have not begun are skipped.
    steered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How an answer that broke off was closed."""

    # The step of the turn after it.
    step: int
    # The lines that were kept of it; none if nothing of it was planned for delivery.
    entries: tuple[Entry, ...] = ()
    # Whether the turn was put back into the queue instead of another model call.
    halted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Why a turn is parked until a model works again."""

    # The failure of the last call, and the model with the provider's own words about it.
    kind: ErrorKind
    cause: str
    # The name of the model that the turn wants.
    wanted: str
    # Until when its key rests, in milliseconds since the epoch.
    until: int


class Journal(Protocol):
    """The durable side of one run. The message_start of an answer is persisted by the transaction before the answer."""

    def tell(self, event: ToolExecutionUpdate) -> None:
        """Publish an event at once, without persisting it."""

    async def reserve(self, model: str, most: Usage) -> None:
        """Reserve what the next model call may use at most, until its answer is persisted or cut.

        model: its name. Raises BudgetReached if a budget does not allow it. May wait for calls of other runs.
        """

    def begin(self, step: int, after: str) -> None:
        """Begin an answer. after: the words of the cut answer that it continues, else empty."""

    async def update(self, event: MessageUpdate) -> None:
        """Take a piece of the answer. A block that it completes is persisted before this returns."""

    async def step(self, step: Step) -> Kept:
        """Persist a complete answer; its calls become `asked`."""

    async def note(self, message: Message) -> Entry:
        """Persist a line that the service writes for the model."""

    async def followed(self) -> Mapping[str, int]:
        """Return how often addresses that only text from outside names were asked for in this task, by host."""

    async def start_calls(
        self, starts: Sequence[ToolExecutionStart], reach_out: bool | None = None, follows: Sequence[str] = ()
    ) -> Begun:
        """Mark calls as `running`, directly before execution. The decision about a waiting call is used up by this.

        reach_out: whether one of them leaves this machine; None: not known. follows: the hosts that `followed` counts.
        """

    async def park(self, call_id: str, ask: Ask) -> AgentEnd | Decision:
        """Mark the calls of an Ask as `waiting`, and park the turn until a person has decided.

        call_id: of the call that it is about, of several the first. Returns the end of this run; where nobody may
        decide, the run goes on and an expired decision is returned.
        """

    async def park_for_model(self, outage: Outage) -> AgentEnd | None:
        """Close the present answer and park the turn until a model works again; people are told once.

        Returns the end of this run; None where nobody waits for the turn, such as a beat, so that it rather fails.
        """

    async def park_for_budget(self, reached: BudgetReached) -> AgentEnd | None:
        """Park the turn until a budget lets it go on; people and an owner are told.

        Returns the end of this run; None where nobody waits for the turn, so that it rather ends.
        """

    async def answers(self, model: str, wanted: str) -> None:
        """Remember for the session which model answers; people are told when it becomes another than the wanted one,
        and when that is back."""

    async def thinks_less(self, model: str, level: ThinkingLevel, *, refused: bool) -> None:
        """Remember for the session the level of thinking that a model has not refused; people are told once.

        refused: otherwise it is known to have no higher one, and what is remembered is that people know it.
        """

    async def left_out(self, model: str, parts: Sequence[str]) -> None:
        """Tell people what a model has refused and what is left out of requests to it now."""

    async def process_started(self, call_id: str, pid: int, started: str) -> None:
        """Persist the process of a call before the process may do anything."""

    async def results(
        self, results: Sequence[CallResult], ends: Sequence[ToolExecutionEnd], *, batch_done: bool, silent: bool
    ) -> Kept:
        """Persist results in call order. With batch_done the steering texts that came meanwhile are returned as well.

        silent: the turn is completed without another answer, unless a steering text came.
        """

    async def keep(self) -> bool:
        """Plan the delivery of all that was streamed of an answer that broke off again or for good.

        Returns whether anything of the answer is planned, by this or before.
        """

    async def cut(self, notice: Callable[[Cut], Notice], kind: ErrorKind) -> Cut:
        """Close an answer that broke off: what was planned becomes the assistant's words, the rest is dropped.

        notice: makes the notice about the retry from what was kept. kind: of the failure.
        """

    async def fail(self, outcome: Outcome, error_kind: str | None, error_message: str | None) -> AgentEnd:
        """End the turn without an answer; the person is told in one plain sentence."""
