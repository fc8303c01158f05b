"""Freezes: an owner's word that nothing goes on, as rows that every start looks at (`bot/store/frozen.py`)."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

from bot.persistence.freezes import Freeze, Frozen, Thawed, What
from bot.persistence.turns import CommandKept
from bot.store import rows
from bot.store.commands import NOT_ANEW, begin, finish
from bot.store.frozen import HELD_BACK
from bot.store.indexes import OPEN_DELIVERY, OPEN_TURN, WAITING
from bot.store.writer import Subject, query, transaction
from channels.message import ChatKind
from channels.outgoing import Planned
from channels.sources import frozen

T = TypeVar("T")
# Makes the answer to a command from what the command has done.
Reply = Callable[[T], Sequence[Planned]]
# A command that was given: its place in the inbox, and its answer.
By = tuple[int, Reply[T]]


class Freezes(Subject):
    """The transactions of /freeze and /thaw, also where no command of a chat asks for them."""

    @query
    def all(self, db: sqlite3.Connection) -> Sequence[Freeze]:
        """Return what is frozen, in the order in which it was."""
        return _all(db)

    @transaction
    def freeze(
        self, db: sqlite3.Connection, what: What, who: str, place: str, by: By[Sequence[Freeze]] | None = None
    ) -> tuple[Sequence[Freeze], CommandKept]:
        """Freeze something, unless it is frozen, and return all that is. who, place: see `Freeze`."""
        begun = begin(db, by[0], self._now()) if by else None
        if by and begun is None:
            return _all(db), NOT_ANEW
        row = (what, self._now(), who, place)
        db.execute("INSERT INTO freeze (what, since, who, place) VALUES (?,?,?,?) ON CONFLICT DO NOTHING", row)
        found = _all(db)
        return found, finish(db, begun, by[1](found)) if by and begun else NOT_ANEW

    @transaction
    def thaw(self, db: sqlite3.Connection, by: By[Thawed] | None = None) -> tuple[Thawed, CommandKept]:
        """Thaw everything, and return what goes on."""
        begun = begin(db, by[0], self._now()) if by else None
        if by and begun is None:
            return Thawed(freezes=()), NOT_ANEW
        held = f"SELECT count(*) FROM delivery WHERE {OPEN_DELIVERY} AND state='planned' AND {HELD_BACK}"
        queued = f"SELECT count(*) FROM turn WHERE {OPEN_TURN} AND state='queued' AND epoch > 0"
        waiting = f"SELECT count(*) FROM inbox WHERE {WAITING} AND {rows.FOR_A_RUN}"
        turns, messages, deliveries = db.execute(f"SELECT ({queued}), ({waiting}), ({held})").fetchone()
        thawed = Thawed(freezes=_all(db), turns=turns, messages=messages, deliveries=deliveries)
        db.execute("DELETE FROM freeze")
        return thawed, finish(db, begun, by[1](thawed)) if by and begun else NOT_ANEW


def held(db: sqlite3.Connection, session_key: str, what: What) -> Frozen:
    """Return the error that a freeze holds a session, with the conversations in which people wait and were not told."""
    freeze = next(one for one in _all(db) if one.what == what)
    waiting = db.execute(
        f"SELECT conv_id FROM inbox WHERE session_key=?1 AND {WAITING} AND kind IN ('message','api') UNION SELECT"
        f" reply_conv FROM turn WHERE session_key=?1 AND {OPEN_TURN} AND state='queued' AND kind IN ('reply','api')",
        (session_key,),
    ).fetchall()
    told = "SELECT 1 FROM delivery WHERE source=?"
    untold = [one for (one,) in waiting if not db.execute(told, (frozen(freeze.since, one).key,)).fetchone()]
    places = [(conv_id, rows.place_of(db, conv_id)) for conv_id in untold]
    return Frozen(freeze, [(conv_id, place) for conv_id, place in places if place.kind is not ChatKind.API])


def _all(db: sqlite3.Connection) -> Sequence[Freeze]:
    found = db.execute("SELECT what, since, who, place FROM freeze ORDER BY since, what").fetchall()
    return [Freeze(what=what, since=since, who=who, place=place) for what, since, who, place in found]
