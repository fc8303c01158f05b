"""What people are asked, as the store keeps it: calls that wait, questions, and what is allowed for always."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agent.events import AgentEnd, RunRef
from agent.tools.base import Ask, Verdict
from bot.persistence.values import OwnerNotice, PlanIn
from channels.message import Place
from channels.outgoing import Delivery, Planned

# Digits of an id that people are shown: no other beginning of it means a request.
SHOWN = 8
# Among those who may answer a question: whoever writes in a conversation where it was asked.
ANYONE = "*"
# The reason of one that expired because its turn was stopped.
STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An Ask as it is put to people. approval_id: 32 hexadecimal digits.

    approvers: who may decide, "channel:id" of each; those of the terminal, the socket and the token always may.
    expires: milliseconds from now. blocks: for the conversation that the turn answers in; elsewhere: for others;
    notice: for an owner. Deliveries that show it are named `ask:<approval id>`, with `:<n>` and `.<n>` behind.
    """

    approval_id: str
    approvers: tuple[str, ...]
    expires: int
    blocks: Sequence[Planned] = ()
    elsewhere: Sequence[tuple[Place, Sequence[Planned]]] = ()
    notice: OwnerNotice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A request, and what has become of it. place: where its turn answers. asker: who wrote last of those who asked,
    "channel:id". reason: of a decision; of a question its answer. Times in milliseconds."""

    approval_id: str
    turn_id: str
    call_id: str
    session_key: str
    place: Place
    asker: str
    tool: str
    ask: Ask
    approvers: tuple[str, ...]
    asked_at: int
    expires_at: int
    state: Verdict | Literal["open"]
    decided_by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Granted:
    """What is allowed from then on: for the program, and in words. by: who allowed it; at: milliseconds."""

    what: str
    words: str
    by: str
    at: int


# How a request looks once it is decided: for which place, and whether the message shows all of it (else its end).
Shown = Callable[[Place, bool], Sequence[Planned]]


class Approvals(Protocol):
    """Turns that wait for a person."""

    async def park(
        self, run: RunRef, call_id: str, ask: Ask, request: Request, where: PlanIn
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
        """A run ends at a call about which a person must decide.

        Its message stays taken: the turn has not ended. Returns what is to be delivered and the end of the run.
        """

    async def decide(self, approval_id: str, state: Verdict, by: str, reason: str = "") -> tuple[str, bool] | None:
        """Settle an open approval and queue its turn; by: who decided, "channel:id"; empty: nobody did in time.

        reason: for the model; of one that expires empty, for then its own words count.

        Returns the session to wake, and whether its turn is of the background; None when it is not open any more, or
        not in time. Whether `by` may decide is the caller's to know.
        """

    async def due(self) -> Sequence[str]:
        """The ids of those that are open and whose time is over: they are to be decided as "expired"."""

    async def next_expiry(self) -> int | None:
        """When the next of the others has had its time; None where there is none."""

    async def find(self, named: str) -> Sequence[Approval]:
        """Those that an id means, in any state, newest first; at most twenty.

        named: all 32 digits of it, or the SHOWN first ones; case and dashes do not matter. Anything else means none.
        """

    async def questions(self, turn_id: str) -> int:
        """How many questions a turn has asked people, whatever became of them."""

    async def open(self) -> Sequence[Approval]:
        """Those that wait, oldest first."""

    async def offered(self, place: Place) -> Sequence[Approval]:
        """Requests that wait and are shown in a chat in full, oldest first; no questions."""

    async def seen(self, place: Place) -> frozenset[str]:
        """Who has written to the bot in a chat, by their ids."""

    async def words(self, approval_id: str, seq: int, place: Place) -> str:
        """What somebody wrote in a chat while a request waited, by its place in the inbox; empty when it is gone."""

    async def untold(self) -> Sequence[str]:
        """The ids of those that are settled, while their messages do not show it."""

    async def tell(self, approval_id: str, shown: Shown) -> tuple[Delivery, ...]:
        """Plan the edits that show it, once."""

    async def granted(self) -> Sequence[Granted]:
        """What is allowed for always, oldest first."""

    async def revoke(self, what: str) -> bool:
        """Allow it no more; False when it was not."""
