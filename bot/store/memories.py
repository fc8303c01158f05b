"""Transactions about what the tool `memory_write` was given.

The row comes first. A row that is `keeping` or `taking` says that its file is behind, so whoever brings the file up to
date, also after a crash, knows what to do; doing it again changes nothing.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from bot.clock import Clock
from bot.persistence.deliveries import OwnerNotice
from bot.persistence.memories import Memory, NewMemory
from bot.persistence.turns import CommandKept
from bot.store import codec, rows
from bot.store.commands import NOT_ANEW, begin, finish
from bot.store.database import Database
from bot.store.indexes import OPEN_MEMORY
from bot.store.writer import Subject, Writer, query, transaction
from channels.message import ChatKind, Place
from channels.outgoing import Planned

# The most memories of a room that may wait.
MOST = 200
_DIGEST = ("memory", "digest")
_COLUMNS = "memory_id, state, room, path, entry, origins, session_key, by_itself, written_at"
# Where owners decide: in the workspace, and in the rooms where several people write.
_OWNERS = "(room='' OR room > 'groups/' AND room < 'groups0')"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Memories for which the same people decide."""

    # Those that no digest has shown yet, oldest first, and the number of the others.
    new: Sequence[Memory]
    older: int
    # When this digest is made, in milliseconds, which names it.
    at: int
    # The direct conversation of the one person who decides; None: owners do.
    place: Place | None


class Memories(Subject):
    """Transactions about memories. waits: set when a memory may have begun to wait, or a file to be behind."""

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        super().__init__(database, writer, clock)
        self.waits = asyncio.Event()

    @query
    def are_open(self, db: sqlite3.Connection) -> bool:
        """Whether a memory waits, or a file is behind."""
        return bool(db.execute(f"SELECT EXISTS (SELECT 1 FROM memory WHERE {OPEN_MEMORY})").fetchone()[0])

    @transaction
    def write(self, db: sqlite3.Connection, new: NewMemory) -> bool:
        """Store a memory; False if as many wait in its room as may."""
        (count,) = db.execute(
            f"SELECT count(*) FROM memory WHERE {OPEN_MEMORY} AND state='pending' AND room=?", (new.room,)
        ).fetchone()
        if new.pending and count >= MOST:
            return False
        db.execute(
            "INSERT INTO memory (state, room, path, entry, origins, session_key, turn_id, by_itself, written_at)"
            " VALUES (?,?,?,?,?,?,?,?,?)",
            (
                *("pending" if new.pending else "keeping", new.room, new.path, new.entry),
                *(codec.ORIGINS.dump(new.origins), new.session_key, new.turn_id, new.by_itself, self._now()),
            ),
        )
        return True

    @query
    def behind(self, db: sqlite3.Connection) -> Sequence[tuple[str, str]]:
        """Return the files that are behind: the room and the path in it."""
        return db.execute(
            f"SELECT DISTINCT room, path FROM memory WHERE {OPEN_MEMORY} AND state IN ('keeping','taking')"
        ).fetchall()

    @query
    def of_file(self, db: sqlite3.Connection, room: str, path: str) -> Sequence[Memory]:
        """Return the memories of a file that stand in it, are to stand in it, or are to go; oldest first."""
        which = "room=? AND path=? AND state<>'pending' ORDER BY memory_id"
        return _read(db, which, room, path)

    @transaction
    def filed(self, db: sqlite3.Connection, done: Sequence[Memory]) -> None:
        """Note that the file of these memories is as it must be for them."""
        keeping = [(one.memory_id,) for one in done if one.state == "keeping"]
        taking = [(one.memory_id,) for one in done if one.state == "taking"]
        db.executemany("UPDATE memory SET state='kept' WHERE memory_id=? AND state='keeping'", keeping)
        db.executemany("DELETE FROM memory WHERE memory_id=? AND state='taking'", taking)

    @query
    def of_room(self, db: sqlite3.Connection, room: str | None) -> Sequence[Memory]:
        """Return what waits and what was written in a room, oldest first; None: where owners decide."""
        return _read(db, f"state<>'taking' AND {_OWNERS if room is None else 'room=?'} ORDER BY memory_id", *_one(room))

    @transaction
    def decide(
        self,
        db: sqlite3.Connection,
        seq: int,
        ids: Collection[int],
        keep: bool,
        chosen: Sequence[Planned],
        tell: Callable[[int], Sequence[Planned]],
    ) -> CommandKept:
        """Carry out a command that keeps memories which wait, or takes memories back, also those that are kept.

        The caller knows that its sender may. seq: the place of the command in the inbox. chosen: see `Commands`. tell:
        makes the answer from the number of memories that were changed. Files follow later.
        """
        begun = begin(db, seq, self._now(), chosen)
        if begun is None:
            return NOT_ANEW
        change = KEEP if keep else TAKE
        count = sum(db.execute(statement, (one,)).rowcount for one in ids for statement in change)
        return finish(db, begun, tell(count))

    @transaction
    def digest(self, db: sqlite3.Connection, every: int, make: Callable[[Waiting], OwnerNotice]) -> bool:
        """Plan what tells people of memories that wait, if it is time for it; whether it was.

        every: milliseconds between two digests, and from the first memory that waits to a digest.
        """
        now = self._now()
        waiting = _read(db, f"{OPEN_MEMORY} AND state='pending' ORDER BY memory_id")
        found = db.execute("SELECT value FROM kv WHERE scope=? AND key=?", _DIGEST).fetchone()
        last = int(found[0]) if found else 0
        if not waiting or max(last, waiting[0].written_at) + every > now:
            return False
        rows.set_value(db, *_DIGEST, str(now))
        theirs: dict[str, list[Memory]] = {}
        for one in waiting:
            theirs.setdefault(one.room if one.room.startswith("people/") else "", []).append(one)
        for room, memories in theirs.items():
            place = _direct(db, memories[-1].session_key) if room else None
            if room and place is None:
                continue  # a program, which nobody can write to
            new = [one for one in memories if one.written_at > last]
            rows.tell_owner(db, make(Waiting(new, len(memories) - len(new), now, place)), now)
        return True


KEEP = ("UPDATE memory SET state='keeping' WHERE memory_id=? AND state='pending'",)
# Take a memory back, whether it waits or is kept.
TAKE = (
    "DELETE FROM memory WHERE memory_id=? AND state='pending'",
    "UPDATE memory SET state='taking' WHERE memory_id=? AND state IN ('keeping','kept')",
)


def take_of_person(db: sqlite3.Connection, channel: str, sender: str, own: str, rooms: Collection[str]) -> None:
    """Take back what was made from somebody's words, inside a unit of the writer that forgets them.

    own: a JSON list of the sessions in which they alone write. rooms: those that are deleted.
    """
    db.executemany("DELETE FROM memory WHERE room=?", [(room,) for room in rooms if room])
    found = db.execute(
        "SELECT memory_id, origins, session_key IN (SELECT value FROM json_each(?1))"
        " OR turn_id IN (SELECT turn_id FROM inbox WHERE channel=?2 AND sender=?3) FROM memory",
        (own, channel, sender),
    ).fetchall()
    for ident, origins, is_theirs in found:
        if is_theirs or (channel, sender) in {(one.channel, one.sender) for one in codec.origins(origins)}:
            for statement in TAKE:
                db.execute(statement, (ident,))


def _read(db: sqlite3.Connection, which: str, *values: object) -> list[Memory]:
    found = db.execute(f"SELECT {_COLUMNS} FROM memory WHERE {which}", values)
    return [
        Memory(
            memory_id=ident,
            state=state,
            room=room,
            path=path,
            entry=entry,
            origins=codec.origins(origins),
            session_key=key,
            by_itself=bool(by_itself),
            written_at=at,
        )
        for ident, state, room, path, entry, origins, key, by_itself, at in found
    ]


def _one(room: str | None) -> tuple[str, ...]:
    return () if room is None else (room,)


def _direct(db: sqlite3.Connection, session_key: str) -> Place | None:
    """Return the direct conversation in which a session was last; None if it was in none."""
    found = db.execute("SELECT last_conv FROM session WHERE session_key=?", (session_key,)).fetchone()
    place = rows.place_of(db, found[0]) if found and found[0] is not None else None
    return place if place and place.kind is ChatKind.DIRECT else None
