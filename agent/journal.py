"""What a run writes down, as a protocol that the service fulfils: each asynchronous method is one durable transaction.

Those raise RunLost when the run was stopped or its turn belongs to another worker, and whatever the store raises when
it cannot write; both end the run at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

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
from agent.message import Entry, Message, ToolResult, Usage
from agent.tools.base import Ask, Decision

CallState = Literal["done", "failed", "denied", "cut"]


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call ended. goes_on: the process that it began runs on, and stays known."""

    result: ToolResult
    state: CallState
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A whole answer. Without calls and steering texts the turn ends with it as outcome.

    ended: stored with it. usage: of the turn so far. context_start: where what goes to the model begins. note: of one
    that was cut and goes on, what the model is told of it. failed: what people are told besides, if the turn is to end.
    """

    message: Message
    ended: MessageEnd
    usage: Usage
    context_start: int
    outcome: Outcome
    note: Message | None = None
    failed: ToolResult | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a stored answer or its results led to.

    entries: lines written, steering texts last. end: set when the turn is done.
    """

    entries: tuple[Entry, ...]
    end: AgentEnd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How an answer that broke off was closed. entries: what was kept of it, nothing if none of it was planned.

    step: the turn's, then.
    """

    step: int
    entries: tuple[Entry, ...] = ()


class Journal(Protocol):
    """The durable side of one run. What a model is asked for begins with the transaction before: its message_start."""

    def tell(self, event: ToolExecutionUpdate) -> None:
        """Tell the surfaces at once."""

    def begin(self, step: int, after: str) -> None:
        """An answer begins. after: the words of a cut answer that it continues, else empty."""

    async def update(self, event: MessageUpdate) -> None:
        """A piece of the answer. A block that it completes is stored before this returns."""

    async def step(self, step: Step) -> Kept:
        """Store a whole answer; its calls become `asked`."""

    async def note(self, message: Message) -> Entry:
        """Add a line of the service for the model to read."""

    async def start_calls(self, starts: Sequence[ToolExecutionStart]) -> None:
        """asked → running, directly before execution; from waiting, which uses the decision up."""

    async def park(self, call_id: str, ask: Ask) -> AgentEnd | Decision:
        """asked → waiting, and the turn is parked until a person has decided: this run ends here.

        Where nobody may decide it goes on, with an expired decision.
        """

    async def process_started(self, call_id: str, pid: int, started: str) -> None:
        """Remember a call's process before it may do anything."""

    async def results(
        self, results: Sequence[CallResult], ends: Sequence[ToolExecutionEnd], *, batch_done: bool, silent: bool
    ) -> Kept:
        """Store results in call order; with batch_done also returns the steering texts that came meanwhile.

        silent: if none came, the turn is done (completed) without another answer.
        """

    async def keep(self) -> bool:
        """The answer broke off once more, or for good: what was streamed of it is planned, and so kept and shown.

        Returns whether anything of it is planned, by this or before.
        """

    async def cut(self, notice: Callable[[Cut], Notice]) -> Cut:
        """The answer broke off: what was planned of it becomes the assistant's words, the rest never existed.

        The run tries again. notice: makes, of what was kept, what people are told of that.
        """

    async def fail(self, outcome: Outcome, error_kind: str | None, error_message: str | None) -> AgentEnd:
        """End the turn without an answer; the person is told in one plain sentence."""
