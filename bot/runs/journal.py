"""What one run writes down and tells, from claim to end: the durable side of it, and blocks on their way to the outbox.

A write that has begun is always followed through (delivered), even when the run is cancelled meanwhile:
otherwise a block could stand in the ledger with nobody sending it.
"""

import functools
import mimetypes
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from agent.errors import RunLost
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
from agent.journal import CallResult, Cut, Kept
from agent.message import Entry, EntryKind, Message, Usage
from agent.tools.base import Ask, Delivered
from bot import wording
from bot.bus import EventBus
from bot.clock import Clock
from bot.inbound.access import LOCAL
from bot.outbox import Outbox
from bot.persistence.errors import StaleRun
from bot.persistence.protocols import Store
from bot.persistence.values import Turn, tool_message
from bot.replies import Replies
from bot.runs.typing import Typing
from bot.to_the_end import to_the_end
from channels.message import ChatKind, InboundMessage
from channels.outgoing import Action, OutgoingFile, Planned

P = ParamSpec("P")
T = TypeVar("T")
_HOUR = 3_600_000
_PRIVATE = (ChatKind.DIRECT, ChatKind.CONSOLE)
"""Places where nobody reads along when an owner is told something."""


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """What every run works with. worker: who this process is for the store. is_owner: whether an owner wrote it."""

    store: Store
    outbox: Outbox
    bus: EventBus
    clock: Clock
    worker: str
    is_owner: Callable[[InboundMessage], bool]


def _followed_through(write: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Let a write come to its end even when the run is cancelled meanwhile. A lost turn becomes RunLost."""

    @functools.wraps(write)
    async def followed(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await to_the_end(write(*args, **kwargs))
        except StaleRun as error:
            raise RunLost(str(error)) from None

    return followed


class RunJournal:
    """Of one claimed turn; implements `agent.journal.Journal`.

    typing: the sign of the run. blocks: how many were planned. answering: a model call is under way.
    """

    def __init__(self, dependencies: RunDependencies, turn: Turn, replies: Replies, typing: Typing) -> None:
        self.turn = turn
        self.blocks = 0
        self.answering = False
        self._given = dependencies
        self._outbox = dependencies.outbox
        self._turns = dependencies.store.turns
        self._replies = replies
        self.typing = typing

    def tell(self, event: ToolExecutionUpdate) -> None:
        self._given.bus.publish(event)

    def begin(self, step: int, after: str) -> None:
        self.answering = True
        self._replies.begin(step, after)

    async def update(self, event: MessageUpdate) -> None:
        blocks = self._replies.feed(event.delta) if event.part == "text" else ()
        if blocks:
            await self._plan(blocks)
        self._given.bus.publish(event)

    @_followed_through
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
        self.answering = False
        blocks = self._replies.end()
        if note is None and ended.stop_reason in wording.ENDED_EARLY:
            blocks = (*blocks, *self._notice(f"ended{ended.step}", wording.ENDED_EARLY[ended.stop_reason]))
        with self._outbox.planning(self.turn.conv_id, self.turn.place, blocks) as where:
            kept, deliveries = await self._turns.step(
                self.turn.run,
                message,
                note=note,
                where=where,
                blocks=blocks,
                usage=usage,
                context_start=context_start,
                events=(ended,),
                outcome=outcome,
            )
            self.blocks += len(blocks)
            if kept.end is not None:
                self.typing.stop()
            self._outbox.send(deliveries)
        if kept.end is not None and not deliveries:  # what says that it is at work is to go
            self._outbox.serve(self.turn.conv_id, self.turn.place)
        return kept

    @_followed_through
    async def note(self, message: Message, kind: EntryKind = "note") -> Entry:
        return await self._turns.note(self.turn.run, message, kind)

    @_followed_through
    async def start_calls(self, starts: Sequence[ToolExecutionStart]) -> None:
        calls = [start.call_id for start in starts]
        await self._turns.start_calls(self.turn.run, calls, starts)

    @_followed_through
    async def process_started(self, call_id: str, pid: int, started: str) -> None:
        await self._turns.process_started(self.turn.run, call_id, pid, started)

    @_followed_through
    async def park(self, call_id: str, ask: Ask) -> AgentEnd:
        approval_id = self._given.clock.new_id()
        blocks = self._sentence(f"ask:{approval_id}", ask.words) if ask.words else ()
        with self._outbox.planning(self.turn.conv_id, self.turn.place, blocks) as where:
            deliveries, end = await self._given.store.approvals.park(
                self.turn.run, call_id, approval_id, ask, where=where, blocks=blocks
            )
            self.blocks += len(blocks)
            self.typing.stop()
            self._outbox.send(deliveries)
        return end

    @property
    def file_bytes(self) -> int:
        channel = self._outbox.serving(self.turn.place)
        sends = channel is not None and Action.FILE in channel.capabilities.actions
        return channel.capabilities.file_bytes if channel and sends else 0

    async def deliver(self, call_id: str, number: int, text: str, file: Path | None = None) -> str:
        name = tool_message(self.turn.turn_id, call_id, number)
        blocks = self._sentence(name, text) if text or file is None else ()
        if file is not None:
            caption, *more = blocks or [Planned(source=name, body="", nonce=self._given.clock.nonce())]
            sent = OutgoingFile(path=str(file), name=file.name, mime=mimetypes.guess_type(file.name)[0] or "")
            blocks = (replace(caption, action=Action.FILE, file=sent), *more)
        await self._plan(blocks)
        return name

    async def delivered(self, name: str) -> Delivered:
        return await self._turns.delivered(name)

    @_followed_through
    async def results(
        self, results: Sequence[CallResult], ends: Sequence[ToolExecutionEnd], *, batch_done: bool
    ) -> tuple[Entry, ...]:
        return await self._turns.results(self.turn.run, results, batch_done=batch_done, events=ends)

    @_followed_through
    async def cut(self, notice: Callable[[Cut], Notice]) -> Cut:
        self.answering = False
        return await self._turns.cut(self.turn.run, lambda cut: (notice(cut),))

    @_followed_through
    async def fail(self, outcome: Outcome, error_kind: str | None, error_message: str | None) -> AgentEnd:
        self.answering = False
        to_owner = self.turn.place.kind in _PRIVATE and all(map(self._given.is_owner, self.turn.messages))
        cause = error_message if outcome is Outcome.FAILED else None
        local = self.turn.place.kind in LOCAL
        said = wording.failure(error_kind, cause if to_owner else None, to_owner=to_owner or local)
        blocks = self._notice("error", said)
        notice = None
        if said == wording.OUT_OF_ORDER:  # once an hour for each kind: it fails again with every message
            source = f"failed:{error_kind}:{self._given.clock.now() // _HOUR}"
            notice = self._outbox.to_owner(source, wording.failed_elsewhere(self.turn.place, error_kind, cause))
        with self._outbox.planning(self.turn.conv_id, self.turn.place, blocks) as where:
            deliveries, end = await self._turns.finish(
                self.turn.run,
                outcome,
                error_kind=error_kind,
                error_message=error_message,
                where=where,
                blocks=blocks,
                notice=notice,
            )
            self.blocks += len(blocks)
            self.typing.stop()
            self._outbox.send(deliveries)
        if notice is not None:
            await self._outbox.serve_open()
        return end

    @_followed_through
    async def _plan(self, blocks: Sequence[Planned]) -> None:
        with self._outbox.planning(self.turn.conv_id, self.turn.place, blocks) as where:
            deliveries = await self._turns.plan(self.turn.run, where, blocks)
            self.blocks += len(blocks)
            self._outbox.send(deliveries)

    def _notice(self, name: str, text: str) -> Sequence[Planned]:
        return self._sentence(f"turn:{self.turn.turn_id}:{name}", text)

    def _sentence(self, source: str, text: str) -> Sequence[Planned]:
        return self._outbox.notice(source, text, self.turn.place.channel)
