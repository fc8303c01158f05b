"""Makes a service do the same in the same order each time, and keeps its statements and its changes of thread.

The threads of the store, and those of blocking calls, work while the event loop waits for them: what is ready first
does not depend on how fast the machine is.
"""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any
from unittest.mock import patch

import aiosqlite.core

from tests.road.tracer import ROOT

# Where the statements of all methods pass through: none of them is who wants one.
_PLUMBING = ("writer.py", "database.py")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement that SQLite ran."""

    # The statement in one line, with the values that it was given.
    sql: str
    # The function that wanted it: its file in `bot/store` without the ending, and its name.
    function: str


@dataclass
class Work:
    """What the store did, and how often work went from one thread to another."""

    statements: list[Statement] = field(default_factory=list)
    # Jobs that were handed to a thread of the store.
    jobs: int = 0
    # Blocking calls that were handed to a thread of the pool.
    blocking: int = 0
    # Callbacks that a thread handed to the event loop.
    callbacks: int = 0

    @property
    def commits(self) -> int:
        """How many of the statements were commits."""
        return sum(statement.sql == "COMMIT" for statement in self.statements)

    @property
    def hops(self) -> int:
        """How often work went from one thread to another, both ways."""
        return self.jobs + self.blocking + self.callbacks


class Machine:
    """Installed around a service from before it is built; `work` is what is being counted, None for nothing."""

    def __init__(self) -> None:
        self.work: Work | None = None
        # Hands a callback to the event loop without being counted; set while installed.
        self.tell_loop: Callable[..., object] = lambda *_: None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """To be entered on the running event loop."""
        loop = asyncio.get_running_loop()
        self.tell_loop = loop.call_soon_threadsafe
        connect = sqlite3.connect

        def traced(*where: Any, **options: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(*where, **options)
            if not options.get("uri"):  # else it is a test that looks
                connection.set_trace_callback(self._on_statement)
            return connection

        def call_soon_threadsafe(*what: Any, **options: Any) -> object:
            if self.work is not None:
                self.work.callbacks += 1
            return self.tell_loop(*what, **options)

        machine = self

        class HandOver(SimpleQueue[Any]):
            """A queue to one thread; who puts something in goes on when that is done."""

            def __init__(self) -> None:
                self._idle = threading.Semaphore(0)

            def put_nowait(self, item: Any) -> None:
                if machine.work is not None:
                    machine.work.jobs += 1
                super().put_nowait(item)
                if getattr(item[1], "__name__", "") != "close_and_stop":  # after which the thread ends
                    self._idle.acquire()

            def get(self, *options: Any, **more: Any) -> Any:
                if getattr(self, "_begun", False):
                    self._idle.release()
                self._begun = True
                return super().get(*options, **more)

        class Pool(ThreadPoolExecutor):
            """A pool whose caller waits."""

            def submit(self, *what: Any, **options: Any) -> "Future[Any]":
                if machine.work is not None:
                    machine.work.blocking += 1
                future = super().submit(*what, **options)
                wait((future,))
                return future

        loop.set_default_executor(Pool(1))
        with (
            patch.object(sqlite3, "connect", traced),
            patch.object(loop, "call_soon_threadsafe", call_soon_threadsafe),
            patch.object(aiosqlite.core, "SimpleQueue", HandOver),
        ):
            yield

    def _on_statement(self, sql: str) -> None:
        if self.work is not None:
            self.work.statements.append(Statement(" ".join(sql.split()), _wanted_by()))


def _wanted_by() -> str:
    frame = sys._getframe(2)
    store = f"{ROOT}/bot/store/"
    first = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(store):
            name = f"{file.removeprefix(store).removesuffix('.py')}.{frame.f_code.co_qualname}"
            if not file.endswith(_PLUMBING):
                return name
            first = first or name
        frame = frame.f_back  # type: ignore[assignment]
    return first
