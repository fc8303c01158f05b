"""Restarts that somebody has asked for: each is answered by the next start, or when it does not take place."""

import sqlite3
from collections.abc import Callable, Sequence

from bot.persistence.deliveries import PlanIn
from bot.persistence.turns import CommandKept
from bot.store import rows
from bot.store.commands import NOT_ANEW, begin, finish
from bot.store.writer import Subject, transaction
from channels.message import Place
from channels.outgoing import Delivery, Planned

# The scope of `kv` whose keys are the places in the inbox of commands that wait for a restart.
_SCOPE = "restart"


class Restarts(Subject):
    """The commands that wait for a restart."""

    @transaction
    def ask(
        self, db: sqlite3.Connection, seq: int, blocks: Sequence[Planned], chosen: Sequence[Planned]
    ) -> CommandKept:
        """Carry out a command that asks for a restart: it is answered with blocks, and once more by `answer`."""
        begun = begin(db, seq, self._now(), chosen)
        if begun is None:
            return NOT_ANEW
        rows.set_value(db, _SCOPE, str(seq), "")
        return finish(db, begun, blocks)

    @transaction
    def answer(self, db: sqlite3.Connection, blocks: Callable[[Place, int], Sequence[Planned]]) -> tuple[Delivery, ...]:
        """Plan the answer to all who wait, once in each conversation. blocks: of the place and the first command."""
        waiting = "SELECT asked.conv_id, min(asked.seq) FROM kv JOIN inbox AS asked ON asked.seq=CAST(key AS INTEGER)"
        found = db.execute(f"{waiting} WHERE scope=? GROUP BY asked.conv_id", (_SCOPE,)).fetchall()
        planned: tuple[Delivery, ...] = ()
        for conv_id, seq in found:
            said = blocks(rows.place_of(db, conv_id), seq)
            planned += rows.plan(db, PlanIn(conv_id), said, None, self._now())
        db.execute("DELETE FROM kv WHERE scope=?", (_SCOPE,))
        return planned
