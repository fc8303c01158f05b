"""One writer with group commit: every change of the store is a unit of work that passes through here.

The writer takes all units that wait, runs them in one transaction (a savepoint each) in one call of the database's
thread, commits, and only then wakes their callers: a result means that it is on disk. A unit that raises is undone
alone; a commit that fails undoes all and is reported to all as StoreUnavailable. Whoever reads events is rung before
the callers are answered.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from bot.persistence.errors import StoreUnavailable
from bot.persistence.values import PersistedAt, Ring
from bot.store import rows
from bot.store.database import Database
from bot.store.sqlite_errors import is_about_file

T = TypeVar("T")
CommitProbe = Callable[[Literal["before", "after"]], None]


@dataclass(slots=True)
class _Unit(Generic[T]):
    """A piece of work and who waits for it."""

    work: Callable[[sqlite3.Connection], T]
    waiter: "asyncio.Future[T]"


class Writer:
    """The only way to change the database.

    ring: called on the loop after each commit that kept events.
    probe: called in the database's thread directly before and after each commit; what it raises ends the writer for
    good, as the death of the process would (for crash tests and measurements).
    """

    def __init__(self, database: Database, ring: Ring, probe: CommitProbe | None = None) -> None:
        self._database = database
        self._ring = ring
        self._probe = probe
        self._units: list[_Unit[Any]] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self.failure: str | None = None
        """Why the last commit failed; None while the store can write."""

    def start(self) -> None:
        """Begin to take units."""
        self._task = asyncio.create_task(self._run(), name="store-writer")

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction and return its result once that is committed.

        Raises what `work` raises (undone then), or StoreUnavailable. A caller that is cancelled does not undo it.
        """
        if self._closing or self._task is None:
            raise StoreUnavailable("the store is not open")
        unit = _Unit(work, asyncio.get_running_loop().create_future())
        self._units.append(unit)
        self._wake.set()
        result: T = await unit.waiter
        return result

    async def close(self) -> None:
        """Commit what waits, then stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._units or not self._closing:
            await self._wake.wait()
            await asyncio.sleep(0)  # who is about to write as well shares the commit: a claim that of the acceptance
            self._wake.clear()
            units, self._units = self._units, []
            if units:
                await self._commit(units)

    async def _commit(self, units: list[_Unit[Any]]) -> None:
        try:
            outcomes, kept = await self._database.execute(self._run_batch, units)
        except Exception as error:
            self.failure = f"the store cannot write: {error}"
            for unit in units:
                if not unit.waiter.done():
                    unit.waiter.set_exception(StoreUnavailable(self.failure))
            return
        except BaseException:
            self._closing = True  # the probe played the death of the process: nobody is answered any more
            for unit in units:
                unit.waiter.cancel()
            raise
        self.failure = None
        if kept:
            self._ring(kept)
        for unit, outcome in zip(units, outcomes, strict=True):
            if unit.waiter.done():
                continue
            if isinstance(outcome, _Raised):
                unit.waiter.set_exception(outcome.error)
            else:
                unit.waiter.set_result(outcome)

    def _run_batch(
        self, connection: sqlite3.Connection, units: list[_Unit[Any]]
    ) -> tuple[list[Any], list[PersistedAt]]:
        outcomes: list[Any] = []
        connection.execute("BEGIN IMMEDIATE")
        try:
            last = rows.newest_event(connection)
            for unit in units:
                connection.execute("SAVEPOINT unit")
                try:
                    outcomes.append(unit.work(connection))
                except Exception as error:
                    if is_about_file(error):
                        raise
                    connection.execute("ROLLBACK TO unit")
                    outcomes.append(_Raised(error))
                connection.execute("RELEASE unit")
            kept = rows.persisted_after(connection, last)
            if self._probe:
                self._probe("before")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if self._probe:
            self._probe("after")
        return outcomes, kept


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a unit raised."""

    error: Exception
