"""Agent events that were kept, by their positions: in the order of storing."""

import sqlite3
from collections.abc import Sequence

from agent.events import first_and_last
from bot.persistence.values import StoredEvent
from bot.store import rows
from bot.store.indexes import HELD_TURN
from bot.store.subject import Subject, query

_EVENTS = "SELECT seq, json_extract(body, '$.type'), body FROM event"


class Events(Subject):
    """Reads events by position."""

    @query
    def events_after(
        self,
        db: sqlite3.Connection,
        seq: int,
        upto: int,
        session_key: str | None,
        run_id: str | None,
        limit: int,
        sessions: str = "",
    ) -> Sequence[StoredEvent]:
        found = db.execute(
            f"{_EVENTS} WHERE seq > ?1 AND seq <= ?2 AND json_valid(body) AND (?3 IS NULL OR session_key = ?3)"
            " AND (?4 IS NULL OR turn_id = ?4) AND instr(session_key, ?5) = 1 ORDER BY seq LIMIT ?6",
            (seq, upto, session_key, run_id, sessions, limit),
        ).fetchall()
        return [StoredEvent(*row) for row in found]

    @query
    def under_way(
        self, db: sqlite3.Connection, session_key: str | None, sessions: str
    ) -> tuple[int, Sequence[StoredEvent]]:
        db.execute("BEGIN")  # both of one moment
        try:
            found = db.execute(
                f"{_EVENTS} WHERE seq IN (SELECT (SELECT max(seq) FROM event"  # '0' follows '/'
                "   WHERE event_id >= turn.turn_id || '/' AND event_id < turn.turn_id || '0') FROM turn"
                f"  WHERE {HELD_TURN} AND state='running')"
                " AND iif(json_valid(body), json_extract(body, '$.type')='message_start', 0)"
                " AND (?1 IS NULL OR session_key = ?1) AND instr(session_key, ?2) = 1 ORDER BY seq",
                (session_key, sessions),
            ).fetchall()
            return rows.newest_event(db), [StoredEvent(*row) for row in found]
        finally:
            db.execute("COMMIT")

    @query
    def first_event(self, db: sqlite3.Connection, run_id: str) -> int | None:
        # a run that was dropped before it began has an end alone
        ids = first_and_last(run_id)
        return db.execute("SELECT min(seq) FROM event WHERE event_id IN (?,?)", ids).fetchone()[0]  # type: ignore[no-any-return]

    @query
    def end_of(self, db: sqlite3.Connection, run_id: str) -> int | None:
        found = db.execute("SELECT seq FROM event WHERE event_id=?", (first_and_last(run_id)[1],)).fetchone()
        return int(found[0]) if found else None

    @query
    def last_event(self, db: sqlite3.Connection) -> int:
        return rows.newest_event(db)
