"""What files of the workspace were made from: rows about contents, and about commands that may be writing."""

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from agent.message import Provenance, merged
from agent.tools.lineage import FileState, Origins
from bot.store import codec
from bot.store.writer import Subject, query, transaction

# How many contents of one path are known. More than one, because a write may fail or be cut off after its row.
_CONTENTS = 8
# For how long the row of a file that is gone is kept, in milliseconds: the file may be about to be written.
_GONE = 3_600_000
_BELOW = "(?1='' OR path=?1 OR (path > ?1 || '/' AND path < ?1 || '0'))"


@dataclass(frozen=True, slots=True)
class FileWriter:
    """A command that may be writing, or has written more files than have rows. Times are in nanoseconds."""

    writer_id: int
    # The folder that it may write in, below the workspace.
    room: str
    since: int
    # None: it may be writing.
    until: int | None
    origins: Origins

    def wrote(self, state: FileState) -> bool:
        """Whether it may have written what a file holds."""
        inside = not self.room or state.path.startswith(f"{self.room}/")
        return inside and self.since <= state.changed and (self.until is None or state.changed <= self.until)


class FileOrigins(Subject):
    """The transactions about the origins of files."""

    @query
    def of(self, db: sqlite3.Connection, states: Sequence[FileState]) -> Sequence[Origins | None]:
        """Return the origins of each file; None: nothing is known of it."""
        return [_of(db, state) for state in states]

    @transaction
    def rewrite(
        self, db: sqlite3.Connection, before: FileState | None, after: FileState, origins: Origins, otherwise: Origins
    ) -> Origins:
        """Note what a content is made from that is about to be written; return the origins of the old content.

        before: the old content, if some of it stays. otherwise: the origins of an old content of which nothing is
        known.
        """
        old = _of(db, before) if before else ()
        old = otherwise if old is None else old
        row = (after.path, after.digest, codec.ORIGINS.dump(merged((*origins, *old))), self._now())
        db.execute("DELETE FROM file_origin WHERE path=? AND digest=?", row[:2])
        db.execute("INSERT INTO file_origin (path, digest, origins, at) VALUES (?,?,?,?)", row)
        db.execute(
            "DELETE FROM file_origin WHERE path=?1 AND rowid NOT IN"
            " (SELECT rowid FROM file_origin WHERE path=?1 ORDER BY rowid DESC LIMIT ?2)",
            (after.path, _CONTENTS),
        )
        return old

    @query
    def contents(self, db: sqlite3.Connection, room: str) -> Collection[tuple[str, str]]:
        """Return the paths in a room of which something is known, each with the digest of a content."""
        return set(db.execute(f"SELECT path, digest FROM file_origin WHERE {_BELOW}", (room,)))

    @query
    def tainted(self, db: sqlite3.Connection, room: str) -> tuple[dict[str, Origins], Sequence[FileWriter]]:
        """Return the paths in a room that have an untrusted content, and the commands that may write or wrote there."""
        found: dict[str, Origins] = {}
        rows = db.execute(f"SELECT path, origins FROM file_origin WHERE origins<>'[]' AND {_BELOW}", (room,))
        for path, origins in rows:
            found[path] = merged((*found.get(path, ()), *codec.origins(origins)))
        return found, [one for one in _writers(db) if _meet(one.room, room)]

    @transaction
    def forget(self, db: sqlite3.Connection, gone: Iterable[str], written: Iterable[FileWriter]) -> None:
        """Forget files that are gone, but for the newest, and commands that have ended of which nothing is left."""
        before = self._now() - _GONE
        db.executemany("DELETE FROM file_origin WHERE path=? AND at < ?", [(path, before) for path in gone])
        ended = [(one.writer_id,) for one in written]
        db.executemany("DELETE FROM file_writer WHERE writer_id=? AND until IS NOT NULL", ended)

    @transaction
    def begin(self, db: sqlite3.Connection, room: str, since: int, origins: Collection[Provenance]) -> int:
        """Note that a command may write in a room from now on; return the id of its row."""
        values = (room, since, codec.ORIGINS.dump(tuple(origins)))
        made = db.execute("INSERT INTO file_writer (room, since, origins) VALUES (?,?,?)", values)
        assert made.lastrowid is not None
        return made.lastrowid

    @transaction
    def feed(self, db: sqlite3.Connection, writer_id: int, origins: Collection[Provenance]) -> None:
        """Add origins to a command that may be writing."""
        for one in [one for one in _writers(db) if one.writer_id == writer_id]:
            more = codec.ORIGINS.dump(merged((*one.origins, *origins)))
            db.execute("UPDATE file_writer SET origins=? WHERE writer_id=?", (more, writer_id))

    @query
    def writing(self, db: sqlite3.Connection) -> Sequence[FileWriter]:
        """Return the commands that may be writing."""
        return [one for one in _writers(db) if one.until is None]

    @transaction
    def settle(self, db: sqlite3.Connection, one: FileWriter, states: Sequence[FileState] | None, until: int) -> None:
        """Note what a command has written that has ended. states: the files that it may have written; None: too many.

        A content that has a row was known before, or written by a tool meanwhile. What bears nothing is noted only
        if no other command may be writing: it may be that one's.
        """
        if states is None and one.origins:
            bears = codec.ORIGINS.dump(one.origins)
            db.execute("UPDATE file_writer SET until=?, origins=? WHERE writer_id=?", (until, bears, one.writer_id))
            return
        if one.origins or [other for other in _writers(db) if _meet(other.room, one.room)] == [one]:
            now, bears = self._now(), codec.ORIGINS.dump(one.origins)
            db.executemany(
                "INSERT INTO file_origin (path, digest, origins, at) VALUES (?,?,?,?) ON CONFLICT DO NOTHING",
                [(state.path, state.digest, bears, now) for state in states or ()],
            )
        db.execute("DELETE FROM file_writer WHERE writer_id=?", (one.writer_id,))


def _of(db: sqlite3.Connection, state: FileState) -> Origins | None:
    """Return the origins of what a file holds; None: nothing is known of it."""
    found = db.execute(
        "SELECT origins FROM file_origin WHERE path=? AND digest=?", (state.path, state.digest)
    ).fetchone()
    if found is not None:
        return codec.origins(found[0])
    return merged(origin for one in _writers(db) if one.wrote(state) for origin in one.origins) or None


def _writers(db: sqlite3.Connection) -> Sequence[FileWriter]:
    rows = db.execute("SELECT writer_id, room, since, until, origins FROM file_writer ORDER BY writer_id")
    return [FileWriter(one, room, since, until, codec.origins(made)) for one, room, since, until, made in rows]


def _meet(one: str, other: str) -> bool:
    """Whether one of two folders holds the other, or they are the same."""
    return not one or not other or f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
