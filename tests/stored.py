"""What a store holds, read from beside the service: the one place where tests know how it is kept.

stored = Stored(home / "state")
assert stored.turns("state", "crashes") == [("done", 0)]
assert stored.deliveries("said", state="sent") == [("fine",)]
"""

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_ORDER = {
    "inbox": "seq",
    "turn": "created_at, turn_id",
    "delivery": "delivery_id",
    "tool_call": "turn_id, step, ordinal",
    "event": "seq",
    "entry": "transcript_id, seq",
    "session": "used_at, session_key",
    "approval": "asked_at, approval_id",
}


class Stored:
    """Rows by their subject, oldest first. columns: which of each row, all of them without; where: what they hold."""

    def __init__(self, state: Path) -> None:
        self._file = state / "hark.db"

    def messages(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """What was accepted."""
        return self._read("inbox", columns, where)

    def turns(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        return self._read("turn", columns, where)

    def calls(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """Calls of tools."""
        return self._read("tool_call", columns, where)

    def deliveries(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        return self._read("delivery", columns, where)

    def entries(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """Lines of transcripts."""
        return self._read("entry", columns, where)

    def sessions(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        return self._read("session", columns, where)

    def approvals(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        return self._read("approval", columns, where)

    def events(self, **where: object) -> list[dict[str, Any]]:
        """Kept events, as every surface reads them."""
        return [json.loads(body) for (body,) in self._read("event", ("body",), where)]

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables."""
        tables = self._ask("SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%'")
        return {name: self._ask(f"SELECT * FROM {name}") for (name,) in tables}

    def _read(self, table: str, columns: Sequence[str], where: dict[str, object]) -> list[tuple[Any, ...]]:
        wanted = " AND ".join(f"{name} IS ?" for name in where) or "true"
        order = _ORDER[table]
        sql = f"SELECT {', '.join(columns) or '*'} FROM {table} WHERE {wanted} ORDER BY {order}"
        return self._ask(sql, *where.values())

    def _ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True)) as database:
            return database.execute(sql, values).fetchall()
