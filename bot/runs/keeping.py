"""The durable side of compaction: summaries, their events, and what a session has set going beside its conversation."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agent.events import CompactionEnd, CompactionStart
from agent.hooks import NO_HOOKS, Hooks
from agent.message import Entry, Message, Usage
from agent.tools.background import Background
from agent.tools.workspace import Workspace, WorkspaceError
from bot.approvals import words
from bot.clock import Clock
from bot.completion import run_to_completion
from bot.hooks.points import AfterCompaction, BeforeCompaction
from bot.outbox import Outbox
from bot.persistence.turns import BY_THEMSELVES, Turn
from bot.replies.reactions import Working
from bot.runs.budgets import Budgets
from bot.runs.hooking import of_turn as fields_of
from bot.store.store import Store
from channels.message import ChatKind
from channels.session_key import parent_of
from channels.sources import of_turn
from heartbeat.schedule import At, describe

_LASTS = "(I am summing up the earlier part of our conversation; this takes a moment.)"
# The most bytes of a file that is hashed.
_HASHED = 8 << 20


@dataclass(frozen=True, slots=True)
class KeepingDependencies:
    """What persists summaries, for all conversations."""

    store: Store
    outbox: Outbox
    budgets: Budgets
    clock: Clock
    background: Background
    hooks: Hooks = NO_HOOKS


@dataclass(eq=False, slots=True)
class Keeping:
    """Persists the summaries of one transcript."""

    _given: KeepingDependencies
    # The one by which they are made.
    _turn: Turn
    # Of its room.
    _files: Workspace
    # Shows what its run does.
    _state: Callable[[Working], None]
    _end: int = 0

    async def reserve(self, model: str, most: Usage) -> None:
        """Reserve what a call may use at most. Raises BudgetReached or StoreUnavailable."""
        if self._given.budgets.limited:
            await self._given.budgets.reserve(self._turn, model, most)

    async def used(self, model: str, usage: Usage) -> None:
        """Persist what a call has used. Raises StoreUnavailable."""
        await self._given.store.compactions.used(self._turn.run, model, usage)
        self._given.budgets.settle(self._turn.turn_id)

    async def began(self, tokens: int, end: int) -> None:
        """Persist and publish that a summary is being made. Raises StoreUnavailable."""
        self._end = end
        self._state("compacting")
        if BeforeCompaction.point in self._given.hooks.points:
            await self._given.hooks.ask(BeforeCompaction(**fields_of(self._turn), tokens=tokens))
        run, now = self._turn.run, self._given.clock.now()
        await self._given.store.compactions.began(CompactionStart(run=run, at=now, end=end, tokens=tokens))

    async def flushes(self) -> bool:
        """Persist that the model is asked to save notes, see `Keeper`. Raises StoreUnavailable."""
        return await self._given.store.compactions.flushes(self._turn.transcript_id)

    async def lasts(self) -> None:
        """Tell people that a summary is being made. Raises StoreUnavailable."""
        by_itself = self._turn.kind in BY_THEMSELVES or parent_of(self._turn.session_key)
        if by_itself or self._turn.place.kind is ChatKind.API:
            return
        await run_to_completion(self._tell())  # a send that was begun would hold back its conversation

    async def _tell(self) -> None:
        turn, outbox = self._turn, self._given.outbox
        blocks = outbox.notice(of_turn(turn.turn_id, f"compacting:{self._end}"), _LASTS, turn.place.channel)
        with outbox.planning(turn.conv_id, turn.place, blocks) as where:
            outbox.send(await self._given.store.compactions.tell(turn.run, where, blocks))

    async def state(self) -> str:
        """Return the background commands, requests, jobs, grants and files of the session, as lines."""
        return "\n".join([f"- {line}" async for line in self._lines()])

    async def ended(self, message: Message | None, start: int, before: int) -> Entry | None:
        """Persist a summary, or that there is none, see `Keeper`. Raises StoreUnavailable."""
        turn = self._turn
        event = CompactionEnd(run=turn.run, at=self._given.clock.now(), end=self._end, done=message is not None)
        self._given.budgets.settle(turn.turn_id)
        kept = await self._given.store.compactions.ended(turn.transcript_id, message, start, before, event)
        if AfterCompaction.point in self._given.hooks.points:
            self._given.hooks.tell(AfterCompaction(**fields_of(turn), done=kept is not None))
        return kept

    async def _lines(self) -> AsyncIterator[str]:
        store, session_key = self._given.store, self._turn.session_key
        for command in self._given.background.of(session_key):
            if not command.ending:
                yield f"running in the background: {command.shown}"
        for request in await store.approvals.open():
            if request.session_key == session_key:
                yield f"waiting for a person: {words.line(request)}"
        for job in await store.schedules.jobs():
            if job.session_key == session_key and job.origin is not None:
                when = self._given.clock.stamp(job.next_at) if job.next_at else "not planned"
                rhythm = "" if isinstance(job.schedule, At) else f" ({describe(job.schedule)})"
                yield f"scheduled as {job.job_id}: {job.name}{rhythm}, {'paused' if job.paused else f'next {when}'}"
        for granted in await store.grants.standing():
            if granted.session_key in ("", session_key):
                until = f"until {self._given.clock.stamp(granted.until)}" if granted.until else "for always"
                yield f"allowed by {granted.by}, {until}: {granted.words}"
        written = await store.compactions.files(self._turn.transcript_id)
        for line in await asyncio.to_thread(list, _hashes(self._files, written)):
            yield line


def _hashes(files: Workspace, paths: Sequence[str]) -> Iterator[str]:
    """Yield a line for each file that is still there. Blocking."""
    for path in paths:
        with suppress(WorkspaceError, OSError), files.open(path) as file:
            digest = hashlib.sha256(file.read(_HASHED)).hexdigest()[:16]
            yield f"file written: {path} (sha256 {digest})"
