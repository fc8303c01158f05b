"""What a store holds, read beside no service: nothing is locked, mended, migrated or made."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Held:
    """Counts. begun: turns that go on at the next start; used_at: milliseconds, None when there is no session."""

    sessions: int
    used_at: int | None
    begun: int
    waiting: int
    undelivered: int
    failed_deliveries: int


def look(file: Path) -> Held:
    """Count what is in a store. Blocking. Raises sqlite3.Error when it cannot be read."""
    db = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return Held(
            *db.execute(
                "SELECT (SELECT count(*) FROM session), (SELECT max(used_at) FROM session),"
                " (SELECT count(*) FROM turn WHERE state IN ('queued','running','parked') AND epoch > 0),"
                " (SELECT count(*) FROM inbox WHERE state='waiting'),"
                " (SELECT count(*) FROM delivery WHERE state IN ('planned','sending','unknown')),"
                " (SELECT count(*) FROM delivery WHERE state='failed')"
            ).fetchone()
        )
    finally:
        db.close()
