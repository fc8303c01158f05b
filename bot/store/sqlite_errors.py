"""What an error of SQLite, or of the disk, says about the file."""

import errno
import sqlite3

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PASSING = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def passes(error: BaseException | None) -> bool:
    """Whether what failed may work later as it is: there was no room, or another program held the file."""
    if isinstance(error, sqlite3.Error):
        return code_of(error) in _PASSING
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def is_damage(error: BaseException) -> bool:
    """Whether the file is not what it should be."""
    return isinstance(error, sqlite3.Error) and code_of(error) in _DAMAGE


def is_about_file(error: BaseException) -> bool:
    """Whether an error is about the file and not about the statement."""
    about_statement = sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, about_statement)


def code_of(error: sqlite3.Error) -> int:
    """SQLite's own number of an error, without its details; 0 for those of Python's module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
