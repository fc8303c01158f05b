"""What people are asked, as the store keeps it: calls that wait, questions, and what is allowed for always."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.tools.base import Ask, Verdict
from bot.persistence.deliveries import OwnerNotice
from channels.message import Place
from channels.outgoing import Planned

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
