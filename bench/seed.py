"""Makes a session old: copies the rows of a real turn, as the store wrote them, under new ids."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_TABLES = {"turn": "turn_id", "inbox": "seq", "entry": "", "delivery": "delivery_id", "event": "seq"}
"""What a turn leaves behind, parents first, and the key that the database gives by itself."""


def age(state: Path, lines: int) -> None:
    """Bring the only transcript of a store, which nobody has open, to so many lines; a turn writes two."""
    db = sqlite3.connect(state / "hark.db", isolation_level=None)
    try:
        (turn_id,) = db.execute("SELECT turn_id FROM turn ORDER BY created_at DESC LIMIT 1").fetchone()
        (last,) = db.execute("SELECT max(seq) FROM entry").fetchone()
        db.execute("BEGIN")
        for table, given in _TABLES.items():
            rows = _of_turn(db, table, turn_id)
            copies = []
            for number in range((lines - last) // 2):
                name = f"{number:032x}"
                for row in rows:
                    copy = {key: _renamed(value, turn_id, name) for key, value in row.items()}
                    if table == "entry":
                        copy["seq"] += 2 * (number + 1)
                    elif table == "inbox":
                        copy["event_key"] = f"m:copy-{name}"
                    if given not in ("", "turn_id"):
                        del copy[given]
                    copies.append(copy)
            _insert(db, table, copies)
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        db.close()


def _of_turn(db: sqlite3.Connection, table: str, turn_id: str) -> list[dict[str, Any]]:
    found = db.execute(f"SELECT * FROM {table} WHERE turn_id=?", (turn_id,))
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def _renamed(value: object, turn_id: str, name: str) -> Any:
    return value.replace(turn_id, name) if isinstance(value, str) else value


def _insert(db: sqlite3.Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        return
    columns = ", ".join(rows[0])
    marks = ", ".join("?" * len(rows[0]))
    db.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", [tuple(row.values()) for row in rows])
