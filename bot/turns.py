"""One turn from claim to end: gives the agent what it needs, writes down what it does, hands blocks to the outbox.

`TurnRun` is the journal of one run. A write that has begun is always followed through (told, delivered), even when
the run is cancelled meanwhile: otherwise a block could stand in the ledger with nobody sending it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agent.context import Context
from agent.errors import RunLost
from agent.events import (
    AgentEnd,
    AgentEvent,
    KeptEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    Outcome,
    RunRef,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from agent.journal import CallResult, Cut, Kept
from agent.message import Entry, Message, ToolCall, ToolSend, Usage
from agent.models.base import ModelClient, ToolSpec
from agent.runner import Runner
from agent.spec import Limits, RunSpec
from agent.tools.base import Tool
from bot import wording
from bot.bus import EventBus
from bot.clock import Clock
from bot.delivery import Outbox
from bot.replies import Replies, notice
from bot.store.errors import StaleRun
from bot.store.store import Store
from bot.store.values import Delivery, PlanIn, Planned, Turn
from bot.typing import Typing
from channels.message import ChatKind, InboundMessage

T = TypeVar("T")
_PRIVATE = (ChatKind.DIRECT, ChatKind.CONSOLE)
"""Places where nobody reads along when an owner is told something."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to. duration: seconds of running time; sends: what tools sent where."""

    blocks: tuple[Planned, ...]
    outcome: Outcome
    duration: float
    model: str
    usage: Usage
    sends: tuple[ToolSend, ...]


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every run works with: made once by the wiring. is_owner: whether a message is by an owner of the bot."""

    store: Store
    outbox: Outbox
    bus: EventBus
    clock: Clock
    model: ModelClient
    tools: dict[str, Tool[Any]]
    tool_specs: tuple[ToolSpec, ...]
    limits: Limits
    is_owner: Callable[[InboundMessage], bool]


class TurnRun:
    """One claimed turn; implements `agent.journal.Journal`."""

    def __init__(
        self, shop: Workshop, turn: Turn, system: str, context: Context, replies: Replies, typing: Typing
    ) -> None:
        self._shop = shop
        self._turn = turn
        self.context = context
        self._replies = replies
        self._typing = typing
        self._unkept: list[KeptEvent] = []
        self._step_of: dict[str, tuple[int, ToolCall]] = {}
        self._blocks: list[Planned] = []
        self._sends: list[ToolSend] = []
        self._end: AgentEnd | None = None
        self.ref = RunRef(
            run_id=turn.turn_id,
            turn_id=turn.turn_id,
            session_key=turn.session_key,
            attempt=turn.attempt,
        )
        spec = RunSpec(
            ref=self.ref,
            model=shop.model,
            system=system,
            tools=shop.tools,
            tool_specs=shop.tool_specs,
            limits=shop.limits,
            step=turn.step,
            usage=turn.usage,
            ran=turn.ran / 1000,
            now=shop.clock.now,
            sleep=shop.clock.sleep,
        )
        self.runner = Runner(spec, context, self)

    async def execute(self) -> RunResult:
        """Run the turn to its end. Raises RunLost, StoreUnavailable, or CancelledError; then nothing was decided."""
        with self._typing:
            await self.runner.run()
        end = self._end
        assert end is not None, "a run that returns has stored its end"
        return RunResult(tuple(self._blocks), end.outcome, end.duration, end.model, end.usage, tuple(self._sends))

    def silence(self) -> None:
        """Show no sign of work any more."""
        self._typing.stop()

    async def emit(self, event: AgentEvent) -> None:
        """See Journal. Plans the blocks that a piece of text completes."""
        match event:
            case MessageStart():
                self._replies.begin(event.step, self._text_before())
                self._unkept.append(event)
            case MessageUpdate(part="text"):
                blocks = self._replies.feed(event.delta)
                if blocks:
                    await self._follow_through(self._plan(blocks))
            case MessageUpdate() | ToolExecutionUpdate():
                pass
            case _:
                self._unkept.append(event)
        self._shop.bus.publish(event)

    def tell(self, event: ToolExecutionUpdate) -> None:
        """See Journal."""
        self._shop.bus.publish(event)

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
        """See Journal."""
        assert isinstance(ended, MessageEnd)
        for call in message.tool_calls:
            self._step_of[call.call_id] = (ended.step, call)
        return await self._follow_through(self._step(message, note, usage, context_start, outcome, ended))

    async def note(self, message: Message) -> Entry:
        """See Journal."""
        return await self._follow_through(self._shop.store.turns.note(self._turn.run, message))

    async def start_calls(self, call_ids: Sequence[str]) -> None:
        """See Journal."""
        events = []
        for call_id in call_ids:
            step, call = self._call(call_id)
            ordinal = f"{self.ref.turn_id}/{step}/{call_id}/start"
            events.append(
                ToolExecutionStart(
                    run=self.ref,
                    at=self._shop.clock.now(),
                    id=ordinal,
                    step=step,
                    call_id=call_id,
                    name=call.name,
                    arguments=call.arguments,
                )
            )
        kept = self._take_unkept()
        write = self._shop.store.turns.start_calls(self._turn.run, call_ids, (*kept, *events))
        await self._follow_through(self._told(write, events))

    async def process_started(self, call_id: str, pid: int, started: str) -> None:
        """See Journal."""
        await self._follow_through(self._shop.store.turns.process_started(self._turn.run, call_id, pid, started))

    async def results(self, results: Sequence[CallResult], *, batch_done: bool) -> tuple[Entry, ...]:
        """See Journal."""
        events = []
        for call in results:
            step, asked = self._call(call.result.call_id)
            events.append(
                ToolExecutionEnd(
                    run=self.ref,
                    at=self._shop.clock.now(),
                    id=f"{self.ref.turn_id}/{step}/{asked.call_id}/end",
                    step=step,
                    call_id=asked.call_id,
                    name=asked.name,
                    state=call.state,
                    text=call.result.text,
                    sends=call.sends,
                )
            )
            self._sends.extend(call.sends)
        kept = (*self._take_unkept(), *events)
        write = self._shop.store.turns.results(self._turn.run, results, batch_done=batch_done, events=kept)
        return await self._follow_through(self._told(write, events))

    async def cut(self) -> Cut:
        """See Journal."""
        return await self._follow_through(self._cut())

    async def fail(self, outcome: Outcome, error_kind: str | None, error_message: str | None) -> None:
        """See Journal."""
        await self._follow_through(self._fail(outcome, error_kind, error_message))

    async def _plan(self, blocks: Sequence[Planned]) -> None:
        where = self._where()
        deliveries: Sequence[Delivery] = ()
        try:
            deliveries = await self._shop.store.turns.plan(self._turn.run, where, blocks)
            self._blocks.extend(blocks)
        finally:
            self._hand_over(where, deliveries)

    async def _step(
        self,
        message: Message,
        note: Message | None,
        usage: Usage,
        context_start: int,
        outcome: Outcome,
        ended: MessageEnd,
    ) -> Kept:
        blocks = self._replies.end()
        if note is None and ended.stop_reason in wording.ENDED_EARLY:
            channel = self._shop.outbox.channel(self._turn.place.channel)
            words = wording.ENDED_EARLY[ended.stop_reason]
            source = f"turn:{self.ref.turn_id}:ended{ended.step}"
            blocks = (*blocks, *notice(source, words, channel, self._shop.clock.nonce))
        where = self._where() if blocks else PlanIn(self._turn.conv_id)
        deliveries: Sequence[Delivery] = ()
        try:
            kept = await self._shop.store.turns.step(
                self._turn.run,
                message,
                note=note,
                where=where,
                blocks=blocks,
                usage=usage,
                context_start=context_start,
                events=(*self._take_unkept(), ended),
                outcome=outcome,
            )
            deliveries = kept.deliveries
            self._blocks.extend(blocks)
            if kept.end is not None:
                self._typing.stop()
        finally:
            self._hand_over(where, deliveries)
        self._publish([ended])
        self._ended(kept.end)
        return Kept(kept.entries, kept.end is not None)

    async def _fail(self, outcome: Outcome, error_kind: str | None, error_message: str | None) -> None:
        source = f"turn:{self.ref.turn_id}:error"
        channel = self._shop.outbox.channel(self._turn.place.channel)
        to_owner = self._turn.place.kind in _PRIVATE and self._shop.is_owner(self._turn.message)
        cause = error_message if to_owner and outcome is Outcome.FAILED else None
        blocks = notice(source, wording.failure(error_kind, cause), channel, self._shop.clock.nonce)
        where = self._where()
        deliveries: Sequence[Delivery] = ()
        try:
            deliveries, closed, end = await self._shop.store.turns.finish(
                self._turn.run,
                outcome,
                error_kind=error_kind,
                error_message=error_message,
                where=where,
                blocks=blocks,
                events=self._take_unkept(),
            )
            self._blocks.extend(blocks)
            self._typing.stop()
        finally:
            self._hand_over(where, deliveries)
        self._publish(closed)
        self._ended(end)

    async def _cut(self) -> Cut:
        closed, step = await self._shop.store.turns.cut(self._turn.run, self._take_unkept())
        self._publish(closed.events)
        return Cut(closed.lines, step)

    async def _told(self, write: Awaitable[T], events: Sequence[AgentEvent]) -> T:
        result = await write
        self._publish(events)
        return result

    def _where(self) -> PlanIn:
        place = self._turn.place
        return PlanIn(self._turn.conv_id, self._shop.outbox.reserve(self._turn.conv_id, place))

    def _hand_over(self, where: PlanIn, deliveries: Sequence[Delivery]) -> None:
        self._shop.outbox.planned(where.conv_id, self._turn.place, deliveries, reserved=where.sending)

    def _ended(self, end: AgentEnd | None) -> None:
        if end is not None:
            self._end = end
            self._publish([end])

    def _publish(self, events: Sequence[AgentEvent]) -> None:
        for event in events:
            self._shop.bus.publish(event)

    def _take_unkept(self) -> tuple[KeptEvent, ...]:
        events = tuple(self._unkept)
        self._unkept.clear()
        return events

    def _call(self, call_id: str) -> tuple[int, ToolCall]:
        """Step and words of a call; calls of a resumed turn are found in its context."""
        if call_id not in self._step_of:
            for entry in self.context.entries:
                for call in entry.message.tool_calls:
                    self._step_of[call.call_id] = (entry.step, call)
        return self._step_of[call_id]

    def _text_before(self) -> str:
        """The words that a continued answer continues: cut answers directly before it."""
        texts: list[str] = []
        for entry in reversed(self.context.entries):
            if entry.kind == "assistant_cut":
                texts.append(entry.message.text)
            elif entry.kind != "note":
                break
        return "".join(reversed(texts))

    async def _follow_through(self, write: Awaitable[T]) -> T:
        """Await a write to its end even when the run is cancelled meanwhile. A lost turn becomes RunLost."""
        task = asyncio.ensure_future(write)
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            if not task.cancelled():
                task.exception()
            raise cancelled
        try:
            return task.result()
        except StaleRun as error:
            raise RunLost(str(error)) from None
