"""Keeps the budgets of model calls: the most that a call can take is reserved before it, and settled after it.

What was used is in the rows of the store; reservations are in memory, so after a crash nothing stays reserved. A call
is made if what was used, what other calls have reserved and the most that it can take are within each budget. If it
does not fit only because of reservations, its run waits until one of them is settled, since calls mostly take far less.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent.errors import BudgetReached
from agent.message import Usage
from bot import wording
from bot.clock import Clock
from bot.config.budget import Budget, Limit, Scope
from bot.config.prices import Prices
from bot.persistence.turns import Turn
from bot.persistence.usage import Amount, BudgetWait, Spent
from bot.runs import budget_words
from bot.store.store import Store
from channels.session_key import root_of
from heartbeat.times import day_start

# From the beginning of a day into the next one, which may be an hour longer or shorter.
_DAY_AND_HALF = 36 * 3_600_000


class Reached(BudgetReached):
    """A budget is reached that may let the turn go on later; the text is for people whose turn ends by it."""

    def __init__(self, why: str, wait: BudgetWait, until: str, at: int, told_as: Sequence[object], limits: str) -> None:
        """Describe a budget that is reached.

        why: in words for people. until: `wait.until` in words. at: the present moment, in milliseconds. told_as: names
        under which people are told of this, once. limits: all budgets.
        """
        super().__init__(f"{why} {budget_words.ends(wait.scope, until)}")
        self.why, self.wait, self.until, self.at, self.told_as, self.limits = why, wait, until, at, told_as, limits


@dataclass(frozen=True, slots=True)
class _Reserved:
    """The most that a call under way can take, and whom it belongs to in each scope."""

    most: Amount
    owners: Mapping[Scope, str]


class Budgets:
    """The budgets of all runs of a service."""

    def __init__(self, budget: Budget, store: Store, clock: Clock, prices: Prices, offered: Sequence[str] = ()) -> None:
        """offered: the models that a turn may go on with if a budget does not allow its own one."""
        self._offered = offered
        self.allow(budget)
        self._store = store
        self._clock = clock
        # What models cost.
        self.prices = prices
        self._reserved: dict[str, _Reserved] = {}
        # Set when a reservation is settled, and replaced by a new one.
        self._settled = asyncio.Event()

    def allow(self, budget: Budget) -> None:
        """Keep these budgets from the next call on."""
        # The limit of each scope that has one.
        self.limits = budget.limits()
        # Whether there is any budget; without one nothing is to be reserved.
        self.limited = bool(self.limits)

    async def reserve(self, turn: Turn, model: str, most: Usage) -> None:
        """Reserve what the next call of a turn may use at most. Raises BudgetReached, or StoreUnavailable.

        model: its name. A reservation that the turn still has is given up.
        """
        self.settle(turn.turn_id)
        need = Amount(most.input + most.output, self._money(model, most))
        while True:
            settled = self._settled
            now = self._clock.now()
            today = day_start(now, self._clock.zone)
            spent = await self._store.usage.spent(turn.turn_id, root_of(turn.session_key), today)
            if settled.is_set():
                continue  # what was settled meanwhile may be missing in the answer
            owners = self._owners(turn, spent)
            if self._over(owners, spent, need, with_others=False):
                break
            if not self._over(owners, spent, need, with_others=True):
                self._reserved[turn.turn_id] = _Reserved(need, owners)
                return
            await settled.wait()
        scope = next(iter(self._over(owners, spent, need, with_others=False)))
        raised = spent.raised.get(scope, 0)
        limit, until = _times(self.limits[scope], raised + 1), None
        if scope != "turn" and not _exceeds(need, self.limits[scope]):
            until = day_start(today + _DAY_AND_HALF, self._clock.zone)
        why = budget_words.reached(scope, *_shown(limit, _of(spent, scope), need))
        wait = BudgetWait(scope, owners[scope], until, self._cheaper(model, most, owners, spent))
        moment = "" if until is None else self._clock.stamp(until)
        raise Reached(why, wait, moment, now, (scope, until, raised, model), repr(self.limits))

    def settle(self, turn_id: str) -> None:
        """Give up the reservation of a turn; what its call has used is in the store, or nothing was used."""
        if self._reserved.pop(turn_id, None) is not None:
            self._settled.set()
            self._settled = asyncio.Event()

    def _cheaper(self, model: str, most: Usage, owners: Mapping[Scope, str], spent: Spent) -> str:
        """Return the first offered model that could be asked instead; empty if none could."""
        for name in self._offered:
            money = self.prices.most(name, most)
            need = Amount(most.input + most.output, money or 0.0)
            if name != model and money is not None and not self._over(owners, spent, need, with_others=False):
                return name
        return ""

    def _money(self, model: str, most: Usage) -> float:
        money = self.prices.most(model, most)
        if money is None and any(limit.money is not None for limit in self.limits.values()):
            raise BudgetReached(budget_words.without_price(model))
        return money or 0.0

    def _owners(self, turn: Turn, spent: Spent) -> dict[Scope, str]:
        """Return whom a turn belongs to in each scope that has a limit; a turn of nobody has no user, for example."""
        found: dict[Scope, str] = {
            "turn": turn.turn_id,
            "session": root_of(turn.session_key),
            "user": spent.sender,
            "job": spent.job_id,
            "bot": "bot",
        }
        return {scope: found[scope] for scope in self.limits if found[scope]}

    def _over(self, owners: Mapping[Scope, str], spent: Spent, need: Amount, *, with_others: bool) -> list[Scope]:
        """Return the scopes whose limits a call would exceed. with_others: if all that is reserved is used up."""
        found: list[Scope] = []
        for scope, owner in owners.items():
            total = _of(spent, scope) + need
            if with_others:
                others = (one.most for one in self._reserved.values() if one.owners.get(scope) == owner)
                total = sum(others, total)
            if _exceeds(total, _times(self.limits[scope], spent.raised.get(scope, 0) + 1)):
                found.append(scope)
        return found


def _times(limit: Limit, times: int) -> Limit:
    """Return a limit so many times over."""
    if times == 1:
        return limit
    return Limit(tokens=limit.tokens and limit.tokens * times, money=limit.money and limit.money * times)


def _exceeds(total: Amount, limit: Limit) -> bool:
    return (limit.tokens is not None and total.tokens > limit.tokens) or (
        limit.money is not None and total.money > limit.money
    )


def _shown(limit: Limit, spent: Amount, need: Amount) -> tuple[str, str, str]:
    """Return what is used, what is allowed and what is needed, in the unit that is exceeded."""
    if limit.tokens is not None and spent.tokens + need.tokens > limit.tokens:
        return f"{spent.tokens:,}", f"{limit.tokens:,} tokens", f"{need.tokens:,}"
    return wording.dollars(spent.money), wording.dollars(limit.money or 0.0), wording.dollars(need.money)


def _of(spent: Spent, scope: Scope) -> Amount:
    found: Amount = getattr(spent, scope)
    return found
