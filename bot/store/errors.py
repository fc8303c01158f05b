"""What the store can answer instead of a result.

StoreError
├── StoreUnavailable     it cannot read or write now (disk full, locked); the same call may work later
├── StateLocked          another process holds the state directory
├── StoreTooNew          the file was written by a later version
└── StaleRun             a write named an epoch that is not the turn's own any more
"""

import errno
import sqlite3
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PASSING = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
)
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class StoreError(Exception):
    """Root of the store's errors."""


class StoreUnavailable(StoreError):
    """Nothing was read or written."""


async def once_available(
    attempt: Callable[[], Awaitable[T]], wait: Callable[[StoreUnavailable], Awaitable[object]]
) -> T:
    """Call `attempt` until the store can read and write for it; `wait` each time that it could not."""
    while True:
        try:
            return await attempt()
        except StoreUnavailable as error:
            await wait(error)


class StateLocked(StoreError):
    """Another process holds the state directory; the text says which and what to do."""


class StoreTooNew(StoreError):
    """The file's schema is newer than this program."""


class StaleRun(StoreError):
    """The run was stopped, or its turn belongs to another worker: it must end without another word."""


def passes(error: BaseException | None) -> bool:
    """Whether what failed may work later as it is: there was no room, or another program held the file."""
    if isinstance(error, sqlite3.Error):
        return code_of(error) in _PASSING
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def is_damage(error: BaseException) -> bool:
    """Whether the file is not what it should be."""
    return isinstance(error, sqlite3.Error) and code_of(error) in DAMAGE


def is_about_file(error: BaseException) -> bool:
    """Whether an error is about the file and not about the statement."""
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(
        error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError
    )


def code_of(error: sqlite3.Error) -> int:
    """SQLite's own number of an error, without its details; 0 for those of Python's module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
