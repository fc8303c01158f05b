"""The SQLite file: opened once, locked against a second process, checked, migrated; one thread writes, two read.

`synchronous=FULL` because promise 1 says "on disk". Readers fetch all rows and end their statement, for an open
cursor would keep the write-ahead log growing.
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import aiosqlite

from bot.store.errors import StateLocked, StoreTooNew

P = ParamSpec("P")
T = TypeVar("T")

PAGE_SIZE = 1024
"""A commit writes whole pages of every table and index it touches: small ones are a third of the bytes per turn."""
_PRAGMAS = (
    f"PRAGMA page_size={PAGE_SIZE}",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA busy_timeout=5000",
    "PRAGMA temp_store=MEMORY",
)
FILE = "hark.db"


def forgiving(text: bytes) -> str:
    """Stored text, also where its bytes are damaged: one of them must not hide its row, nor fail a statement."""
    return text.decode(errors="replace")


class _Connection(aiosqlite.Connection):
    """aiosqlite with a call that runs a function in its thread: one hop for many statements."""

    async def call(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        result: T = await self._execute(lambda: function(self._conn, *args, **kwargs))  # type: ignore[no-untyped-call]
        return result


def _connect(path: Path) -> _Connection:
    def connector() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        connection.text_factory = forgiving
        return connection

    return _Connection(connector, 64)


class Database:
    """Connections to one file. `execute` writes, `read` reads; both run a function in the connection's own thread."""

    def __init__(self, lock: int, writer: _Connection, readers: tuple[_Connection, ...]) -> None:
        self._lock = lock
        self._writer = writer
        self._readers = readers
        self._next_reader = 0

    @classmethod
    async def open(cls, directory: Path, lock: int, readers: int = 2) -> "Database":
        """Open `directory`/hark.db, making it where it is missing (0600).

        lock: from lock_directory; closed with the database, or when it cannot be opened. The caller checks for damage
        first (`bot/store/salvage.py`). Raises StoreTooNew, or OSError or sqlite3.Error when the file cannot be
        opened.
        """
        path = directory / FILE
        connections: list[_Connection] = []
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            for _ in range(1 + readers):
                connection = _connect(path)
                connections.append(connection)
                await connection
                await connection.call(_prepare)
                if len(connections) == 1:
                    await connection.call(migrate)
        except BaseException as error:
            for connection in connections:
                await connection.close()
            os.close(lock)
            if isinstance(error, sqlite3.OperationalError):
                free = shutil.disk_usage(directory).free // 1024
                raise OSError(
                    f"the store {path} cannot be opened: {error} ({free} KB are free on its disk)."
                ) from error
            raise
        return cls(lock, connections[0], tuple(connections[1:]))

    async def execute(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function on the writing connection, in its thread."""
        return await self._writer.call(function, *args, **kwargs)

    async def read(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function that only reads. It must fetch all it wants before it returns."""
        self._next_reader = (self._next_reader + 1) % len(self._readers)
        return await self._readers[self._next_reader].call(function, *args, **kwargs)

    async def close(self) -> None:
        """Close all connections and let go of the lock."""
        for connection in (*self._readers, self._writer):
            await connection.close()
        os.close(self._lock)


def lock_directory(directory: Path) -> int:
    """Take the state directory for this process; the kernel releases it when the process ends, however it ends.

    Returns the descriptor to be closed. Raises StateLocked.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    descriptor = os.open(directory / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StateLocked(
            f"another Hark (process {owner}) is using the state directory {directory}. "
            "Stop it first, or give this one a directory of its own (`state:` in the configuration)."
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _prepare(connection: sqlite3.Connection) -> None:
    for pragma in _PRAGMAS:
        connection.execute(pragma).fetchall()


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the schema up to date, one numbered file per transaction. Raises StoreTooNew."""
    done: int = connection.execute("PRAGMA user_version").fetchone()[0]
    files = sorted(
        (file for file in (resources.files("bot.store") / "migrations").iterdir() if file.name.endswith(".sql")),
        key=lambda file: file.name,
    )
    if done > len(files):
        raise StoreTooNew(
            f"the store was written by a later version of Hark (schema {done}, this program knows {len(files)}). "
            "Install that version again, or give this one another state directory."
        )
    for number, file in enumerate(files[done:], done + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{file.read_text(encoding='utf-8')}\nPRAGMA user_version={number};\nCOMMIT;"
        )
