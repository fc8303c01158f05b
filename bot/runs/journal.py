"""The journal of one run: persists what the run does, publishes its events, and hands its blocks to the outbox.

A write that has begun is always completed, its deliveries handed to the outbox included, even when the run is cancelled
meanwhile: otherwise a planned block could be left with nobody sending it.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

from agent.context import Context
from agent.errors import BudgetReached, ErrorKind, RunLost
from agent.events import (
    AgentEnd,
    MessageUpdate,
    Notice,
    Outcome,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from agent.hooks import NO_HOOKS, Hooks
from agent.journal import Begun, CallResult, Cut, Kept, Outage, Step
from agent.message import Entry, EntryKind, Mark, Message, Usage
from agent.models.base import ThinkingLevel
from agent.runner import BUDGET
from agent.tools.base import Ask, Decision
from agent.tools.conversation import STAY_SILENT
from bot import wording
from bot.approvals.requests import Requests
from bot.bus import EventBus
from bot.clock import Clock
from bot.completion import run_to_completion
from bot.outbox import Outbox
from bot.people.access import LOCAL
from bot.persistence.deliveries import ToldOf
from bot.persistence.errors import StaleRun
from bot.persistence.turns import BY_THEMSELVES, Said, Turn, TurnKind
from bot.replies.beat_words import BeatWords
from bot.replies.cutting import Replies
from bot.replies.showing import Showing, SideMessages, Typing
from bot.runs import budget_words
from bot.runs.answer_files import AnswerFiles
from bot.runs.budget_waits import park
from bot.runs.budgets import Budgets, Reached
from bot.runs.outages import KEY_FAILURES, OutageWatch
from bot.runs.receipts import Receipts
from bot.runs.rooms import Rooms
from bot.speech import spoken
from bot.store.store import Store
from channels.message import ChatKind, InboundMessage, Place
from channels.outgoing import Planned
from channels.sources import Source, of_turn, quiet, sentence
from heartbeat.quiet import HEARTBEAT_OK

P = ParamSpec("P")
T = TypeVar("T")
# Errors of a call that the provider may bill even if nothing of its answer has come.
_BILLED = (ErrorKind.TIMEOUT, ErrorKind.NETWORK, ErrorKind.CONTENT_FILTER, ErrorKind.UNKNOWN)
_HOUR = 3_600_000  # milliseconds
_LONG = 4_000  # characters of an answer that are not cut and rendered in one step of the event loop


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """The parts of the service that every run works with."""

    store: Store
    outbox: Outbox
    bus: EventBus
    clock: Clock
    requests: Requests
    outages: OutageWatch
    budgets: Budgets
    # Hold the files of answers.
    rooms: Rooms
    # The name of this process in the store.
    worker: str
    # Returns whether an owner wrote a message.
    is_owner: Callable[[InboundMessage], bool]
    receipts: Receipts
    hooks: Hooks = NO_HOOKS


def _followed_through(write: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate a write so that it completes even when the run is cancelled meanwhile, and StaleRun becomes RunLost."""

    @functools.wraps(write)
    async def followed(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await run_to_completion(write(*args, **kwargs))
        except StaleRun as error:
            raise RunLost(str(error)) from None

    return followed


class RunJournal:
    """The journal of one claimed turn; implements `agent.journal.Journal`, which documents the shared methods.

    replies: cuts the answers. files: of them. typing: the typing sign of the run. beat: judges words; None: no beat.
    """

    def __init__(
        self,
        dependencies: RunDependencies,
        turn: Turn,
        replies: Replies,
        files: AnswerFiles,
        typing: Typing,
        beat: BeatWords | None,
    ) -> None:
        self.turn = turn
        # Whether a model call is under way, and the characters of its answer that have come.
        self.answering, self._heard = False, 0
        # Whether there are budgets.
        self.limited = dependencies.budgets.limited
        self._given, self._outbox, self._turns = dependencies, dependencies.outbox, dependencies.store.turns
        self.followed = functools.partial(self._turns.followed, turn.session_key)
        self._replies, self._files, self._beat = replies, files, beat
        # Whether nobody is told what it says: what a sub-agent says last goes to the session that has started it.
        self._quiet = turn.settings.child is not None
        self._by_itself = self._quiet or turn.kind in BY_THEMSELVES
        self._channel = dependencies.outbox.serving(turn.place)
        self._showing = Showing(replies, self._channel, turn.place, dependencies.clock, self._words, self._sent_as)
        alone = turn.place.kind in (ChatKind.DIRECT, ChatKind.CONSOLE)  # nobody else reads there
        self._to_owner = alone and all(map(dependencies.is_owner, turn.messages))
        shown, self._verbose = self._channel is not None and beat is None, turn.settings.verbose == "on"
        self._side_messages = SideMessages(turn, self._sentence, shown=shown, in_full=self._to_owner)
        self.typing, self._away = typing, turn.settings.away  # see `SessionSettings`

    def resume(self, context: Context) -> None:
        """Take up what earlier attempts of the turn left in its context."""
        if self._beat is not None:
            self._beat.resume(self.turn.turn_id, context.entries)

    def tell(self, event: ToolExecutionUpdate) -> None:
        self._given.bus.publish(event)

    async def reserve(self, model: str, most: Usage) -> None:
        if self.limited:
            await self._given.budgets.reserve(self.turn, model, most)

    def begin(self, step: int, after: str) -> None:
        self._showing.stop()
        self.answering, self._heard = True, 0
        self.typing.state("thinking")
        self._replies.begin(step, "" if self._beat else after)  # nothing of a beat was shown yet
        self._side_messages.begin(step)

    async def update(self, event: MessageUpdate) -> None:
        self._heard += len(event.delta)
        if self._beat is not None:
            return
        if event.part == "text" and not self._quiet:
            self._showing.changed()
            for at in range(0, len(event.delta), _LONG):
                if at:
                    await asyncio.sleep(0)
                if blocks := self._replies.feed(event.delta[at : at + _LONG]):
                    await self._words(blocks)
        elif event.part == "thinking" and (thoughts := self._side_messages.think(event.delta)):
            await self._plan(thoughts)
        self._given.bus.publish(event)

    @_followed_through
    async def step(self, step: Step) -> Kept:
        self.answering, self._heard = False, 0
        await self._showing.finish()
        silent = any(call.name == STAY_SILENT for call in step.message.tool_calls)
        if self._beat is None:
            blocks = await self._last_blocks(step, silent=silent)
        else:
            if (words := await self._beat.shown(step, silent=silent)) == HEARTBEAT_OK:
                words, blocks = "", self._outbox.notice(quiet(self.turn.turn_id), HEARTBEAT_OK, self.turn.place.channel)
            else:
                self._replies.feed(words)
                blocks = await self._last_blocks(step, silent=not words)
            step = replace(step, ended=replace(step.ended, text=words))
        with self._outbox.planning(self.turn.conv_id, self.turn.place, blocks) as where:
            kept, deliveries = await self._turns.step(self.turn.run, step, where, blocks, self.typing.last())
            if self.limited:
                self.settle()
            if kept.end is not None:
                self.typing.stop()
            self._outbox.send(deliveries)
        if kept.end is not None and not deliveries:
            self._outbox.serve(self.turn.conv_id, self.turn.place)  # so that the sign of work is removed
        return kept

    async def _last_blocks(self, step: Step, *, silent: bool) -> Sequence[Planned]:
        """Return the last blocks of a complete answer: the rest of its words, its files, then notices."""
        ended, failed = step.ended, step.failed
        if silent or self._quiet:
            return ()
        # An answer that claims what was not done is not shown, unless its beginning was shown already.
        claims = step.note is not None and step.note.mark is Mark.CLAIM
        if claims and not self._replies.has_planned and not self._replies.previews:
            return ()
        blocks = await asyncio.to_thread(self._replies.end) if len(ended.text) > _LONG else self._replies.end()
        calls = step.message.tool_calls
        await self._files.save()
        if step.note is None:  # a cut one sends them with its rest
            blocks = (*blocks, *await self._files.named(self._replies, self._notice, last=not calls))
        if step.note is None and ended.stop_reason in wording.ENDED_EARLY:
            blocks = (*blocks, *self._notice(f"ended{ended.step}", wording.ENDED_EARLY[ended.stop_reason]))
        if failed is not None:
            said = spoken(wording.tool_failed(failed.name, failed.text))
            blocks = (*blocks, *self._notice(f"failed:{failed.call_id}", said))
        used = ""
        if self._verbose and step.note is None and not calls:
            used = wording.used(step.usage, self._given.budgets.prices.cost(step.message.model or "", step.usage))
        blocks = self._side_messages.around(blocks, calls, used)
        if step.acts and self._beat is None:
            blocks = (*blocks, *await self._given.receipts.under(self.turn, ended.step, step.acts))
        return blocks

    @_followed_through
    async def note(self, message: Message, kind: EntryKind = "note") -> Entry:
        return await self._turns.note(self.turn.run, message, kind)

    @_followed_through
    async def start_calls(
        self, starts: Sequence[ToolExecutionStart], reach_out: bool | None = None, follows: Sequence[str] = ()
    ) -> Begun:
        self.typing.state("tool")
        return await self._turns.start_calls(self.turn.run, [one.call_id for one in starts], starts, reach_out, follows)

    @_followed_through
    async def process_started(self, call_id: str, pid: int, started: str) -> None:
        await self._turns.process_started(self.turn.run, call_id, pid, started)

    @_followed_through
    async def park(self, call_id: str, ask: Ask) -> AgentEnd | Decision:
        if self._quiet:
            ask = replace(ask, by=await self._given.store.children.label(self.turn.session_key))
        request = await self._given.requests.put(self.turn, ask)
        if isinstance(request, Decision):
            return request
        with self._outbox.planning(self.turn.conv_id, self.turn.place, request.blocks) as where:
            deliveries, end = await self._given.store.approvals.park(self.turn.run, call_id, ask, request, where)
            self._outbox.send(deliveries)
        await self.typing.waits()
        self._given.requests.hurry()
        if request.notice is not None or request.elsewhere:
            await self._outbox.serve_open()
        return end

    @_followed_through
    async def park_for_model(self, outage: Outage) -> AgentEnd | None:
        for_program = self.turn.place.kind is ChatKind.API and outage.kind in KEY_FAILURES
        if self.turn.kind in BY_THEMSELVES or for_program:  # a program is rather told at once that its key is refused
            return None
        await self.keep()
        self.stop_showing()
        end = await self._given.outages.park(self.turn, outage, to_owner=self._to_owner and not self._quiet)
        await self.typing.waits()
        return end

    @_followed_through
    async def park_for_budget(self, reached: BudgetReached) -> AgentEnd | None:
        if not isinstance(reached, Reached) or self._by_itself or self.turn.place.kind is ChatKind.API:
            return None
        await self.typing.waits()
        return await park(self.turn, reached, self._given.store, self._outbox, to_owner=self._to_owner)

    @_followed_through
    async def answers(self, model: str, wanted: str) -> None:
        if (away := model if model != wanted else "") != self._away:
            told, self._away = not (away and self._away), away
            await self._given.outages.answers(self.turn, wanted, away, tell=told)

    @_followed_through
    async def thinks_less(self, model: str, level: ThinkingLevel, *, refused: bool) -> None:
        await self._given.outages.thinks_less(self.turn, model, level, refused=refused)

    @_followed_through
    async def left_out(self, model: str, parts: Sequence[str]) -> None:
        await self._given.outages.left_out(self.turn, model, parts)

    @_followed_through
    async def send(self, place: Place, blocks: Sequence[Planned], told: ToldOf, most: int = 0) -> bool:
        """Plan the blocks that the `message` tool sends to a place; returns whether they were planned.

        told, most: see `Turns.plan_elsewhere`; they count for other places than that of the turn.
        """
        if place == self.turn.place:
            for first in blocks[:1]:
                file = first.file.path if first.file else ""
                self._replies.sent(Said(source=first.source, text=first.said, file=file))
            await self._plan(blocks)
            return True
        deliveries = await self._turns.plan_elsewhere(self.turn.run, place, blocks, told, most)
        self._outbox.send(deliveries)
        return bool(deliveries)

    @_followed_through
    async def results(
        self, results: Sequence[CallResult], ends: Sequence[ToolExecutionEnd], *, batch_done: bool, silent: bool
    ) -> Kept:
        kept = await self._turns.results(self.turn.run, results, batch_done=batch_done, silent=silent, events=ends)
        if kept.end is not None:
            self.typing.stop()
            self._outbox.serve(self.turn.conv_id, self.turn.place)
        return kept

    async def keep(self) -> bool:
        if not self.answering or self._beat is not None or self._quiet:
            return False
        await self._showing.finish()
        if blocks := self._replies.cut():
            await self._words(blocks)
        return self._replies.has_planned

    @_followed_through
    async def cut(self, notice: Callable[[Cut], Notice], kind: ErrorKind) -> Cut:
        self.stop_showing()
        heard = self._heard // 4 if self._heard or kind in _BILLED else None
        cut = await self._turns.cut(self.turn.run, lambda cut: (notice(cut),), heard=heard)
        self.settle()
        return cut

    @_followed_through
    async def fail(self, outcome: Outcome, error_kind: str | None, error_message: str | None) -> AgentEnd:
        self.stop_showing()
        cause, local = error_message if outcome is Outcome.FAILED else None, self.turn.place.kind in LOCAL
        if error_kind == BUDGET:
            said = error_message or ""
        else:
            said = wording.failure(error_kind, cause if self._to_owner else None, to_owner=self._to_owner or local)
        told = await self._failure(said)
        blocks = self._notice("error", told) if told else ()
        notice = None
        if told and said == wording.OUT_OF_ORDER:  # once an hour for each kind of error: every message may meet it
            source = sentence("failed", error_kind, self._given.clock.now() // _HOUR)
            notice = self._outbox.to_owner(source, wording.failed_elsewhere(self.turn.place, error_kind, cause))
        if error_kind == BUDGET and not self._quiet and not (told and (self._to_owner or local)):
            source = sentence("budget", self.turn.session_key, self._given.clock.now() // _HOUR)
            notice = self._outbox.to_owner(source, f"{budget_words.elsewhere(self.turn.place)} {said}")
        with self._outbox.planning(self.turn.conv_id, self.turn.place, blocks) as where:
            deliveries, end = await self._turns.finish(
                self.turn.run,
                outcome,
                error_kind=error_kind,
                error_message=error_message,
                where=where,
                blocks=blocks,
                notice=notice,
                last=self.typing.last(failed=True),
                heard=self._heard // 4 if self._heard or error_kind in _BILLED else None,
            )
            self.settle()
            self.typing.stop()
            self._outbox.send(deliveries)
        if notice is not None:
            await self._outbox.serve_open()
        return end

    async def _failure(self, said: str) -> str:
        """Return what people are told of a failure, `said`; empty for beats, sub-agents, and jobs that fail again."""
        if self._beat is not None or self._quiet:
            return ""
        found = (
            await self._given.store.schedules.firing_of(self.turn.turn_id) if self.turn.kind is TurnKind.JOB else None
        )
        return wording.job_failed(found[1], said) if found and found[1] else said

    async def _words(self, blocks: Sequence[Planned]) -> None:
        """Plan words of an answer, with the reasoning that is shown before them."""
        await self._plan((*self._side_messages.before(), *blocks))

    @_followed_through
    async def _plan(self, blocks: Sequence[Planned]) -> None:
        await self._files.save()
        with self._outbox.planning(self.turn.conv_id, self.turn.place, blocks) as where:
            self._outbox.send(await self._turns.plan(self.turn.run, where, blocks))

    async def say(self, source: Source, text: str) -> None:
        """Tell people a sentence besides the answer, once per source."""
        await self._plan(self._sentence(source, text))

    async def _sent_as(self, preview: Planned) -> str:
        return next(iter((await self._outbox.outcome(preview.source)).ids), "")

    def settle(self) -> None:
        """Give up what is reserved for a model call; what it has used is in the store."""
        self._given.budgets.settle(self.turn.turn_id)

    def stop_showing(self) -> None:
        """Show nothing more of the answer that is being written."""
        self.answering = False
        self._showing.stop()

    def _notice(self, name: str, text: str) -> Sequence[Planned]:
        return self._outbox.notice(of_turn(self.turn.turn_id, name), text, self.turn.place.channel)

    def _sentence(self, source: Source, text: str) -> Sequence[Planned]:
        return self._outbox.notice(source, text, self.turn.place.channel, ours=False)
