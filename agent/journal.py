"""What a run writes down, as a protocol that the service fulfils: each asynchronous method is one durable transaction.

Those raise RunLost when the run was stopped or its turn belongs to another worker, and whatever the store raises when
it cannot write; both end the run at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
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
from agent.message import Entry, Message, ToolResult, ToolSend, Usage
from agent.tools.base import Ask, Delivered

CallState = Literal["done", "failed", "denied", "cut"]


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call ended, and what it sent where."""

    result: ToolResult
    state: CallState
    sends: tuple[ToolSend, ...] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """What a stored answer led to. entries: lines written, steering texts last. end: set when the turn is done."""

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

    @property
    def file_bytes(self) -> int:
        """How large a file may be that is sent into the conversation; 0: none can be."""

    def tell(self, event: ToolExecutionUpdate) -> None:
        """Tell the surfaces at once."""

    def begin(self, step: int, after: str) -> None:
        """An answer begins. after: the words of a cut answer that it continues, else empty."""

    async def update(self, event: MessageUpdate) -> None:
        """A piece of the answer. A block that it completes is stored before this returns."""

    async def step(
        self,
        message: Message,
        *,
        note: Message | None,
        usage: Usage,
        context_start: int,
        outcome: Outcome,
        ended: MessageEnd,
    ) -> Kept:
        """Store a whole answer; its calls become `asked`. Without calls and steering texts the turn ends as outcome.

        note: for an answer that was cut and goes on, what the model is told of it. usage: of the turn so far. ended:
        stored with it.
        """

    async def note(self, message: Message) -> Entry:
        """Add a line of the service for the model to read."""

    async def start_calls(self, starts: Sequence[ToolExecutionStart]) -> None:
        """asked → running, directly before execution; from waiting, which uses the decision up."""

    async def park(self, call_id: str, ask: Ask) -> AgentEnd:
        """asked → waiting, and the turn is parked until a person has decided: this run ends here."""

    async def deliver(self, call_id: str, number: int, text: str, file: Path | None = None) -> str:
        """Plan a message of a running call; number: from 0. file: to be sent, text is its caption. Returns its name."""

    async def delivered(self, name: str) -> Delivered:
        """What has become of a message of a call."""

    async def process_started(self, call_id: str, pid: int, started: str) -> None:
        """Remember a call's process before it may do anything."""

    async def results(
        self, results: Sequence[CallResult], ends: Sequence[ToolExecutionEnd], *, batch_done: bool
    ) -> tuple[Entry, ...]:
        """Store results in call order; with batch_done also returns the steering texts that came meanwhile."""

    async def cut(self, notice: Callable[[Cut], Notice]) -> Cut:
        """The answer broke off: what was planned of it becomes the assistant's words, the rest never existed.

        The run tries again. notice: makes, of what was kept, what people are told of that.
        """

    async def fail(self, outcome: Outcome, error_kind: str | None, error_message: str | None) -> AgentEnd:
        """End the turn without an answer; the person is told in one plain sentence."""
