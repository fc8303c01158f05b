"""What any store must do: asked through the protocols of `bot/persistence` alone, of each implementation there is.

Another one is a line in IMPLEMENTATIONS: what opens it on a directory (or a schema, or a namespace) of a test.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from agent.events import AgentEnd, Outcome
from agent.message import Text, ToolCall, Usage
from agent.tools.base import Ask
from bot.clock import Clock
from bot.persistence.approvals import Request
from bot.persistence.deliveries import OwnerNotice, PlanIn
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.turns import Turn
from bot.store.store import Store
from channels.console.adapter import PLACE
from channels.message import InboundKind
from channels.outgoing import Delivery, DeliveryState, Planned, SendResult
from channels.sources import sentence
from tests.bot.store.opened import KEY, answering, message, opened, whole

Opens = Callable[..., AbstractAsyncContextManager[Store]]
IMPLEMENTATIONS = {"sqlite": opened}
DAY = 24 * 3600 * 1000
NOBODY = OwnerNotice((), PLACE, lambda place: ())
CALL = ToolCall("c1", "act", "{}")


class Time:
    """A clock that a test moves, in milliseconds."""

    def __init__(self) -> None:
        self.at = 1_784_000_000_000

    def clock(self) -> Clock:
        return Clock(now=lambda: self.at)


async def accept(
    store: Store, *texts: str, kind: InboundKind = InboundKind.MESSAGE, delay: int = 0, session_key: str = KEY
) -> list[int]:
    """Let messages in; returns their places in the order of acceptance."""
    batch = [AcceptedMessage(message=message(text, kind), session_key=session_key, delay=delay) for text in texts]
    return [answer.seq for answer in await store.inbox.accept(batch)]


async def claim(store: Store, worker: str = "one", session_key: str = KEY, **wanted: int) -> Turn:
    turn = await store.turns.claim(session_key, worker, answering, **wanted)  # type: ignore[arg-type]
    assert turn is not None
    return turn


async def answer(store: Store, turn: Turn, *calls: ToolCall, said: Sequence[str] = ()) -> AgentEnd | None:
    """Store an answer with its blocks; returns the end of the turn, if it has ended."""
    step = turn.step + 1
    blocks = [
        Planned(source=sentence(f"turn:{turn.turn_id}:s{step}:b{n}"), body=words, nonce=n, said=words, step=step)
        for n, words in enumerate(said)
    ]
    answered = whole(turn.run, Text("".join(said) or "fine"), *calls, step=step, usage=Usage(1, 2))
    kept, _ = await store.turns.step(turn.run, answered, PlanIn(turn.conv_id), blocks)
    return kept.end


async def settled(store: Store, delivery: Delivery, result: SendResult) -> Delivery | None:
    """Begin a delivery, settle it, and return what is next in its conversation."""
    begun = await store.deliveries.begin(delivery.delivery_id, delivery.conv_id, DAY)
    assert begun is not None
    assert begun.state is DeliveryState.SENDING
    await store.deliveries.settle(begun, result, NOBODY)
    return await store.deliveries.next(delivery.conv_id)


async def parked(store: Store, turn: Turn, seconds: float = 60) -> str:
    """Park a turn at its call; returns the approval."""
    await answer(store, turn, CALL)
    ask = Ask(digest="digest", subject="May it?")
    asked = [Planned(source=sentence("ask:a1"), body=ask.subject, nonce=1)]
    request = Request(approval_id="a1", approvers=("telegram:1",), expires=int(seconds * 1000), blocks=asked)
    _, end = await store.approvals.park(turn.run, "c1", ask, request, PlanIn(turn.conv_id))
    assert end.outcome is Outcome.PARKED
    return "a1"
