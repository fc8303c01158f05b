"""What a store holds, read from beside the service: the one place where tests know how it is kept.

stored = Stored(home / "state")
assert stored.turns("state", "crashes") == [("done", 0)]
assert stored.deliveries("said", state="sent", chat="1") == [("fine",)]
assert stored.messages(state={"waiting", "taken"}) == []
"""

import contextlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.persistence.balance import Balance, add_up
from bot.store.balance import page, rest

_DELIVERIES = "delivery JOIN conversation USING (conv_id)"
_ORDER = {
    "inbox": "seq",
    "turn": "created_at, turn_id",
    _DELIVERIES: "delivery_id",
    "tool_call": "turn_id, step, ordinal",
    "event": "seq",
    "entry": "transcript_id, seq",
    "session": "used_at, session_key",
    "approval": "asked_at, approval_id",
    "conversation": "conv_id",
    "job": "rowid",
    "firing": "due_at",
    "usage": "usage_id",
    "undone": "command, turn_id",
    "memory": "memory_id",
    "child": "started_at, session_key",
    "transcript": "created_at, transcript_id",
}

_OPEN_DELIVERIES = (
    "SELECT count(*) FROM delivery WHERE state IN ('planned','sending','unknown') AND source NOT LIKE 'refused:%'"
)
_UNFINISHED = (
    "SELECT (SELECT count(*) FROM inbox WHERE state IN ('waiting','steering','taken')) +"
    " (SELECT count(*) FROM turn WHERE state IN ('queued','running','parked')) +"
    " (SELECT count(*) FROM approval WHERE state<>'open' AND told=0) +"
    f" ({_OPEN_DELIVERIES})"
)


def disk_full() -> Exception:
    """What a commit probe raises where nothing can be written."""
    return sqlite3.OperationalError("database or disk is full")


class Like(str):
    """A pattern of SQL."""


class Stored:
    """Rows by their subject, oldest first; none while there is no store.

    columns: which of each row, all of them without. where: what they hold: a value, one of a set, something in a range,
    or what is Like a pattern. The file is held open until `close`, and opened anew where another lies in its place.
    """

    def __init__(self, state: Path) -> None:
        self._file = state / "hark.db"
        self._opened: sqlite3.Connection | None = None
        self._seen: tuple[int, int] | None = None

    def __del__(self) -> None:
        self.close()

    @property
    def begun(self) -> bool:
        """Whether there is a store."""
        return bool(self._ask("SELECT 1 FROM sqlite_schema WHERE name='event'"))

    def messages(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """What was accepted."""
        return self._read("inbox", columns, where)

    def texts(self, **where: object) -> list[str]:
        """The words of what was accepted."""
        return [json.loads(payload)["text"] for (payload,) in self.messages("payload", **where)]

    def turns(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        return self._read("turn", columns, where)

    def jobs(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """What runs by itself."""
        return self._read("job", columns, where)

    def memories(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """What the tool memory_write was given."""
        return self._read("memory", columns or ("state",), where)

    def firings(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """Due times, and what became of them."""
        return self._read("firing", columns, where)

    def usage(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """What model calls have used."""
        return self._read("usage", columns, where)

    def children(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """Sub-agents that were started."""
        return self._read("child", columns, where)

    def undone(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """Turns whose exchanges were taken back."""
        return self._read("undone", columns, where)

    def calls(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """Calls of tools."""
        return self._read("tool_call", columns, where)

    def deliveries(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """With the conversations that they belong to."""
        return self._read(_DELIVERIES, columns, where)

    def open_deliveries(self) -> int:
        """How many are still to be made; not those that wait for a terminal, unless another owner can be told."""
        return self._count(_OPEN_DELIVERIES)

    def due(self, now: int) -> int:
        """How many jobs have something to do: now, or once."""
        soon = "next_at IS NOT NULL AND paused=0 AND (next_at <= ? OR json_extract(schedule, '$.type')='at')"
        return sum(count for (count,) in self._ask(f"SELECT count(*) FROM job WHERE {soon}", now))

    def values(self, scope: str) -> dict[str, str]:
        """Small values by their keys."""
        return dict(self._ask("SELECT key, value FROM kv WHERE scope=?", scope))

    def unfinished(self) -> int:
        """How many messages, turns, requests and deliveries the service has still to see to, at one moment."""
        return self._count(_UNFINISHED)

    def entries(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        """Lines of transcripts."""
        return self._read("entry", columns, where)

    def lines(self, session_key: str, kind: str = "user") -> list[str]:
        """The texts of the lines of a kind in all transcripts of a session."""
        found = self._read("transcript", ("transcript_id",), {"session_key": session_key})
        bodies = (body for (one,) in found for (body,) in self.entries("body", transcript_id=one, kind=kind))
        return ["".join(part.get("text", "") for part in json.loads(body)["parts"]) for body in bodies]

    def results(self) -> dict[str, list[str]]:
        """What the model was told of calls, by the call."""
        found: dict[str, list[str]] = {}
        for (body,) in self.entries("body", kind="tool_result"):
            for part in json.loads(body)["parts"]:
                found.setdefault(part["call_id"], []).append(part["text"])
        return found

    def sessions(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        return self._read("session", columns, where)

    def approvals(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        return self._read("approval", columns, where)

    def conversations(self, *columns: str, **where: object) -> list[tuple[Any, ...]]:
        return self._read("conversation", columns, where)

    def last_event(self, session_key: str) -> int:
        """Position of the newest kept event of a session; 0 without any."""
        return max((seq for (seq,) in self._read("event", ("seq",), {"session_key": session_key})), default=0)

    def events(self, **where: object) -> list[dict[str, Any]]:
        """Kept events, as every surface reads them."""
        return [json.loads(body) for (body,) in self._read("event", ("body",), where)]

    def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables."""
        tables = self._ask("SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%'")
        return {name: self._ask(f"SELECT * FROM {name}") for (name,) in tables}

    def spoil(self, change: str, *values: object) -> None:
        """Change rows behind the back of the service, as nobody but a failing disk does; `change` is SQL."""
        with contextlib.closing(sqlite3.connect(self._file, isolation_level=None)) as database:
            assert database.execute(change, values).rowcount

    def rename(self, old: str, new: str) -> None:
        """Take a table away, or give it back: what asks for it meanwhile cannot be read."""
        with contextlib.closing(sqlite3.connect(self._file, isolation_level=None)) as database:
            database.execute("PRAGMA legacy_alter_table=ON")
            database.execute(f"ALTER TABLE {old} RENAME TO {new}")

    def balance(self) -> Balance:
        """The book of messages."""
        with contextlib.closing(sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True)) as database:
            database.isolation_level = None
            database.execute("BEGIN")
            pages = [page(database, 0, 0)]
            while (upto := pages[-1].upto) is not None:
                pages.append(page(database, upto, 0))
            return add_up([*pages, rest(database, 0)])

    def close(self) -> None:
        """Let go of the file; who asks again opens it again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _count(self, sql: str) -> int:
        return sum(count for (count,) in self._ask(sql))

    def _read(self, table: str, columns: Sequence[str], where: dict[str, object]) -> list[tuple[Any, ...]]:
        tests, values = ["true"], list[object]()
        for name, value in where.items():
            match value:
                case set():
                    tests.append(f"{name} IN ({','.join('?' * len(value))})")
                    values += value
                case range():
                    tests.append(f"{name} BETWEEN ? AND ?")
                    values += (value.start, value.stop - 1)
                case Like():
                    tests.append(f"{name} LIKE ?")
                    values.append(str(value))
                case _:
                    tests.append(f"{name} IS ?")
                    values.append(value)
        wanted, order = " AND ".join(tests), _ORDER[table]
        return self._ask(f"SELECT {', '.join(columns) or '*'} FROM {table} WHERE {wanted} ORDER BY {order}", *values)

    def _ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._connection().execute(sql, values).fetchall()
        except FileNotFoundError:
            return []
        except sqlite3.DatabaseError as error:
            self.close()
            if "no such table" in str(error):
                return []
            raise

    def _connection(self) -> sqlite3.Connection:
        found = self._file.stat()
        # A file that a test has spoilt, or a checkpoint has written, is read anew.
        seen = (found.st_ino, found.st_mtime_ns)
        if self._opened is None or self._seen != seen:
            self.close()
            uri = f"{self._file.as_uri()}?mode=ro"
            self._opened = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            self._seen = seen
        return self._opened
