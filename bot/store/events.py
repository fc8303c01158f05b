"""Agent events that were kept, in the order of storing."""

import sqlite3
from collections.abc import Sequence

from agent.events import first_and_last
from bot.persistence.values import StoredEvent
from bot.store.subject import Subject, query

_EVENTS = "SELECT seq, event_id, json_extract(body, '$.type'), body FROM event"


class Events(Subject):
    """Reads events by position or id."""

    @query
    def events_after(
        self,
        db: sqlite3.Connection,
        seq: int,
        session_key: str | None,
        run_id: str | None,
        limit: int,
        sessions: str = "",
    ) -> Sequence[StoredEvent]:
        """Kept events after a position, oldest first; of sessions whose keys begin with `sessions`."""
        found = db.execute(
            f"{_EVENTS} WHERE seq > ?1 AND json_valid(body) AND (?2 IS NULL OR session_key = ?2)"
            " AND (?3 IS NULL OR turn_id = ?3) AND instr(session_key, ?5) = 1 ORDER BY seq LIMIT ?4",
            (seq, session_key, run_id, limit, sessions),
        ).fetchall()
        return [StoredEvent(*row) for row in found]

    @query
    def events(self, db: sqlite3.Connection, event_ids: Sequence[str]) -> Sequence[StoredEvent]:
        """Those of these kept events that are stored, in any order."""
        some = ",".join("?" * len(event_ids))
        found = db.execute(f"{_EVENTS} WHERE event_id IN ({some})", event_ids).fetchall()
        return [StoredEvent(*row) for row in found]

    @query
    def before_step(self, db: sqlite3.Connection, run_id: str, step: int) -> int | None:
        """Where a run's last kept event before a step stands; None when none is kept."""
        return db.execute(  # type: ignore[no-any-return]
            "SELECT max(seq) FROM event WHERE event_id >= ?1 || '/' AND event_id < ?1 || '0'"  # '0' follows '/'
            " AND (event_id = ?1 || '/start' OR json_extract(body, '$.step') < ?2)",
            (run_id, step),
        ).fetchone()[0]

    @query
    def event_position(self, db: sqlite3.Connection, event_id: str) -> int | None:
        """Where a kept event stands; None when it is not known (any more)."""
        found = db.execute("SELECT seq FROM event WHERE event_id=?", (event_id,)).fetchone()
        return int(found[0]) if found else None

    @query
    def first_event(self, db: sqlite3.Connection, run_id: str) -> int | None:
        """Where a run's first kept event stands; None when none is kept (yet, or any more)."""
        # a run that was dropped before it began has an end alone
        ids = first_and_last(run_id)
        return db.execute("SELECT min(seq) FROM event WHERE event_id IN (?,?)", ids).fetchone()[0]  # type: ignore[no-any-return]

    @query
    def last_event(self, db: sqlite3.Connection) -> int:
        """The position of the newest kept event, 0 when there is none."""
        return int(db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])
