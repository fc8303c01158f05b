"""One writer with group commit: every change of the store is a unit of work that passes through here.

The writer takes all units that wait, runs them in one transaction in one call of the database's thread, commits, and
only then wakes their callers: a result means that it is on disk. A unit that raises is undone alone; a commit that
fails undoes all and is reported to all as StoreUnavailable. Whoever reads events is rung before the callers are
answered.
"""

import asyncio
import functools
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from bot.clock import Clock
from bot.persistence.errors import StoreUnavailable
from bot.persistence.events import PersistedAt, Ring
from bot.store import rows
from bot.store.database import Database, Work
from bot.store.sqlite_errors import is_about_file

T = TypeVar("T")
S = TypeVar("S", bound="Subject")
P = ParamSpec("P")
CommitProbe = Callable[[Literal["before", "after"]], None]
# A method of a subject that takes the database first, and the coroutine that it becomes without.
_Method = Callable[Concatenate[S, sqlite3.Connection, P], T]
_Call = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]
# A piece of work that takes the database and these arguments, and who waits for it.
_Unit = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], "asyncio.Future[Any]"]


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
        self._units: list[_Unit] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        # The position of the newest event that was rung for; None until the first transaction has looked.
        self._rung: int | None = None
        # Why the last commit failed; None while the store can write.
        self.failure: str | None = None

    def start(self) -> None:
        """Begin to take units."""
        self._task = asyncio.create_task(self._run(), name="store-writer")

    async def write(self, work: Work[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` with the database and these arguments in a transaction; return its result once that is committed.

        Raises what `work` raises (undone then), or StoreUnavailable. A caller that is cancelled does not undo it.
        """
        if self._closing or self._task is None:
            raise StoreUnavailable("the store is not open")
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._units.append((work, args, kwargs, waiter))
        self._wake.set()
        return await waiter

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

    async def _commit(self, units: Sequence[_Unit]) -> None:
        try:
            outcomes, kept = await self._database.execute(self._run_batch, units)
        except Exception as error:
            self.failure = f"the store cannot write: {error}"
            outcomes, kept = [StoreUnavailable(self.failure) for _ in units], []
        except BaseException:
            self._closing = True  # the probe played the death of the process: nobody is answered any more
            for *_, waiter in units:
                waiter.cancel()
            raise
        else:
            self.failure = None
        if kept:
            self._rung = kept[-1].seq
            self._ring(kept)
        for (*_, waiter), outcome in zip(units, outcomes, strict=True):
            if waiter.done():
                continue
            if isinstance(outcome, Exception):
                waiter.set_exception(outcome)
            else:
                waiter.set_result(outcome)

    def _run_batch(self, connection: sqlite3.Connection, units: Sequence[_Unit]) -> tuple[list[Any], list[PersistedAt]]:
        """What each unit returned or raised, and the events that they kept.

        The first that does not fail has no savepoint: nothing stands before it that must stay when it is undone.
        """
        outcomes: list[Any] = []
        try:
            if self._rung is None:
                self._rung = rows.newest_event(connection)
            for work, args, kwargs, _ in units:
                is_first = not connection.in_transaction
                connection.execute("BEGIN IMMEDIATE" if is_first else "SAVEPOINT unit")
                try:
                    outcomes.append(work(connection, *args, **kwargs))
                except Exception as error:
                    if is_about_file(error):
                        raise
                    connection.execute("ROLLBACK" if is_first else "ROLLBACK TO unit")
                    outcomes.append(error)
                if not is_first:
                    connection.execute("RELEASE unit")
            kept = rows.persisted_after(connection, self._rung)
            if self._probe:
                self._probe("before")
            connection.commit()
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if self._probe:
            self._probe("after")
        return outcomes, kept


class Subject:
    """What each subject of the store is made of: methods about one thing, each a transaction or a query of its own.

    They take the database first. Decorated they are coroutines without it: `transaction` passes the writer, so what it
    returns is on disk; `query` reads beside it and changes nothing. Both run in a thread of the database.
    """

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._now = clock.now
        self._new_id = clock.new_id


def transaction(method: _Method[S, P, T]) -> _Call[S, P, T]:
    """Make a method a unit of the writer: all of it is committed before its caller goes on, or nothing.

    The coroutine raises what the method raises, or StoreUnavailable.
    """

    @functools.wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._writer.write(functools.partial(method, self), *args, **kwargs)

    return call


def query(method: _Method[S, P, T]) -> _Call[S, P, T]:
    """Make a method read: it fetches all it wants before it returns. The coroutine raises StoreUnavailable."""

    @functools.wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(functools.partial(method, self), *args, **kwargs)

    return call
