"""Values of the book of messages, which balances: accepted = answered + told why not + pending + unexplained."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# What became of a message. told: why it is not answered, to its sender where they may know, else in its row.
EXPLAINED = ("answered", "told", "pending")


@dataclass(frozen=True, slots=True)
class Unexplained:
    """A message of which the rows do not say what became of it, or a row that is missing."""

    account: str
    # How the report names it: its number in the inbox, or `d` and that of a delivery that belongs to no message.
    message: str
    why: str


@dataclass(slots=True)
class Page:
    """A part of the book."""

    # How many messages of each account have become what.
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    unexplained: list[Unexplained] = field(default_factory=list)
    # The number of the last row that was looked at; None if there are no more.
    upto: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountBalance:
    """The book of one account of the bot, as "channel:id"."""

    account: str
    # The sum of the others.
    accepted: int
    answered: int
    told: int
    pending: int
    unexplained: Sequence[Unexplained]


@dataclass(frozen=True, slots=True)
class Balance:
    """The book of all accounts."""

    accounts: Sequence[AccountBalance]

    @property
    def unexplained(self) -> tuple[Unexplained, ...]:
        """All that is not explained."""
        return tuple(one for account in self.accounts for one in account.unexplained)


def add_up(pages: Iterable[Page]) -> Balance:
    """Make the book of its pages."""
    counts: Counter[tuple[str, str]] = Counter()
    unexplained: defaultdict[str, list[Unexplained]] = defaultdict(list)
    for page in pages:
        counts.update(page.counts)
        for one in page.unexplained:
            unexplained[one.account].append(one)
    made = []
    for account in sorted({account for account, _ in counts} | set(unexplained)):
        answered, told, pending = (counts[account, "answered"], counts[account, "told"], counts[account, "pending"])
        lost = tuple(unexplained[account])
        accepted = answered + told + pending + len(lost)
        made.append(
            AccountBalance(
                account=account, accepted=accepted, answered=answered, told=told, pending=pending, unexplained=lost
            )
        )
    return Balance(tuple(made))
