"""The start-up check: a damaged file is copied aside, and what is readable of it goes into a new one.

Nothing is ever deleted: the damaged file stays beside the new one, and the report says where and what came over.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.store.database import FILE, migrate

_TABLES = ("conversation", "transcript", "session", "turn", "inbox", "entry", "tool_call", "delivery", "event", "kv")


@dataclass(frozen=True, slots=True)
class Salvage:
    """What was found wrong, where the damaged file is, and how many rows were recovered per table."""

    problem: str
    kept_as: Path
    rows: dict[str, int]


def check(directory: Path, stamp: str) -> Salvage | None:
    """Check `directory`/hark.db; None when it is whole or not there yet. Blocking; the caller holds the lock.

    stamp: goes into the name of the copy. Raises OSError when the copy cannot be made; then nothing was changed.
    """
    path = directory / FILE
    if not path.exists() or path.stat().st_size == 0:
        return None
    problem = find_problem(path)
    if problem is None:
        return None
    aside = directory / f"{FILE}.damaged-{stamp}"
    for suffix in ("", "-wal", "-shm"):
        source = path.with_name(FILE + suffix)
        if source.exists():
            shutil.copy2(source, aside.with_name(aside.name + suffix))
    rescued = directory / f"{FILE}.rescued-{stamp}"
    rescued.unlink(missing_ok=True)
    rescued.touch(mode=0o600)
    rows = _copy_readable(aside, rescued)
    for suffix in ("-wal", "-shm"):
        path.with_name(FILE + suffix).unlink(missing_ok=True)
    rescued.replace(path)
    return Salvage(problem, aside, rows)


def find_problem(path: Path) -> str | None:
    """What is wrong with a database file in SQLite's words, None when nothing is."""
    connection = sqlite3.connect(path)
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        return None if found == "ok" else str(found)
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "unable to open" in str(error):
            return None  # not damage: opening it says more
        return str(error)
    except sqlite3.DatabaseError as error:
        return str(error)
    finally:
        connection.close()


def _copy_readable(damaged: Path, rescued: Path) -> dict[str, int]:
    source = sqlite3.connect(damaged)
    target = sqlite3.connect(rescued, isolation_level=None)
    try:
        migrate(target)
        target.execute("PRAGMA foreign_keys=OFF")
        target.execute("BEGIN")
        counts = {table: _copy_table(source, target, table) for table in _TABLES}
        target.execute("COMMIT")
        _drop_orphans(target)
        return counts
    finally:
        source.close()
        target.close()


def _copy_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> int:
    """Copy rows forward until a page cannot be read, then backward from the end."""
    columns = [row[1] for row in target.execute(f"PRAGMA table_info({table})")]
    key = ", ".join(
        row[1] for row in sorted(target.execute(f"PRAGMA table_info({table})"), key=lambda r: r[5]) if row[5]
    )
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    copied = 0
    for order in ("ASC", "DESC"):
        by = ", ".join(f"{part} {order}" for part in key.split(", "))
        complete = True
        rows = _readable(source, f"SELECT {names} FROM {table} ORDER BY {by}")
        for row in rows:
            if row is None:
                complete = False
                break
            try:
                copied += target.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", row).rowcount
            except sqlite3.Error:
                continue  # a row whose bytes are damaged breaks a rule of its table
        if complete:
            break
    return copied


def _readable(source: sqlite3.Connection, sql: str) -> Iterator[tuple[object, ...] | None]:
    """Rows as long as they can be read, then None where reading failed."""
    try:
        cursor = source.execute(sql)
        while (row := cursor.fetchone()) is not None:
            yield row
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        yield None


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
