"""One method, one transaction: what each subject of the store is made of.

A subject's methods take the database first. Decorated they are coroutines without it: `transaction` passes the writer,
so what it returns is on disk; `query` reads beside it and changes nothing. Both run in a thread of the database.
"""

import functools
import sqlite3
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from bot.clock import Clock
from bot.store.database import Database
from bot.store.writer import Writer


class Subject:
    """Methods about one thing, each a transaction or a query of its own."""

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._now = clock.now
        self._new_id = clock.new_id


S = TypeVar("S", bound=Subject)
P = ParamSpec("P")
T = TypeVar("T")


def transaction(
    method: Callable[Concatenate[S, sqlite3.Connection, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Make a method a unit of the writer: all of it is committed before its caller goes on, or nothing.

    The coroutine raises what the method raises, or StoreUnavailable.
    """

    @functools.wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._writer.write(lambda db: method(self, db, *args, **kwargs))

    return call


def query(
    method: Callable[Concatenate[S, sqlite3.Connection, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Make a method read: it fetches all it wants before it returns. The coroutine raises StoreUnavailable."""

    @functools.wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._database.read(lambda db: method(self, db, *args, **kwargs))

    return call
