"""The book of messages for people and programs: read, checked all the time, and what owners accept of it.

While something is not explained, `/readyz` says so, because then Hark has lost something or somebody has taken it away.
"""

from dataclasses import dataclass, field
from datetime import datetime

import structlog

from bot.clock import Clock
from bot.gateway.status import Health
from bot.inbound.pairing import LOCALLY
from bot.persistence.balance import AccountBalance, Balance, Unexplained, add_up
from bot.persistence.errors import StoreUnavailable
from bot.store.store import Store
from heartbeat.times import parse_duration

log = structlog.get_logger()

# Seconds between two checks, and how many times longer than a check the pause behind it is at least.
CHECK_EVERY = 250.0
_REST = 20
# Seconds that a check may take to be made for whoever asks for one line.
_QUICK = 1.0
# How many messages `/readyz` and the log name.
_NAMED = 10


class NotUnexplained(Exception):
    """A message that the book does not have to be told of: it is explained, or not known."""


@dataclass(eq=False)
class Book:
    """Reads the book of the store, and tells `/readyz` what it does not explain."""

    store: Store
    clock: Clock
    health: Health
    # The last whole book, and how many seconds it took to read.
    _last: Balance = field(default=Balance(()), init=False)
    _took: float = field(default=0.0, init=False)

    async def balance(self, since: str = "") -> Balance:
        """Return the book. since: of messages accepted since then, a duration or a date; empty: the whole book.

        Raises ValueError for another text, or StoreUnavailable.
        """
        if not since:
            return await self.check()
        return await self._read(_moment(since, self.clock))

    async def accept_message(self, message: str, by: str = LOCALLY) -> Balance:
        """Persist that an owner accepts a message, as the book names it, without an explanation. Returns the book then.

        by: who, as "channel:id". Raises NotUnexplained, or StoreUnavailable.
        """
        found = [one for one in (await self.check()).unexplained if one.message == message]
        if not found:
            raise NotUnexplained(
                f"The book has no unexplained message {message!r}; `hark balance` names those that it has."
            )
        await self.store.balances.write_off(found[0], by)
        log.warning("an unexplained message was accepted", message=message, by=by, why=found[0].why)
        return await self.check()

    async def line(self) -> str:
        """Return the book in one line, for /status. Raises StoreUnavailable."""
        book = await self.check() if self._took < _QUICK else self._last
        return in_words(_all(book))

    async def serve(self) -> None:
        """Check the book again and again."""
        while True:
            try:
                await self.check()
            except StoreUnavailable as error:
                log.warning("the book cannot be read", reason=str(error))
            await self.clock.sleep(max(CHECK_EVERY, _REST * self._took))

    async def check(self) -> Balance:
        """Read the whole book, and tell `/readyz` and the log what it does not explain. Raises StoreUnavailable."""
        began = self.clock.monotonic()
        book = await self._read(0)
        self._took = self.clock.monotonic() - began
        lost = book.unexplained
        if lost and {one.message for one in lost} - {one.message for one in self._last.unexplained}:
            log.error("messages are not explained", count=len(lost), messages=_named(lost))
        self._last = book
        self.health.unexplained = f"{len(lost)} not explained: {_named(lost)}. `hark balance` says more" if lost else ""
        return book

    async def _read(self, since: int) -> Balance:
        balances = self.store.balances
        pages = [await balances.page(0, since)]
        while (upto := pages[-1].upto) is not None:
            pages.append(await balances.page(upto, since))
        return add_up([*pages, await balances.rest(since)])


def in_words(one: AccountBalance) -> str:
    """Write the book of an account in one line."""
    parts = f"{one.answered:,} answered, {one.told:,} told why not, {one.pending:,} pending"
    lost = f", {len(one.unexplained):,} not explained (`hark balance`)" if one.unexplained else ""
    return f"{one.accepted:,} accepted: {parts}{lost}"


def _all(book: Balance) -> AccountBalance:
    """Return the books of all accounts as one."""
    answered, told = sum(one.answered for one in book.accounts), sum(one.told for one in book.accounts)
    pending, lost = sum(one.pending for one in book.accounts), book.unexplained
    accepted = answered + told + pending + len(lost)
    return AccountBalance(
        account="", accepted=accepted, answered=answered, told=told, pending=pending, unexplained=lost
    )


def _named(lost: tuple[Unexplained, ...]) -> str:
    more = ["…"] if len(lost) > _NAMED else []
    return ", ".join([*(f"{one.message} ({one.why})" for one in lost[:_NAMED]), *more])


def _moment(text: str, clock: Clock) -> int:
    """Return the moment that a duration or a date means, in milliseconds. Raises ValueError."""
    try:
        return clock.now() - int(parse_duration(text).total_seconds() * 1000)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no duration such as 24h or 7d, and no date such as 2026-01-31") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=clock.zone)).timestamp() * 1000)
