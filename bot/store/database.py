"""The SQLite file: locked against a second process, opened and migrated. One connection writes, two read.

`synchronous=FULL`, because a message is acknowledged only when it is on disk. Readers fetch all rows before they
return, because an open cursor keeps the write-ahead log growing.
"""

import contextlib
import errno
import fcntl
import functools
import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import aiosqlite

from agent.message import Usage
from bot.persistence.errors import StateLocked, StoreTooNew, StoreUnavailable
from bot.persistence.usage import Cost, no_price
from bot.store import sending

T = TypeVar("T")
P = ParamSpec("P")
# A function that is run in the thread of a connection: it takes the connection and the arguments of the call.
Work = Callable[Concatenate[sqlite3.Connection, P], T]

# A commit writes whole pages of each table and index that it touches, so small pages save two thirds of the bytes.
PAGE_SIZE = 1024
_PREPARE = (
    f"PRAGMA page_size={PAGE_SIZE}; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    " PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY;"
)
# Seconds for which a statement waits for another program that holds the file.
BUSY_SECONDS = 5.0
# The number of connections that read.
READERS = 2
FILE = "hark.db"
# The mark of an orderly end, after which the next start need not check the whole file. It holds size and time of the
# file, so that a file that was changed since then is checked.
CLEAN = f"{FILE}.clean"
MIGRATIONS = Path(__file__).with_name("migrations")
# The tables that the migrations make, in which a new store begins: written by `describe`.
SCHEMA = Path(__file__).with_name("schema.sql")
# `PRAGMA application_id` is this number plus the schema's version: a second copy of that version beside `user_version`.
APPLICATION = 0x4841524B
# Errors of a full disk, and results of SQLite after which the same operation may work later, or the file is damaged.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PASSING = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# Decodes each text that SQLite reads; damaged bytes are replaced, since they must not hide a row or fail a statement.
# It is called very often, so it is no Python function.
forgiving = partial(str, encoding="utf-8", errors="replace")


class _Connection(aiosqlite.Connection):
    """A connection of aiosqlite that can run a whole function in its thread: one hop for many statements."""

    async def call(self, function: Work[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._execute(function, self._conn, *args, **kwargs)  # type: ignore[no-untyped-call]
        return result


def _connect(path: Path) -> _Connection:
    def connector() -> sqlite3.Connection:
        connection = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, cached_statements=256)
        connection.text_factory = forgiving
        return connection

    return _Connection(connector, 64)


class Database:
    """The connections to one file. `execute` writes and `read` reads, each by a function in the connection's thread.

    The constructor locks the directory for this process; it raises StateLocked or OSError. cost: the prices, for the
    statements that write. denied: the rules about what is not sent.
    """

    def __init__(self, directory: Path, cost: Cost = no_price, denied: Sequence[sending.Rule] = ()) -> None:
        self._directory = directory
        self._cost = cost
        self._denied = denied
        self._lock = lock_directory(directory)
        self._writer: _Connection | None = None
        self._readers: tuple[_Connection, ...] = ()
        self._next_reader = 0
        self._damage: str | None = None
        self._failure: str | None = None

    async def open(self) -> None:
        """Open hark.db, which is made with mode 0600 if it is missing, and migrate it.

        The caller checks for damage first (`bot/store/salvage.py`). Raises StoreUnavailable if the disk is full or
        another program holds the file, StoreTooNew, or OSError or sqlite3.Error if it cannot be opened at all.
        """
        path = self._directory / FILE
        connections: list[_Connection] = []
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            for _ in range(1 + READERS):
                connection = _connect(path)
                connections.append(connection)
                await connection
                await connection.executescript(_PREPARE)
                if len(connections) == 1:
                    await connection.call(partial(_back_up, path))
                    await connection.call(migrate)
                    await connection.create_function("cost", 5, self._cost_of)
                    await connection.call(sending.put_rules, self._denied)
        except BaseException as error:
            for connection in connections:
                await connection.close()
            if isinstance(error, sqlite3.OperationalError) or passes(error):
                free = shutil.disk_usage(self._directory).free // 1024
                kind = StoreUnavailable if passes(error) else OSError
                raise kind(f"the store {path} cannot be opened: {error} ({free} KB are free on its disk).") from error
            raise
        self._writer, self._readers = connections[0], tuple(connections[1:])

    def _cost_of(self, model: str, *tokens: int) -> float | None:
        """The function `cost` of SQL. tokens: input, read from a cache, written to a cache, output."""
        given, read, written, output = tokens
        return self._cost(model, Usage(given, output, read, written))

    @property
    def failure(self) -> str | None:
        """Why the last read failed, or that the file is damaged; None if neither."""
        return self._damage or self._failure

    async def execute(self, function: Work[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function with the writing connection and these arguments in the connection's thread."""
        assert self._writer is not None, "the writer begins when the file is open"
        try:
            return await self._writer.call(function, *args, **kwargs)
        except sqlite3.Error as error:
            self._note(error)
            raise

    async def read(self, function: Work[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function with a reading connection and these arguments. It must fetch all rows before it returns.

        Raises StoreUnavailable if the file cannot be read.
        """
        if not self._readers:
            raise StoreUnavailable("the store is not open")
        self._next_reader = (self._next_reader + 1) % len(self._readers)
        try:
            result = await self._readers[self._next_reader].call(function, *args, **kwargs)
        except sqlite3.Error as error:
            if not is_about_file(error):
                raise
            self._note(error)
            self._failure = f"the store cannot read: {error}"
            raise StoreUnavailable(self._failure) from error
        self._failure = None
        return result

    def _note(self, error: sqlite3.Error) -> None:
        if is_damage(error):
            self._damage = f"the store is damaged ({error}). Restart Hark: what is readable is recovered at its start"

    async def close(self) -> None:
        """Close all connections, mark the file as closed in order, and unlock the directory."""
        if self._writer is not None:
            for connection in (*self._readers, self._writer):
                await connection.close()
            if self._damage is None:
                with contextlib.suppress(OSError):  # without it the next start takes longer
                    mark = self._directory / CLEAN
                    mark.touch(0o600)
                    mark.write_bytes(_looks(self._directory))
        os.close(self._lock)


def take_mark(directory: Path) -> bool:
    """Remove the mark of an orderly end; return whether there was one and hark.db has not changed since.

    The caller holds the lock of the directory and has written nothing yet.
    """
    mark = directory / CLEAN
    try:
        looked = mark.read_bytes()
    except FileNotFoundError:
        return False
    mark.unlink()
    with contextlib.suppress(OSError):  # some file systems cannot
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return (directory / FILE).exists() and looked == _looks(directory)


def _looks(directory: Path) -> bytes:
    """Return size and time of the last change of hark.db."""
    found = (directory / FILE).stat()
    return b"%d %d" % (found.st_size, found.st_mtime_ns)


def lock_directory(directory: Path) -> int:
    """Lock the state directory for this process; the kernel unlocks it when the process ends.

    Returns the descriptor that holds the lock. Raises StateLocked.
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
    with contextlib.suppress(OSError):  # on a full disk the process id is missing from the message above
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


@functools.cache
def _scripts(directory: Path) -> tuple[Path, ...]:
    """Return the numbered scripts in order."""
    found = (file for file in directory.iterdir() if file.name.endswith(".sql"))
    return tuple(sorted(found, key=lambda file: file.name))


def newest_version() -> int:
    """Return the version of the schema after all migrations: their number."""
    return len(_scripts(MIGRATIONS))


def migrations(after: int = 0, to: int | None = None) -> list[str]:
    """Return the scripts that migrate the schema from version `after` to version `to`, by default to the newest."""
    return [file.read_text(encoding="utf-8") for file in _scripts(MIGRATIONS)[after:to]]


@functools.cache
def schema() -> str:
    """Return the script in which a new store begins."""
    return SCHEMA.read_text(encoding="utf-8")


def describe(connection: sqlite3.Connection) -> str:
    """Return the script that makes the tables and indexes of a database in their order, and sets their version."""
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    return "".join(f"{sql};\n" for (sql,) in found) + f"PRAGMA user_version={version_of(connection)};\n"


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema's version of a database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _back_up(path: Path, connection: sqlite3.Connection) -> None:
    """Copy a store that is about to be migrated to `hark.db.v<version>`; an older copy of that name is replaced."""
    version = version_of(connection)
    if 0 < version < newest_version():
        copy = path.with_name(f"{path.name}.v{version}")
        copy.unlink(missing_ok=True)
        _copy(connection, copy)


def copy_of(path: Path, file: Path) -> None:
    """Copy a store, which may be in use, with its write-ahead log to a new file (0600). Blocking.

    The file gets its name when it is whole and on disk. Raises FileExistsError, OSError or sqlite3.Error.
    """
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    if file.exists():
        raise FileExistsError(file)
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as connection:
            _copy(connection, part)
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)


def _copy(connection: sqlite3.Connection, copy: Path) -> None:
    """Copy an open store to a new file by SQLite's online backup."""
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with contextlib.closing(sqlite3.connect(copy)) as target:
        target.execute("PRAGMA synchronous=FULL")
        connection.backup(target)


def migrate(connection: sqlite3.Connection, to: int | None = None) -> None:
    """Migrate the schema to version `to`, by default the newest, by one transaction for each numbered script.

    A new store begins in one transaction with `schema`, unless a version is wanted. Foreign keys are off meanwhile, so
    that a table can be rebuilt, and are checked before each commit. Raises StoreTooNew, or sqlite3.Error; then the
    store is as the last complete migration has left it.
    """
    done, last = version_of(connection), newest_version() if to is None else to
    if done > last:
        raise StoreTooNew(
            f"the store was written by a later version of Hark (schema {done}, this program knows {last}). "
            "Install that version again, or give this one another state directory."
        )
    (enforced,) = connection.execute("PRAGMA foreign_keys").fetchone()
    connection.execute("PRAGMA foreign_keys=OFF")
    try:
        if done == 0 and to is None:
            connection.executescript(f"BEGIN IMMEDIATE;\n{schema()}")
            done = version_of(connection)
            _commit(connection, done)
        for version, script in enumerate(migrations(done, last), done + 1):
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}")
            broken = connection.execute("PRAGMA foreign_key_check").fetchone()
            if broken:
                raise sqlite3.IntegrityError(f"migration {version} leaves rows of {broken[0]} without {broken[2]}")
            _commit(connection, version)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA foreign_keys={enforced}")


def _commit(connection: sqlite3.Connection, version: int) -> None:
    """Commit the tables of a version together with its number."""
    connection.execute(f"PRAGMA user_version={version}")
    connection.execute(f"PRAGMA application_id={APPLICATION + version}")
    connection.execute("COMMIT")


def passes(error: BaseException | None) -> bool:
    """Return whether the same operation may work later: the disk was full, or another program held the file."""
    if isinstance(error, sqlite3.Error):
        return _code_of(error) in _PASSING
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def is_damage(error: BaseException) -> bool:
    """Return whether an error says that the file is damaged."""
    return isinstance(error, sqlite3.Error) and _code_of(error) in _DAMAGE


def is_about_file(error: BaseException) -> bool:
    """Return whether an error is about the file, and not about the statement."""
    about_statement = sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, about_statement)


def _code_of(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code of an error; 0 if the error is one of Python's module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
