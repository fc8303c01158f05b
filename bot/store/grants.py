"""What people have allowed for more than one call: for always, for a task, or in one session until a moment."""

import sqlite3
from collections.abc import Sequence

from agent.tools.base import Ask
from bot.persistence.approvals import Granted
from bot.store.writer import Subject, query, transaction


class Grants(Subject):
    """The rows of what is allowed."""

    @query
    def standing(self, db: sqlite3.Connection) -> Sequence[Granted]:
        """Return what is allowed now, oldest first."""
        found = db.execute(
            "SELECT what, words, granted_by, granted_at, session_key, until FROM granted"
            " WHERE until IS NULL OR until > ? ORDER BY granted_at, what",
            (self._now(),),
        )
        return [Granted(*row) for row in found]

    @transaction
    def revoke(self, db: sqlite3.Connection, what: str) -> bool:
        """Allow something no more, in no session; False if it was not allowed."""
        return db.execute("DELETE FROM granted WHERE what=?", (what,)).rowcount > 0


def grant(db: sqlite3.Connection, ask: Ask, by: str, now: int, session_key: str, until: int | None) -> None:
    """Store what an Ask allows from now on, inside a unit of the writer.

    by: who allows it. until: when it ends, in milliseconds; it then holds in the session alone. None: it does not end,
    and holds in every session. Of two ends of the same the later one counts.
    """
    where = "" if until is None else session_key
    for what in ask.grants:
        db.execute(
            "INSERT INTO granted (what, words, granted_by, granted_at, session_key, until) VALUES (?,?,?,?,?,?)"
            " ON CONFLICT DO UPDATE SET until=max(until, excluded.until)",
            (what, ask.granted, by, now, where, until),
        )
    db.execute("DELETE FROM granted WHERE until <= ?", (now,))
