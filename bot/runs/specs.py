"""Decides for each turn what its run is made of: model, limits, tools and prompt."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from agent.models.base import ThinkingLevel
from agent.models.fleet import Fleet, Route
from agent.prompt.requests import Requests
from agent.spec import CallRules, Limits, Progress, RunSpec, ToolSet
from agent.tools.base import RunContext, Tool, ToolFactory
from agent.window import Compaction, CompactionRules, Scale, Summarizer
from bot.clock import Clock
from bot.people.access import is_trusted
from bot.persistence.settings import AnsweredBy, SessionSettings
from bot.persistence.turns import BY_THEMSELVES, Turn, TurnKind
from bot.replies.reactions import Working
from bot.runs.hooking import model_of
from bot.runs.keeping import Keeping, KeepingDependencies
from bot.runs.messaging import Messaging, Send
from bot.runs.permissions import Offer, Permissions, narrowed
from bot.runs.prompts import Prompts
from bot.runs.rooms import Furniture, Room, Rooms
from bot.runs.task_list import TaskListTool
from channels.message import InboundMessage
from channels.session_key import begins_anew

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """Collects the tools of a turn, from its room and made for its run, and decides which of them the turn has."""

    # The tools that come from outside this package: those that all runs share, and what makes others for a run, with
    # which they are closed.
    shared: Sequence[Tool[Any]]
    factories: Sequence[ToolFactory]
    # Makes the `message` tool.
    messaging: Messaging
    # Makes the `schedule` tool.
    scheduling: Callable[[Turn], Tool[Any]]
    # The tools about sessions, and what they need to know of the turns that run, by their ids: the room, the offer.
    sessions: Sequence[Tool[Any]]
    working: dict[str, tuple[Turn, Room, Offer]]
    # Decides which of all these tools a turn has.
    permissions: Permissions

    async def open(
        self, turn: Turn, inside: Furniture, made: AsyncExitStack, send: Send
    ) -> tuple[Offer, Mapping[str, Tool[Any]]]:
        """Return what a turn is offered, and all its tools by name.

        inside: the furniture of the room of its session. made: closes the tools with the run. send: plans what the
        `message` tool sends. Raises what a factory raises.
        """
        trusted = all(map(is_trusted, turn.messages))
        run = RunContext(
            turn_id=turn.turn_id,
            session_key=turn.session_key,
            transcript_id=turn.transcript_id,
            trusted=trusted,
            workspace=inside.workspace,
        )
        found: list[Tool[Any]] = [*inside.tools, *self.shared]
        for make in self.factories:
            found += await made.enter_async_context(make(run))
        rules, anew = turn.settings.child, begins_anew(turn.session_key)
        found += (messaging := () if rules else self.messaging.tools(turn, trusted, send))
        if messaging and not anew:  # there nobody watches the work
            found.append(TaskListTool(turn, self.messaging.outbox, send))
        if rules is None:  # a sub-agent says and orders nothing by itself
            found.append(self.scheduling(turn))
        if not anew:
            found += self.sessions
        offer = self.permissions.offer(turn, inside.room, found)
        if rules is not None:
            offer = narrowed(offer, rules)
        self.working[turn.turn_id] = turn, inside.room, offer
        made.callback(self.working.pop, turn.turn_id, None)
        return offer, {tool.name: tool for tool in found}


@dataclass(frozen=True, slots=True)
class Answerer:
    """What answers a turn: the name of a model, its level of thinking, and the limits of the run."""

    model: str
    thinking: ThinkingLevel
    limits: Limits


@dataclass(eq=False, slots=True, kw_only=True)
class Specs:
    """Decides what a run is made of, by the kind, channel, chat, session and settings of its turn."""

    clock: Clock
    # All models, and which of their keys rest.
    fleet: Fleet
    # What answers people and jobs, and what answers beats.
    answerer: Answerer
    beating: Answerer
    # Returns the model that the configuration names for the place of a message, or an empty text; None: it names none.
    models_there: Callable[[InboundMessage], str] | None
    # The models that others than owners may choose; empty: all.
    guest_models: Sequence[str]
    # The folders in which the tools of sessions work.
    rooms: Rooms
    toolbox: Toolbox
    prompts: Prompts
    # Remembers the last request of each transcript.
    requests: Requests
    # The rules for all calls of tools.
    rules: CallRules
    # When and how conversations are summed up, how estimates of their size are corrected, and what persists summaries.
    compaction: CompactionRules
    scale: Scale
    keeping: KeepingDependencies
    # Of an extension: sums up in place of a model.
    summarizer: Summarizer | None = None

    def answering(self, kind: TurnKind, settings: SessionSettings, messages: Sequence[InboundMessage]) -> Answerer:
        """Return what answers a turn of this kind with these messages, in a session with these settings.

        It depends on nothing else, so that the claim of a turn and its run get the same. The model is that of the
        newest message, else of the session, else of the group, else of the account, else of the agent; the level of
        thinking is that of the newest message, else of the session, else of the agent.
        """
        if kind is TurnKind.BEAT:
            return self.beating
        model = (messages[-1].model if messages else "") or settings.model
        model = model or (self.models_there(messages[0]) if self.models_there and messages else "")
        thinking = (messages[-1].thinking if messages else "") or settings.thinking
        answerer = self.answerer
        if settings.child is not None and settings.child.timeout:
            answerer = replace(answerer, limits=replace(answerer.limits, timeout=settings.child.timeout))
        if not (model or thinking):
            return answerer
        known = model if model and self.fleet.knows(model) else answerer.model
        return replace(answerer, model=known, thinking=thinking or answerer.thinking)

    def answered_by(self, kind: TurnKind, settings: SessionSettings, messages: Sequence[InboundMessage]) -> AnsweredBy:
        """Return the model and thinking of `answering`, as the claim of a turn persists them."""
        found = self.answering(kind, settings, messages)
        return AnsweredBy(found.model, found.thinking)

    @asynccontextmanager
    async def of(
        self, turn: Turn, send: Send, state: Callable[[Working], None] = lambda _: None
    ) -> AsyncIterator[RunSpec]:
        """Make the specification of a run, whose tools are open until the context is left.

        send: plans what the `message` tool sends. state: shows what the run does. Raises StoreUnavailable, OSError or
        WorkspaceError when the workspace cannot be used, or what a factory of tools raises.
        """
        async with AsyncExitStack() as made:
            inside = await self.rooms.enter(turn.session_key)
            offer, tools = await self.toolbox.open(turn, inside, made, send)
            answerer = self.answering(turn.kind, turn.settings, turn.messages)
            if self.rules.hooks.points:
                answerer = await self._hooked(turn, answerer)
            background = turn.kind in BY_THEMSELVES
            prompt = await self.prompts.of(turn, inside, offer.specs)
            yield RunSpec(
                ref=turn.run,
                route=Route(self.fleet, answerer.model, turn.session_key, answerer.thinking, turn.settings.levels),
                system=prompt.text,
                origins=prompt.origins,
                limits=answerer.limits,
                tools=ToolSet(
                    by_name={name: tools[name] for name in offer.names},
                    specs=offer.specs,
                    refused=offer.refused,
                    as_guest=offer.as_guest,
                ),
                rules=self._rules(turn, by_owners=offer.by_owners),
                progress=Progress(step=turn.step, usage=turn.usage, ran=turn.ran / 1000, decisions=turn.decisions),
                images=inside.images,
                overflow=inside.overflow,
                now=self.clock.now,
                sleep=self.clock.sleep,
                sent=partial(self.requests.sent, turn.transcript_id, turn.session_key, prompt, background),
                transcript_id=turn.transcript_id,
                for_owners=offer.by_owners,
                compaction=Compaction(
                    rules=self.compaction,
                    scale=self.scale,
                    keeper=Keeping(self.keeping, turn, inside.workspace, state),
                    summing=partial(self._summing, turn, answerer),
                    engine=self.summarizer,
                ),
                background=background,
                may_be_empty=turn.kind is TurnKind.BEAT,
            )

    async def _hooked(self, turn: Turn, answerer: Answerer) -> Answerer:
        """Return what answers a turn, with the model that hooks have chosen if it is one that is known."""
        model = await model_of(self.rules.hooks, turn, answerer.model)
        if not self.fleet.knows(model):
            log.warning("a hook has named a model that is not configured", model=model)
            return answerer
        return replace(answerer, model=model)

    def _rules(self, turn: Turn, *, by_owners: bool) -> CallRules:
        """Return the rules for the calls of a turn. by_owners: owners alone wrote it."""
        if by_owners:
            return self.rules
        trusts = self.toolbox.permissions.trusts(turn)
        return replace(self.rules, origins=replace(self.rules.origins, trusts=trusts))

    def _summing(self, turn: Turn, answerer: Answerer) -> Route:
        """Return the way to the model that sums up the conversation of a turn."""
        own = self.compaction.model
        wanted = own if own and self.fleet.knows(own) else answerer.model
        return Route(self.fleet, wanted, turn.session_key, answerer.thinking, turn.settings.levels)
