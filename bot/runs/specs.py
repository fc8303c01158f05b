"""What a run is made of, decided anew for each turn: model, limits, tools and prompt."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from agent.models.base import ModelClient
from agent.spec import CallRules, Limits, Progress, RunSpec, ToolSet
from agent.tools.base import RunContext, Tool, ToolFactory
from bot.clock import Clock
from bot.people.access import is_trusted
from bot.persistence.settings import AnsweredBy, SessionSettings
from bot.persistence.turns import Turn, TurnKind
from bot.runs.messaging import Messaging, Send
from bot.runs.permissions import Offer, Permissions
from bot.runs.prompts import Prompts
from bot.runs.rooms import Furniture, Rooms


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """Brings together the tools of the room, those that are made for each run, and what a turn may have of them."""

    # Make the tools that come from outside this package, and close them with the run.
    factories: Sequence[ToolFactory]
    # Makes the `message` tool.
    messaging: Messaging
    # Makes the `schedule` tool.
    scheduling: Callable[[Turn], Tool[Any]]
    # Decides which of all these tools a turn has.
    permissions: Permissions

    async def open(
        self, turn: Turn, inside: Furniture, made: AsyncExitStack, send: Send
    ) -> tuple[Offer, Mapping[str, Tool[Any]]]:
        """What a turn is offered, and all its tools by name, which are closed with `made`.

        inside: what is in the room of its session. send: plans what the `message` tool sends. Raises what a factory
        raises.
        """
        trusted = all(map(is_trusted, turn.messages))
        run = RunContext(
            turn_id=turn.turn_id, session_key=turn.session_key, trusted=trusted, workspace=inside.workspace
        )
        found: list[Tool[Any]] = [*inside.tools]
        for make in self.factories:
            found += await made.enter_async_context(make(run))
        found += (*self.messaging.tools(turn, trusted, send), self.scheduling(turn))
        return self.permissions.offer(turn, inside.room, found), {tool.name: tool for tool in found}


# Turns that nobody asks for at the moment.
BY_THEMSELVES = (TurnKind.BEAT, TurnKind.JOB)


@dataclass(frozen=True, slots=True)
class Answerer:
    """What answers a turn: a model, with the level of thinking that its client asks for, within limits."""

    model: ModelClient
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Specs:
    """Answers for each turn, by its kind, channel, chat, session and settings, what its run is made of."""

    clock: Clock
    # Whom people ask, and what beats.
    answerer: Answerer
    beating: Answerer
    # Where the tools of a session work.
    rooms: Rooms
    toolbox: Toolbox
    prompts: Prompts
    # Of all calls of tools.
    rules: CallRules

    def answering(self, kind: TurnKind, settings: SessionSettings) -> Answerer:
        """What answers a turn of this kind, in a session with these settings. Depends on nothing else, so that the
        claim of a turn and its run are told the same."""
        return self.beating if kind is TurnKind.BEAT else self.answerer

    def answered_by(self, kind: TurnKind, settings: SessionSettings) -> AnsweredBy:
        """The same as the claim of a turn writes it down."""
        model = self.answering(kind, settings).model
        return AnsweredBy(model.name, model.thinking)

    @asynccontextmanager
    async def of(self, turn: Turn, send: Send) -> AsyncIterator[RunSpec]:
        """The whole of it, for as long as the run works. send: plans what its `message` tool sends.

        Raises StoreUnavailable, OSError or WorkspaceError when the workspace cannot be used, or what a factory of tools
        raises.
        """
        async with AsyncExitStack() as made:
            inside = await self.rooms.enter(turn.session_key)
            offer, tools = await self.toolbox.open(turn, inside, made, send)
            answerer = self.answering(turn.kind, turn.settings)
            yield RunSpec(
                ref=turn.run,
                model=answerer.model,
                system=await self.prompts.of(turn, inside, offer.specs),
                limits=answerer.limits,
                tools=ToolSet(
                    by_name={name: tools[name] for name in offer.names},
                    specs=offer.specs,
                    refused=offer.refused,
                    as_guest=offer.as_guest,
                ),
                rules=self.rules,
                progress=Progress(step=turn.step, usage=turn.usage, ran=turn.ran / 1000, decisions=turn.decisions),
                images=inside.images,
                overflow=inside.overflow,
                now=self.clock.now,
                sleep=self.clock.sleep,
                background=turn.kind in BY_THEMSELVES,
                may_be_empty=turn.kind is TurnKind.BEAT,
            )
