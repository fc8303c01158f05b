"""What a program may ask of the service: submit a message, look at its turn, wait for it, abort it, steer it.

The HTTP routes wrap this. A run belongs to its session, not to the caller: only `abort` stops it.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Literal

from agent.message import Usage
from bot.bus import EventBus
from bot.clock import Clock
from bot.inbound.pipeline import Pipeline
from bot.people.access import PERSON
from bot.persistence.approvals import Approval
from bot.persistence.inbox import AcceptedMessage, Fresh
from bot.persistence.turns import TurnState, TurnView
from bot.runs.lanes import Lanes
from bot.store.store import Store
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place

OPEN = (TurnState.QUEUED, TurnState.RUNNING, TurnState.PARKED)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a call asks for beside its message, for this turn alone; empty: what its session has."""

    # What the model is told beside the message; it stands in the message, because the system prompt stays as it is.
    extra_context: str = ""
    # The name of the model that answers.
    model: str = ""
    thinking: Literal["", "auto", "off", "low", "medium", "high", "x-high"] = ""
    # Whether a person typed it in the terminal.
    typed: bool = False


@dataclass(eq=False)
class AgentApi:
    """Submits messages and follows their turns; there is one per service."""

    store: Store
    pipeline: Pipeline
    lanes: Lanes
    bus: EventBus
    clock: Clock
    # Called when a turn was aborted that waited for a person.
    settled: Callable[[], None]
    # Whether a model can be asked.
    knows: Callable[[str], bool]

    def clean(self, text: str) -> str:
        """Return a text without secrets."""
        return self.pipeline.clean(text)

    async def submit(
        self,
        text: str,
        session_key: str,
        place: Place,
        sender: str,
        idempotency_key: str | None = None,
        wishes: Wishes = Wishes(),
    ) -> TurnView | None:
        """Store a message and return its turn as it is then.

        The same idempotency key and body give the same turn; None when the key came with another body before.
        place: the conversation (http or console). sender: OWNER or PERSON of `bot/people/access`. wishes: for this turn
        alone. Raises StoreUnavailable when nothing was stored.
        """
        turn_id = self.clock.new_id()
        body = [text, session_key, *astuple(wishes)]
        while not body[-1]:
            body.pop()
        digest = hashlib.sha256(json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")).hexdigest()
        message = self._message(text, place, sender, f"h:{idempotency_key or turn_id}", wishes)
        answer = await self.pipeline.accept_one(
            AcceptedMessage(message=message, session_key=session_key, turn_id=turn_id, digest=digest)
        )
        if isinstance(answer, Fresh):
            return TurnView(
                turn_id, session_key, TurnState.QUEUED, None, "", None, Usage(), None, None, answer.at, None, None
            )
        if answer.digest != digest or answer.turn_id is None:
            return None
        return await self.store.reads.turn(answer.turn_id)

    async def turn(self, turn_id: str) -> TurnView | None:
        """A turn by its id, with what it said so far."""
        return await self.store.reads.turn(turn_id)

    async def wait(
        self, turn_id: str, seconds: float, look: Callable[[TurnView | None], object] = lambda view: None
    ) -> TurnView | None:
        """Return the turn once it has ended, or as it is after `seconds`; None when there is no such turn.

        look: is called with the turn as it is at first; what it raises ends the wait.
        """
        subscription = self.bus.subscribe(run_id=turn_id, ends=True)
        try:
            view = await self.store.reads.turn(turn_id)
            look(view)
            async with asyncio.timeout(seconds):
                while view is not None and view.state in OPEN and await subscription.batch():
                    view = await self.store.reads.turn(turn_id)
        except TimeoutError:
            view = await self.store.reads.turn(turn_id)
        finally:
            self.bus.unsubscribe(subscription)
        return view

    async def abort(self, turn_id: str) -> bool:
        """End a turn, queued or running; False when it had ended already or is not known."""
        view = await self.store.reads.turn(turn_id)
        if view is None or not (ended := await self.store.stops.abort(turn_id)):
            return False
        self.lanes.stop(ended)
        if view.state is TurnState.PARKED:  # what waited behind it
            self.lanes.wake(view.session_key)
            self.settled()
        return True

    async def waits_for(self, turn_id: str) -> Approval | None:
        """The approval that a parked turn waits for."""
        return next((one for one in await self.store.approvals.open() if one.turn_id == turn_id), None)

    async def steer(self, turn_id: str, text: str, sender: str = PERSON) -> bool:
        """Give a running turn a text to read before its next model call.

        False when the turn has ended, and for a PERSON also when it is somebody else's turn.
        """
        view = await self.store.reads.turn(turn_id)
        if view is None:
            return False
        place = Place(channel="http", account="", chat="steer", kind=ChatKind.API)
        message = self._message(self.clean(text), place, sender, f"h:steer:{self.clock.new_id()}")
        return await self.store.inbox.steer(turn_id, message, only_own=sender == PERSON)

    def _message(
        self, text: str, place: Place, sender: str, event_key: str, wishes: Wishes = Wishes()
    ) -> InboundMessage:
        return InboundMessage(
            origin=Origin(place=place, sender=sender),
            event_key=event_key,
            kind=InboundKind.API,
            text=text,
            sent_at=self.clock.now(),
            extra_context=wishes.extra_context,
            model=wishes.model,
            thinking=wishes.thinking,
            typed=wishes.typed,
        )
