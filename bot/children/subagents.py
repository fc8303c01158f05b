"""Decides which session may start, see and write to which: a session its sub-agents, and an owner's every other one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.errors import ToolError
from agent.models.fleet import Fleet
from agent.tools.base import CallContext
from agent.tools.registry import SESSIONS
from bot import wording
from bot.clock import Clock
from bot.compose import named
from bot.config.model import Agent
from bot.persistence.children import SENT_HEAD, TASK, TASK_HEAD, NewChild, SessionView, sent_key, started
from bot.persistence.settings import ChildRules, SessionSettings, Thinking
from bot.persistence.turns import Turn
from bot.runs.permissions import Offer
from bot.runs.rooms import Room
from bot.store.codec import ORIGINS
from bot.store.store import Store
from channels.message import InboundKind, InboundMessage, Origin
from channels.session_key import CHILD, child_key, parse, root_of

# The most sessions that are listed, and characters of a label.
MOST = 50
_LABEL = 64
# Characters of the id of a sub-agent.
_ID = 8


@dataclass(eq=False, kw_only=True)
class SubAgents:
    """The sub-agents of a service."""

    store: Store
    clock: Clock
    fleet: Fleet
    # Lets a session run; it is given the key, and whether it is work of the background.
    wake: Callable[[str, bool], None]
    # Returns whether an owner wrote a message.
    is_owner: Callable[[InboundMessage], bool]
    # `agent` of the configuration.
    agent: Agent

    # The turns that run, see `Toolbox.working`.
    working: dict[str, tuple[Turn, Room, Offer]] = field(default_factory=dict, init=False)

    def access(self, context: CallContext) -> "SessionAccess":
        """Return what the turn of a call may see and write to."""
        return SessionAccess(self, *self.working[context.turn_id])

    async def sentence(self) -> str:
        """Return how many sub-agents there are at present; empty if there are none."""
        found = await self.store.children.open("")
        return f"{len(found)} at work, `/subagents` shows them" if found else ""


@dataclass(frozen=True, slots=True)
class SessionAccess:
    """The sessions that the run of a turn may see and write to."""

    subagents: SubAgents
    turn: Turn
    room: Room
    # What the turn is offered.
    offer: Offer

    @property
    def sees_all(self) -> bool:
        """Whether the turn sees every session (`Room.sees_all`)."""
        own = self.turn.session_key
        return root_of(own) == own and self.room.sees_all(self.turn.place, by_owners=self.offer.by_owners)

    async def visible(self) -> Sequence[SessionView]:
        """Return the sessions that the turn sees. Raises StoreUnavailable."""
        return await self.subagents.store.children.visible(self.turn.session_key, MOST, everything=self.sees_all)

    def check(self, session_key: str) -> str:
        """Return the session of a key, the turn's own for an empty one. Raises ToolError if it is not seen."""
        own = self.turn.session_key
        if session_key and session_key != own and not self.is_below(session_key) and not self.sees_all:
            raise ToolError(
                f"There is no session {session_key!r} that this conversation may see; sessions_list has all."
            )
        return session_key or own

    def is_below(self, session_key: str) -> bool:
        """Return whether a session is one of a sub-agent of the turn's own."""
        return session_key.startswith(f"{self.turn.session_key}{CHILD}")

    async def start(
        self, context: CallContext, task: str, *, label: str, model: str, thinking: Thinking, timeout: float
    ) -> str:
        """Start a sub-agent and return what the model is told. Raises ToolError, StoreUnavailable.

        model, thinking: empty: as here. timeout: in seconds; 0: as configured.
        """
        subagents, turn, offer = self.subagents, self.turn, self.offer
        if context.background:
            raise ToolError("Nobody is here to whom it could be told: what runs by itself starts no sub-agents.")
        if model and not subagents.fleet.knows(model):
            raise ToolError(f"There is no model {model!r}. Leave it out, and the model of this conversation works.")
        allowed = subagents.agent.guest_models
        if model and not offer.by_owners and allowed and model not in allowed:
            raise ToolError(f"{model} is not for this person to choose: {', '.join(allowed)} are.")
        depth, most_depth = len(parse(turn.session_key).children) + 1, subagents.agent.subagents.max_depth
        if depth > most_depth:
            raise ToolError("No sub-agents are started here: `agent.subagents.max_depth` is reached.")
        without = (*offer.refused, *(SESSIONS if depth == most_depth else ()))
        usable = tuple(name for name in offer.names if name not in without)
        rules = ChildRules(
            tools=usable, as_guest=tuple(sorted(offer.as_guest)), by_owners=offer.by_owners, timeout=timeout
        )
        here, newest = turn.settings, turn.messages[-1]
        settings = SessionSettings(
            model=model or newest.model or here.model,
            thinking=thinking or newest.thinking or here.thinking,
            child=rules,
        )
        label = wording.one_line(label.strip() or task)[:_LABEL] or "sub-agent"
        child = NewChild(
            session_key=child_key(turn.session_key, subagents.clock.new_id().replace("-", "")[-_ID:]),
            label=label,
            task=self._message(context, f"{TASK}{turn.turn_id}:{context.call_id}", task, TASK_HEAD, self._origin()),
            turn_id=subagents.clock.new_id(),
            settings=settings,
            call_id=context.call_id,
        )
        most = subagents.agent.subagents.max_children
        if not await subagents.store.children.start(turn.run, child, most):
            raise ToolError(f"{most} sub-agents of this conversation work already, as many as may at the same time.")
        subagents.wake(child.session_key, True)
        return started(named(label), child.session_key)

    async def send(self, context: CallContext, session_key: str, text: str) -> str:
        """Let a text cause a turn in another session, and return what the model is told. Raises ToolError."""
        store, below = self.subagents.store, self.is_below(self.check(session_key))
        if not session_key or session_key == self.turn.session_key:
            raise ToolError("That is this conversation: what you answer is said here anyway.")
        if context.as_guest and not below:
            raise ToolError("Whoever asks here may write to sub-agents of this conversation alone.")
        origin = self._origin() if below else await store.children.place(session_key)
        found = await store.children.visible(session_key, 1)
        if origin is None or not found or found[0].session_key != session_key:
            raise ToolError(f"There is nobody in the session {session_key!r} who could be told anything.")
        key = sent_key(self.turn.turn_id, context.call_id)
        await store.children.send(self.turn.run, self._message(context, key, text, SENT_HEAD, origin), session_key)
        self.subagents.wake(session_key, True)
        return "Sent. What it comes to is told here by itself." if below else "Sent. The answer is given there."

    def _origin(self) -> Origin:
        """Return in whose name a sub-agent works: of several senders that of one who is no owner, if there is one."""
        guests = [one for one in self.turn.messages if not self.subagents.is_owner(one)]
        return replace((guests or self.turn.messages)[-1].origin, message_id="")

    def _message(self, context: CallContext, key: str, text: str, head: str, origin: Origin) -> InboundMessage:
        bears = context.stands()  # who asks stays the same: a sub-agent works in their name
        return InboundMessage(
            origin=origin,
            event_key=key,
            kind=InboundKind.CHILD,
            text=text,
            extra_context=head,
            sent_at=self.subagents.clock.now(),
            origins=ORIGINS.dump(bears) if bears else "",
        )
