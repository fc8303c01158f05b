"""The check at the start: of a damaged file, the rows that SQLite can read by key are copied into a new one.

Nothing is deleted: the damaged file stays beside the new one, and the report says where, and what was and was not
recovered; nothing, if the header or the schema is gone. A full disk or a lock is not damage.
"""

import contextlib
import functools
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bot.persistence.errors import StoreUnavailable
from bot.persistence.recovery import Salvage
from bot.store.database import (
    APPLICATION,
    FILE,
    PAGE_SIZE,
    describe,
    forgiving,
    is_damage,
    migrate,
    migrations,
    newest_version,
    passes,
    schema,
    version_of,
)

# The number of bytes of the header of a database file.
_HEADER = 100
# The errors of reading damaged rows: an error text may quote them, and their lengths and numbers may be too great.
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError, OverflowError)
# How many row numbers are tried after a readable row, or between two.
_FAR = 100_000

_TABLES = "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
# Queries for keys of a table that no other table holds in a column of the same name.
_HINTS = {"kv": "SELECT DISTINCT channel || ':' || account FROM conversation"}

Row = tuple[object, ...]


def check(directory: Path, now: int, *, thorough: bool = True) -> Salvage | None:
    """Check `directory`/hark.db, and recover it if it is damaged; None if it is whole or missing. Blocking.

    The caller holds the lock. now: milliseconds, for the names of the copies. thorough: read the whole file, and not
    only header and schema. Raises StoreUnavailable if there is no room for the copies, OSError if they cannot be made
    for another reason; then nothing was changed.
    """
    path = directory / FILE
    if not path.exists() or path.stat().st_size == 0:
        return None
    problem = find_problem(path, thorough=thorough)
    if problem is None:
        return None
    stamp = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%dT%H%M%S")
    aside, rescued = directory / f"{FILE}.damaged-{stamp}", directory / f"{FILE}.rescued-{stamp}"
    try:
        _copy(path, aside)
        rows, lost = _rescue(aside, rescued)
    except (OSError, sqlite3.Error) as error:
        _remove(aside)
        _remove(rescued)
        cause = error.strerror if isinstance(error, OSError) else str(error)
        kind = StoreUnavailable if passes(error) else OSError
        damaged = f"the store {path} is damaged ({problem})"
        raise kind(f"{damaged}, and what is readable of it cannot be copied: {cause}.") from error
    for suffix in ("-wal", "-shm"):
        path.with_name(FILE + suffix).unlink(missing_ok=True)
    rescued.replace(path)
    return Salvage(problem, aside, rows, now, lost)


def find_problem(path: Path, *, thorough: bool = True) -> str | None:
    """Return what is damaged in a database file; None if nothing is, or if it cannot be opened for another reason."""
    with path.open("rb") as file:
        header = file.read(_HEADER)
    if len(header) < _HEADER or header[18] not in (1, 2) or header[44:47] != bytes(3) or header[47] > 4:
        return "its header is not that of a database"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.text_factory = forgiving
        try:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0] if thorough else "ok"
            return _wrong_number(connection) if found == "ok" else str(found)
        except sqlite3.Error as error:
            return str(error) if is_damage(error) else None  # opening the file raises the error again
        except UnicodeDecodeError:  # the error text quotes the file
            return "its text cannot be decoded"


def _schema(connection: sqlite3.Connection) -> list[Row]:
    return connection.execute("SELECT name, sql FROM sqlite_schema").fetchall()


@functools.cache
def _schemas(scripts: tuple[str, ...]) -> list[list[Row]]:
    """Return the tables and indexes of each schema version from 0 on, which takes a while. scripts: the migrations."""
    schemas = []
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for version in range(len(scripts) + 1):
            migrate(made, version)
            schemas.append(_schema(made))
    return schemas


def _fitting(connection: sqlite3.Connection) -> list[int]:
    """Return the schema versions that have exactly the tables and indexes of a file; 0 has none."""
    tables = _schema(connection)
    return [version for version, made in enumerate(_schemas(tuple(migrations()))) if made == tables]


def _wrong_number(connection: sqlite3.Connection) -> str | None:
    """Return what is wrong if the header has another encoding or another schema version than the tables; else None.

    A greater number than all known ones may be that of a later program, unless its second copy contradicts it.
    """
    ((encoding,),) = connection.execute("PRAGMA encoding").fetchall()
    if encoding != "UTF-8":
        return f"its text is {encoding}"
    if describe(connection) == schema():
        return None  # as almost always; making the tables of all versions takes much longer
    fitting, version = _fitting(connection), version_of(connection)
    ((copy,),) = connection.execute("PRAGMA application_id").fetchall()
    if not fitting or version in fitting or (version > newest_version() and copy - APPLICATION not in fitting):
        return None
    return f"its schema version is {version}"


def _version(damaged: sqlite3.Connection) -> int:
    """Return the schema version of a damaged file: by its tables, else by its header, else the newest."""
    with contextlib.suppress(*_UNREADABLE):
        version, fitting = version_of(damaged), [number for number in _fitting(damaged) if number]
        if version in fitting or (not fitting and 0 < version <= newest_version()):
            return version
        if fitting:
            return fitting[-1]
    return newest_version()


def _copy(path: Path, to: Path) -> None:
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            shutil.copy2(source, to.with_name(to.name + suffix))


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _rescue(damaged: Path, rescued: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    """Copy all readable rows to the new file `rescued`. Returns the rows of each table, and the incomplete tables.

    The new file gets the schema of the damaged one; opening the store migrates it.
    """
    rescued.touch(mode=0o600)
    with _opened(damaged) as source, contextlib.closing(sqlite3.connect(rescued, isolation_level=None)) as target:
        target.execute(f"PRAGMA page_size={PAGE_SIZE}")
        version = _version(source)
        migrate(target, None if version == newest_version() else version)
        target.execute("PRAGMA foreign_keys=OFF")
        target.execute("BEGIN")
        tables = [_Table(source, target, name) for (name,) in target.execute(_TABLES).fetchall()]
        for table in tables:
            table.copy()
        for table in tables:
            table.copy_by_known_keys()
        target.execute("COMMIT")
        _drop_orphans(target)
    return {table.name: table.copied for table in tables}, tuple(t.name for t in tables if not t.complete)


@contextlib.contextmanager
def _opened(damaged: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of the damaged file, because opening a file with a write-ahead log changes it."""
    copy = damaged.with_name(f"{FILE}.reading")
    try:
        _copy(damaged, copy)
        with contextlib.closing(sqlite3.connect(copy)) as source:
            source.text_factory = forgiving
            with contextlib.suppress(*_UNREADABLE):  # then no table can be read either
                source.execute("PRAGMA writable_schema=ON")  # one bad definition does not hide the other tables
            yield source
    finally:
        _remove(copy)


class _Table:
    """Copies one table from the damaged file into the new one."""

    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection, name: str) -> None:
        described = target.execute(f"PRAGMA table_info({name})").fetchall()
        ((without_rowid,),) = target.execute("SELECT wr FROM pragma_table_list WHERE name=?", (name,)).fetchall()
        key = [(row[1], row[2]) for row in sorted(described, key=lambda row: row[5]) if row[5]]
        if not without_rowid:
            key = [("rowid", "INTEGER")]
        columns = list(dict.fromkeys([*(column for column, _ in key), *(row[1] for row in described)]))
        self._key = [column for column, _ in key]
        self._numbered = key[-1][1] == "INTEGER"
        self._number = len(key) - 1  # the position of the last column of the key
        names = ", ".join(columns)
        self._select = f"SELECT {names} FROM {name}"
        self._insert = f"INSERT OR IGNORE INTO {name} ({names}) VALUES ({', '.join('?' * len(columns))})"
        self._source, self._target, self.name = source, target, name
        # The number of copied rows, and whether these are all.
        self.copied = 0
        self.complete = False

    def copy(self) -> None:
        """Copy the rows that can be read in the order of the key."""
        self.complete = self._walk(self._key)

    def copy_by_known_keys(self) -> None:
        """Copy, if rows are missing, those of each key that another table holds in a column of the same name."""
        first, *rest = self._key
        if self.complete or (self._numbered and not rest):
            return
        others = self._target.execute(
            "SELECT t.name FROM pragma_table_list t, pragma_table_info(t.name) c WHERE t.schema='main' AND c.name=?",
            (first,),
        ).fetchall()
        known = [f"SELECT {first} FROM {name}" for (name,) in others]
        if self.name in _HINTS:
            known.append(_HINTS[self.name])
        for (value,) in self._target.execute(" UNION ".join(known)).fetchall():
            self._walk(rest or self._key, f"{first}=?", value)

    def _walk(self, key: list[str], among: str = "true", *values: object) -> bool:
        """Copy rows in the order of a key from both ends, and between them one by one; return whether all came."""
        first, ended = self._take(f"{among} ORDER BY {', '.join(key)}", *values)
        if ended:
            return True
        last, _ = self._take(f"{among} ORDER BY {' DESC, '.join(key)} DESC", *values)
        if self._numbered and len(key) == 1 and (first or last):
            low, high = (row[self._number] if row else end for row, end in ((first, 0), (last, _FAR)))
            if isinstance(low, int) and isinstance(high, int):
                for number in range(low + 1, min(high, low + _FAR)):
                    self._take(f"{among} AND {key[0]}=?", *values, number)
        return False

    def _take(self, which: str, *values: object) -> tuple[Row | None, bool]:
        """Copy rows until one cannot be read; return the last copied row, and whether the end was reached."""
        row: Row | None = None
        try:
            for row in self._source.execute(f"{self._select} WHERE {which}", values):
                with contextlib.suppress(sqlite3.IntegrityError):  # damaged bytes that break a rule of the table
                    self.copied += self._target.execute(self._insert, row).rowcount
        except _UNREADABLE:
            return row, False
        return row, True


def _drop_orphans(target: sqlite3.Connection) -> None:
    """Delete rows whose parent row is lost, until the foreign keys of all rows hold."""
    while broken := {(row[0], row[3]) for row in target.execute("PRAGMA foreign_key_check")}:
        for table, number in broken:
            keys = target.execute(f"PRAGMA foreign_key_list({table})").fetchall()
            of_one = [key for key in keys if key[0] == number]
            parent, children = of_one[0][2], ", ".join(key[3] for key in of_one)
            described = target.execute(f"PRAGMA table_info({parent})").fetchall()
            primary = [row[1] for row in sorted(described, key=lambda row: row[5]) if row[5]]
            parents = ", ".join(key[4] or primary[place] for place, key in enumerate(of_one))
            # a comparison with NULL, which refers to nothing, is not true
            target.execute(f"DELETE FROM {table} WHERE ({children}) NOT IN (SELECT {parents} FROM {parent})")
