"""One writer with group commit: each change of the store is a unit of work that passes through the writer.

The writer runs all waiting units in one transaction, commits it, notifies the subscriber of persisted events, and then
resumes the callers: when a call returns, its change is on disk. A unit that raises is undone alone. A commit that fails
undoes all its units, and each of their callers gets StoreUnavailable.
"""

import asyncio
import functools
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from bot.clock import Clock
from bot.persistence.errors import StoreUnavailable
from bot.persistence.events import PersistedAt, Subscriber
from bot.store import rows
from bot.store.database import Database, Work, is_about_file

T = TypeVar("T")
S = TypeVar("S", bound="Subject")
P = ParamSpec("P")
CommitProbe = Callable[[Literal["before", "after"]], None]
# A method of a subject whose first argument is the connection, and the coroutine function it becomes without that.
_Method = Callable[Concatenate[S, sqlite3.Connection, P], T]
_Call = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]
# A function that takes the connection and these arguments, and the future of its result.
_Unit = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], "asyncio.Future[Any]"]


class Writer:
    """The only way to change the database.

    subscriber: called on the event loop after each commit that has persisted events.
    probe: called in the database's thread directly before and after each commit, for crash tests and measurements. If
    it raises, the writer ends for good, as if the process had died.
    """

    def __init__(self, database: Database, subscriber: Subscriber, probe: CommitProbe | None = None) -> None:
        self._database = database
        self._subscriber = subscriber
        self._probe = probe
        self._units: list[_Unit] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        # The position of the newest published event; None before the first transaction.
        self._published: int | None = None
        # Why the last commit failed; None while the store can write.
        self.failure: str | None = None

    def start(self) -> None:
        """Begin to run units."""
        self._task = asyncio.create_task(self._run(), name="store-writer")

    async def write(self, work: Work[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` with the connection and these arguments in a transaction; return its result after the commit.

        Raises what `work` raises, after undoing its changes, or StoreUnavailable. Cancelling the caller undoes nothing.
        """
        if self._closing or self._task is None:
            raise StoreUnavailable("the store is not open")
        waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._units.append((work, args, kwargs, waiter))
        self._wake.set()
        return await waiter

    async def close(self) -> None:
        """Commit the waiting units, then stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._units or not self._closing:
            await self._wake.wait()
            await asyncio.sleep(0)  # others that are about to write share the commit: a claim that of its message
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
            self._closing = True  # the probe played the death of the process: no caller gets a result
            for *_, waiter in units:
                waiter.cancel()
            raise
        else:
            self.failure = None
        if kept:
            self._published = kept[-1].seq
            self._subscriber(kept)
        for (*_, waiter), outcome in zip(units, outcomes, strict=True):
            if waiter.done():
                continue
            if isinstance(outcome, Exception):
                waiter.set_exception(outcome)
            else:
                waiter.set_result(outcome)

    def _run_batch(self, connection: sqlite3.Connection, units: Sequence[_Unit]) -> tuple[list[Any], list[PersistedAt]]:
        """Run units in one transaction; return what each returned or raised, and the events that they persisted.

        The first unit that does not fail needs no savepoint, since nothing before it has to stay when it is undone.
        """
        outcomes: list[Any] = []
        try:
            if self._published is None:
                self._published = rows.newest_event(connection)
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
            kept = rows.persisted_after(connection, self._published)
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
    """The base of the store's subjects, whose methods are decorated with `transaction` or `query`.

    A decorated method takes the connection as its first argument and runs in a thread of the database; its callers call
    a coroutine without that argument.
    """

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._now = clock.now
        self._new_id = clock.new_id


def transaction(method: _Method[S, P, T]) -> _Call[S, P, T]:
    """Make a method a unit of the writer, which is committed as a whole before the call returns, or not at all.

    The coroutine raises what the method raises, or StoreUnavailable.
    """

    @functools.wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._writer.write(functools.partial(method, self), *args, **kwargs)

    return call


def query(method: _Method[S, P, T]) -> _Call[S, P, T]:
    """Make a method a read, which must fetch all rows before it returns. The coroutine raises StoreUnavailable."""

    @functools.wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(functools.partial(method, self), *args, **kwargs)

    return call


async def once_available(
    attempt: Callable[[], Awaitable[T]], wait: Callable[[StoreUnavailable], Awaitable[object]]
) -> T:
    """Call `attempt` until it raises no StoreUnavailable and return its result; await `wait(error)` between tries."""
    while True:
        try:
            return await attempt()
        except StoreUnavailable as error:
            await wait(error)
