"""Which skills an owner has looked at, as rows with the digests of their files."""

import sqlite3
from collections.abc import Mapping

from bot.store import rows
from bot.store.writer import Subject, query, transaction

# Present once the skills that were there at the first start count as looked at.
_BEGUN = ("skills", "begun")


class SkillRows(Subject):
    """The transactions about skills."""

    @query
    def pins(self, db: sqlite3.Connection) -> tuple[Mapping[str, str], bool]:
        """Return the digest of each skill as it was looked at, by name; and whether `begin` was called."""
        begun = db.execute("SELECT 1 FROM kv WHERE scope=? AND key=?", _BEGUN).fetchone() is not None
        return dict(db.execute("SELECT name, digest FROM skill").fetchall()), begun

    @transaction
    def begin(self, db: sqlite3.Connection, there: Mapping[str, str]) -> None:
        """Let the skills that are there at the first start count as looked at, by name and digest."""
        for name, digest in there.items():
            _pin(db, name, digest, self._now(), "NOTHING")
        rows.set_value(db, *_BEGUN, "1")

    @transaction
    def pin(self, db: sqlite3.Connection, name: str, digest: str) -> None:
        """Note that an owner has looked at a skill."""
        _pin(db, name, digest, self._now(), "UPDATE SET digest=excluded.digest, at=excluded.at")


def _pin(db: sqlite3.Connection, name: str, digest: str, now: int, otherwise: str) -> None:
    insert = f"INSERT INTO skill (name, digest, at) VALUES (?,?,?) ON CONFLICT (name) DO {otherwise}"
    db.execute(insert, (name, digest, now))
