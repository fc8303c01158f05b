"""Values of the store about what model calls have used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.message import Usage

# Returns the US dollars that so many tokens of a model cost, by its name; None if no price is known.
Cost = Callable[[str, Usage], float | None]


def no_price(model: str, usage: Usage) -> None:
    """A Cost that knows no price."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens, input and output together, and US dollars."""

    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.tokens + other.tokens, self.money + other.money)


@dataclass(frozen=True, slots=True)
class BudgetWait:
    """What a turn waits for that has reached a budget."""

    # The scope of the budget, and whom it belongs to in that scope.
    scope: str
    of: str
    # When another day begins whose budget is enough, in milliseconds; None: it is of a turn, or no day is enough.
    until: int | None
    # A configured model that fits into what is left; empty: there is none.
    cheaper: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A turn that waits for a budget."""

    turn_id: str
    session_key: str
    wait: BudgetWait


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a turn has used, and what was used since some moment by those it belongs to."""

    # Who wrote first to the turn, as channel:id, and the id of its job; empty if nobody or none did.
    sender: str
    job_id: str
    turn: Amount
    session: Amount
    user: Amount
    job: Amount
    bot: Amount
    # How often an owner has allowed the whole limit once more, by the scope.
    raised: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What the model calls of one model, or of one session, have used."""

    # The model as provider/model, or the session key.
    name: str
    calls: int
    usage: Usage
    # US dollars of those calls whose price is known; None if that is none.
    money: float | None
