"""The SQLite file: opened once, locked against a second process, checked, migrated; one thread writes, two read.

`synchronous=FULL` because promise 1 says "on disk". Readers fetch all rows and end their statement, for an open
cursor would keep the write-ahead log growing.
"""

import contextlib
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import aiosqlite

from bot.persistence.errors import StateLocked, StoreTooNew, StoreUnavailable
from bot.store.sqlite_errors import is_about_file, is_damage, passes

T = TypeVar("T")
P = ParamSpec("P")
# What is done with a connection in its thread, and with what is handed on behind it.
Work = Callable[Concatenate[sqlite3.Connection, P], T]

# A commit writes whole pages of every table and index it touches: small ones are a third of the bytes per turn.
PAGE_SIZE = 1024
_PREPARE = (
    f"PRAGMA page_size={PAGE_SIZE}; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
    " PRAGMA foreign_keys=ON; PRAGMA busy_timeout=5000; PRAGMA temp_store=MEMORY;"
)
# Connections that read beside the one that writes.
READERS = 2
FILE = "hark.db"
# Only there while nobody has the store open, and only after an orderly end: then the next start need not read it all.
# It holds what the file looked like, so that one that was changed since is checked.
CLEAN = f"{FILE}.clean"
MIGRATIONS = resources.files("bot.store") / "migrations"
# What `PRAGMA application_id` is less the schema's version: a second copy of that number, beside `user_version`.
APPLICATION = 0x4841524B


# Makes the bytes of a stored text a string, also where some are damaged: one of them must not hide its row, nor fail a
# statement. SQLite calls it for each text that is read, so it is no function of Python.
forgiving = partial(str, encoding="utf-8", errors="replace")


class _Connection(aiosqlite.Connection):
    """aiosqlite with a call that runs a function in its thread: one hop for many statements."""

    async def call(self, function: Work[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._execute(function, self._conn, *args, **kwargs)  # type: ignore[no-untyped-call]
        return result


def _connect(path: Path) -> _Connection:
    def connector() -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
        connection.text_factory = forgiving
        return connection

    return _Connection(connector, 64)


class Database:
    """Connections to one file. `execute` writes, `read` reads; both run a function in the connection's own thread.

    Making one takes the directory for this process: raises StateLocked, or OSError.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = lock_directory(directory)
        self._writer: _Connection | None = None
        self._readers: tuple[_Connection, ...] = ()
        self._next_reader = 0
        self._damage: str | None = None
        self._failure: str | None = None

    async def open(self, readers: int = READERS) -> None:
        """Open hark.db, making it where it is missing (0600), and bring it up to date.

        The caller checks for damage first (`bot/store/salvage.py`). Raises StoreUnavailable when there is no room for
        it or another program holds it, StoreTooNew, or OSError or sqlite3.Error when it cannot be opened at all.
        """
        path = self._directory / FILE
        connections: list[_Connection] = []
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            for _ in range(1 + readers):
                connection = _connect(path)
                connections.append(connection)
                await connection
                await connection.executescript(_PREPARE)
                if len(connections) == 1:
                    await connection.call(partial(_back_up, path))
                    await connection.call(migrate)
        except BaseException as error:
            for connection in connections:
                await connection.close()
            if isinstance(error, sqlite3.OperationalError) or passes(error):
                free = shutil.disk_usage(self._directory).free // 1024
                kind = StoreUnavailable if passes(error) else OSError
                raise kind(f"the store {path} cannot be opened: {error} ({free} KB are free on its disk).") from error
            raise
        self._writer, self._readers = connections[0], tuple(connections[1:])

    @property
    def failure(self) -> str | None:
        """Why the file could not be read the last time, or that it is damaged; None while all is well."""
        return self._damage or self._failure

    async def execute(self, function: Work[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on the writing connection, in its thread, with what is to follow the connection."""
        assert self._writer is not None, "the writer begins when the file is open"
        try:
            return await self._writer.call(function, *args, **kwargs)
        except sqlite3.Error as error:
            self._note(error)
            raise

    async def read(self, function: Work[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads, as `execute` does. It must fetch all it wants before it returns.

        Raises StoreUnavailable when the file cannot be read.
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
        """Close all connections, mark the file as closed in order, and let go of the directory."""
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
    """Whether hark.db was closed in order and is as it was then. The mark is off the disk when this returns.

    The caller holds the directory, and writes nothing before.
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
    """Size and time of the last change of the file."""
    found = (directory / FILE).stat()
    return b"%d %d" % (found.st_size, found.st_mtime_ns)


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
    with contextlib.suppress(OSError):  # on a full disk nobody is told who it is
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def migrations() -> list[str]:
    """The numbered files in their order; the schema's version is how many of them have been run."""
    found = sorted((file for file in MIGRATIONS.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [file.read_text(encoding="utf-8") for file in found]


def version_of(connection: sqlite3.Connection) -> int:
    """The schema's version."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _back_up(path: Path, connection: sqlite3.Connection) -> None:
    """Copy a store that is about to be migrated to `hark.db.v<version>`, in place of a copy that a crash cut short."""
    version = version_of(connection)
    if 0 < version < len(migrations()):
        copy = path.with_name(f"{path.name}.v{version}")
        copy.unlink(missing_ok=True)
        _copy(connection, copy)


def copy_of(path: Path, file: Path) -> None:
    """Copy a store to a new file (0600), with what is in its write-ahead log; a service may be at work on it. Blocking.

    The file has its name only once it is whole and on disk. Raises FileExistsError, OSError or sqlite3.Error.
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
    """Copy an open store to a file that is not there, by SQLite's online copy."""
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with contextlib.closing(sqlite3.connect(copy)) as target:
        target.execute("PRAGMA synchronous=FULL")
        connection.backup(target)


def migrate(connection: sqlite3.Connection, to: int | None = None) -> None:
    """Bring the schema up to date, or to a version, one numbered file per transaction.

    Foreign keys are off meanwhile, so that a table can be built anew, and checked before the commit. Raises
    StoreTooNew, or sqlite3.Error; then the store is as the last complete migration left it.
    """
    done, files = version_of(connection), migrations()[:to]
    if done > len(files):
        raise StoreTooNew(
            f"the store was written by a later version of Hark (schema {done}, this program knows {len(files)}). "
            "Install that version again, or give this one another state directory."
        )
    (enforced,) = connection.execute("PRAGMA foreign_keys").fetchone()
    connection.execute("PRAGMA foreign_keys=OFF")
    try:
        for version, script in enumerate(files[done:], done + 1):
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}")
            broken = connection.execute("PRAGMA foreign_key_check").fetchone()
            if broken:
                raise sqlite3.IntegrityError(f"migration {version} leaves rows of {broken[0]} without {broken[2]}")
            connection.execute(f"PRAGMA user_version={version}")
            connection.execute(f"PRAGMA application_id={APPLICATION + version}")
            connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA foreign_keys={enforced}")
