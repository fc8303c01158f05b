"""Values of the store about what people are asked: requests, questions, and what is allowed for always."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.tools.base import Ask, Verdict
from bot.persistence.deliveries import OwnerNotice
from channels.message import Place
from channels.outgoing import Planned

# The number of digits of an id that people are shown. No shorter or longer part of an id names a request.
SHOWN = 8
# The words that programs send for a decision.
VERDICTS: dict[str, Verdict] = {"once": "once", "always": "always", "deny": "denied", "answer": "answered"}
# As an approver of a question: anybody who writes in a conversation in which it was asked.
ANYONE = "*"
# The reason of a request that expired because its turn was stopped.
STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An Ask as it is put to people. The source of each delivery that shows it begins with `ask:<approval id>`."""

    # 32 hexadecimal digits.
    approval_id: str
    # Who may decide, "channel:id" of each or ANYONE. Those of the terminal, the socket and the token always may.
    approvers: tuple[str, ...]
    # Milliseconds from now.
    expires: int
    # What is shown in the conversation of the turn, in others, and to an owner directly.
    blocks: Sequence[Planned] = ()
    elsewhere: Sequence[tuple[Place, Sequence[Planned]]] = ()
    notice: OwnerNotice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A request, and what has become of it. Times are in milliseconds."""

    approval_id: str
    # The call that waits, and its turn.
    turn_id: str
    call_id: str
    session_key: str
    # The turn is a beat or a job, so nobody's words wait for it.
    by_itself: bool
    # Where the turn answers.
    place: Place
    # Who wrote the last message that the turn answers, as "channel:id"; empty if that is not kept any more.
    asker: str
    # The name of the tool that is called.
    tool: str
    ask: Ask
    approvers: tuple[str, ...]
    asked_at: int
    expires_at: int
    state: Verdict | Literal["open"]
    # "channel:id" and a name; empty while it is open, and if nobody decided.
    decided_by: str = ""
    # When that was; 0 while it is open.
    decided_at: int = 0
    # The reason of the decision; of a question its answer.
    reason: str = ""
    # Of several calls the numbers, from 1, of those that alone were allowed; empty: all were decided alike.
    picked: tuple[int, ...] = ()
    # When what was allowed with it ends; None: it does not.
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What somebody decides about a request."""

    verdict: Verdict
    # For the model; of a question its answer. Empty for a request that expires, which keeps the words made for that.
    reason: str = ""
    # Of several calls the numbers, from 1, of those that alone are allowed; empty: it is about all of them.
    picked: tuple[int, ...] = ()
    # With the verdict "always" the seconds for which the same is allowed, in this session; 0: without an end.
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class Granted:
    """Something that a person has allowed for more than one call."""

    # As calls name it (`Ask.grants`), and in words for people.
    what: str
    words: str
    # Who allowed it, and when, in milliseconds.
    by: str
    at: int
    # The session in which it holds; empty: in all.
    session_key: str = ""
    # When it ends, in milliseconds; None: it does not.
    until: int | None = None


# Makes the edit that shows a decided request, for a place and for whether the edited message shows all of the request
# (else only its end). Has no effects.
Shown = Callable[[Place, bool], Sequence[Planned]]
