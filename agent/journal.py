"""What a run writes down, as a protocol that the service fulfils: each method is one durable transaction.

Every method raises RunLost when the run was stopped or its turn belongs to another worker, and whatever the store
raises when it cannot write; both end the run at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.events import AgentEvent, Outcome, ToolExecutionUpdate
from agent.message import Entry, Message, ToolResult, ToolSend, Usage

CallState = Literal["done", "failed", "denied", "cut"]


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call ended, and what it sent where."""

    result: ToolResult
    state: CallState
    sends: tuple[ToolSend, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """Lines that were written, in order, steering texts last; finished: the turn is done."""

    entries: tuple[Entry, ...]
    finished: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """What was kept of an answer that broke off (nothing, if none of it was planned), and the turn's step then."""

    entries: tuple[Entry, ...]
    step: int


class Journal(Protocol):
    """The durable side of one run."""

    async def emit(self, event: AgentEvent) -> None:
        """Tell the surfaces. Text deltas may lead to a block being stored before this returns."""

    def tell(self, event: ToolExecutionUpdate) -> None:
        """Tell the surfaces at once of what is not kept."""

    async def step(
        self,
        message: Message,
        *,
        note: Message | None,
        usage: Usage,
        context_start: int,
        outcome: Outcome,
        ended: AgentEvent,
    ) -> Kept:
        """Store a whole answer; its calls become `asked`. Without calls and steering texts the turn ends as outcome.

        note: for an answer that was cut and goes on, what the model is told of it. usage: of the turn so far. ended:
        the answer's message_end, told once it is stored.
        """

    async def note(self, message: Message) -> Entry:
        """Add a line of the service for the model to read."""

    async def start_calls(self, call_ids: Sequence[str]) -> None:
        """asked → running, directly before execution."""

    async def process_started(self, call_id: str, pid: int, started: str) -> None:
        """Remember a call's process before it may do anything."""

    async def results(self, results: Sequence[CallResult], *, batch_done: bool) -> tuple[Entry, ...]:
        """Store results in call order; with batch_done also returns the steering texts that came meanwhile."""

    async def cut(self) -> Cut:
        """The answer broke off: what was planned of it becomes the assistant's words, the rest never existed."""

    async def fail(self, outcome: Outcome, error_kind: str | None, error_message: str | None) -> None:
        """End the turn without an answer; the person is told in one plain sentence."""
