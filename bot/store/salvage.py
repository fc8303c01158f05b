"""The start-up check: a damaged file is copied aside, and what is readable of it goes into a new one.

Nothing is ever deleted: the damaged file stays beside the new one, and the report says where and what came over.
What only keeps a file from being opened or copied (a full disk, a lock) is not damage.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bot.store.database import FILE, PAGE_SIZE, forgiving, migrate
from bot.store.mend import HEADER, mend_header, mend_schema

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, MemoryError, OverflowError)
"""How reading damaged rows fails: where SQLite's complaint quotes them, and by lengths and numbers too great, too."""
_FAR = 40
"""Doublings of the step over keys that cannot be read."""

_NUMBERED = {
    "conversation": "conv_id",
    "transcript": "rowid",
    "inbox": "seq",
    "delivery": "delivery_id",
    "event": "seq",
}
_KNOWN = {  # by a column whose values other tables tell; these are copied before
    "entry": ("transcript_id", "SELECT transcript_id FROM transcript"),
    "session": ("session_key", "SELECT session_key FROM transcript"),
    "turn": (
        "turn_id",
        "SELECT turn_id FROM inbox UNION SELECT turn_id FROM delivery"
        " UNION SELECT turn_id FROM event UNION SELECT turn_id FROM entry",
    ),
    "tool_call": ("turn_id", "SELECT turn_id FROM turn"),
    "kv": ("scope", "SELECT DISTINCT channel || ':' || account FROM conversation"),
}
_TABLES = (*_NUMBERED, *_KNOWN)

Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was found wrong, where the damaged file is, rows recovered per table, and when (milliseconds)."""

    problem: str
    kept_as: Path
    rows: dict[str, int]
    at: int


def check(directory: Path, now: int) -> Salvage | None:
    """Check `directory`/hark.db; None when it is whole or not there yet. Blocking; the caller holds the lock.

    now: milliseconds; goes into the name of the copy. Raises OSError when there is no room for the copies; then
    nothing was changed.
    """
    path = directory / FILE
    if not path.exists() or path.stat().st_size == 0:
        return None
    problem = find_problem(path)
    if problem is None:
        return None
    stamp = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%dT%H%M%S")
    aside, rescued = directory / f"{FILE}.damaged-{stamp}", directory / f"{FILE}.rescued-{stamp}"
    try:
        _copy(path, aside)
        rows = _rescue(aside, rescued)
    except (OSError, sqlite3.Error) as error:
        _remove(aside)
        _remove(rescued)
        cause = error.strerror if isinstance(error, OSError) else str(error)
        raise OSError(
            f"the store {path} is damaged ({problem}), and what is readable of it cannot be copied: {cause}."
        ) from error
    for suffix in ("-wal", "-shm"):
        path.with_name(FILE + suffix).unlink(missing_ok=True)
    rescued.replace(path)
    return Salvage(problem, aside, rows, now)


def find_problem(path: Path) -> str | None:
    """What is wrong with a database file, None when nothing is, or it cannot be opened for another reason."""
    with path.open("rb") as file:
        header = file.read(HEADER)
    if header[18] not in (1, 2) or header[44:47] != bytes(3) or header[47] > 4:
        return "its header is not that of a database"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.text_factory = forgiving
        try:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found == "ok":
                return _wrong_number(connection)
        except sqlite3.Error as error:
            return str(error) if error.sqlite_errorcode & 0xFF in _DAMAGE else None  # opening it says more
        except UnicodeDecodeError:  # the complaint quotes the file
            return "its text cannot be decoded"
        return str(found)


def _wrong_number(connection: sqlite3.Connection) -> str | None:
    """A file with the present tables and another schema version, or encoding, has a damaged header."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh)
        tables, version, encoding = (
            [db.execute(asked).fetchall() for db in (connection, fresh)]
            for asked in ("SELECT name, sql FROM sqlite_schema", "PRAGMA user_version", "PRAGMA encoding")
        )
    if encoding[0] != encoding[1]:
        return f"its text is {encoding[0][0][0]}"
    if tables[0] == tables[1] and version[0] != version[1]:
        return f"its schema version is {version[0][0][0]}"
    return None


def _copy(path: Path, to: Path) -> None:
    for suffix in ("", "-wal"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            shutil.copy2(source, to.with_name(to.name + suffix))


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _rescue(damaged: Path, rescued: Path) -> dict[str, int]:
    """Make `rescued` of what is readable. Tables that give nothing are tried again in a copy that was mended."""
    rescued.touch(mode=0o600)
    counts = dict.fromkeys(_TABLES, 0)
    unread = list(_TABLES)
    with contextlib.closing(sqlite3.connect(rescued, isolation_level=None)) as target:
        target.execute(f"PRAGMA page_size={PAGE_SIZE}")
        migrate(target)
        target.execute("PRAGMA foreign_keys=OFF")
        target.execute("BEGIN")
        for mend in (None, mend_header, mend_schema):
            with _opened(damaged, mend) as source:
                for table in unread.copy():
                    copying = _Table(source, target, table)
                    complete = copying.copy()
                    counts[table] += copying.copied
                    if complete or copying.copied:
                        unread.remove(table)
            if not unread:
                break
        target.execute("COMMIT")
        _drop_orphans(target)
    return counts


@contextlib.contextmanager
def _opened(damaged: Path, mend: Callable[[Path], None] | None) -> Iterator[sqlite3.Connection]:
    """A copy of the damaged file, mended and open: to open a file with a write-ahead log is to change it."""
    copy = damaged.with_name(f"{FILE}.mended")
    try:
        _copy(damaged, copy)
        if mend is not None:
            mend(copy)
        with contextlib.closing(sqlite3.connect(copy)) as source:
            source.text_factory = forgiving
            source.execute("PRAGMA writable_schema=ON")  # one bad definition does not hide the other tables
            yield source
    finally:
        _remove(copy)


class _Table:
    """One table on its way from the damaged file into the new one. copied: rows that arrived."""

    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection, name: str) -> None:
        described = target.execute(f"PRAGMA table_info({name})").fetchall()
        self._columns = [row[1] for row in described]
        self._key = [row[1] for row in sorted(described, key=lambda row: row[5]) if row[5]]
        if _NUMBERED.get(name) == "rowid":
            self._columns.insert(0, "rowid")
        names = ", ".join(self._columns)
        self._select = f"SELECT {names} FROM {name}"
        self._insert = f"INSERT OR IGNORE INTO {name} ({names}) VALUES ({', '.join('?' * len(self._columns))})"
        self._source, self._target, self._name = source, target, name
        self.copied = 0

    def copy(self) -> bool:
        """Copy what can be read; returns whether nothing was in the way."""
        if self._name in _NUMBERED:
            return self._walk(_NUMBERED[self._name])
        if self._take(f"ORDER BY {', '.join(self._key)}")[1]:
            return True
        self._take("ORDER BY " + ", ".join(f"{column} DESC" for column in self._key))
        column, known = _KNOWN[self._name]
        for (value,) in self._target.execute(known).fetchall():
            if self._name == "entry":
                self._walk("seq", f"{column}=? AND", value)
            else:
                self._take(f"WHERE {column}=?", value)
        return False

    def _take(self, which: str, *values: object) -> tuple[Row | None, bool]:
        """Copy rows until one cannot be read. Returns the last that could, and whether none is behind it."""
        row: Row | None = None
        rows = self._rows(which, *values)
        while True:
            try:
                found = next(rows, None)
            except _UNREADABLE:
                return row, False
            if found is None:
                return row, True
            row = found
            with contextlib.suppress(sqlite3.IntegrityError):  # damaged bytes that break a rule of the table
                self.copied += self._target.execute(self._insert, row).rowcount

    def _rows(self, which: str, *values: object) -> Iterator[Row]:
        yield from self._source.execute(f"{self._select} {which}", values)

    def _walk(self, key: str, among: str = "", *values: object) -> bool:
        """Copy in the order of a number; where it cannot be read, go on as near behind as can be."""
        which, place = f"WHERE {among} {key} > ? ORDER BY {key}", self._columns.index(key)
        start: int | None = 0
        whole = True
        while start is not None:
            row, ended = self._take(which, *values, start)
            if ended:
                return whole
            whole = False
            last = row[place] if row else None
            start = self._behind(f"{which} LIMIT 1", values, max(start, last) if isinstance(last, int) else start)
        self._take(f"{which} DESC", *values, 0)
        return False

    def _behind(self, which: str, values: Row, last: int) -> int | None:
        """The least number from which rows can be read again, found by doubling and halving the step."""

        def readable(number: int) -> bool:
            try:
                list(self._rows(which, *values, number))
            except _UNREADABLE:
                return False
            return True

        steps = (1 << power for power in range(_FAR))
        step: int | None = next((step for step in steps if readable(last + step)), None)
        if step is None:
            return None
        low, high = last + step // 2, last + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if readable(middle) else (middle, high)
        return high


def _drop_orphans(target: sqlite3.Connection) -> None:
    """Rows whose parent was lost would fail every later check of foreign keys; repeat until none is left."""
    while broken := {(row[0], row[3]) for row in target.execute("PRAGMA foreign_key_check")}:
        for table, number in broken:
            keys = target.execute(f"PRAGMA foreign_key_list({table})").fetchall()
            _, _, parent, child, column, *_ = next(key for key in keys if key[0] == number)
            if column is None:  # the parent's primary key
                column = next(row[1] for row in target.execute(f"PRAGMA table_info({parent})") if row[5])
            target.execute(
                f"DELETE FROM {table} WHERE {child} IS NOT NULL AND {child} NOT IN (SELECT {column} FROM {parent})"
            )
