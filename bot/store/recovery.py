"""Repairs what a crash left (durability.md part 4), before lanes and intake open. One transaction repairs one turn.

A turn that was running in two crashes is ended with a notice, and is not tried a third time.
"""

import sqlite3
from collections.abc import Sequence

from agent.events import Outcome
from bot.persistence.deliveries import PlanIn
from bot.persistence.recovery import CutTurn, Leftover
from bot.store import edits, endings, repair, rows
from bot.store.indexes import DELAYED, HELD_TURN, WITH_PROCESS
from bot.store.writer import Subject, query, transaction
from channels.outgoing import Planned
from channels.session_key import parent_of, root_of

CRASHES = 2
# Condition for turns of another worker. That worker has ended, because only one can hold the state directory.
_LEASE_GONE = "worker IS NOT ?"


class Recovery(Subject):
    """The steps of the recovery after a crash."""

    @query
    def leftovers(self, db: sqlite3.Connection, worker: str) -> Sequence[Leftover]:
        """Return processes of earlier workers that may still run, whether or not their turns have ended."""
        found = db.execute(
            "SELECT pid, pid_started, session_key, turn_id || ':' || call_id, iif(tool_call.state='done', args, '')"
            f" FROM tool_call JOIN turn USING (turn_id) WHERE {WITH_PROCESS} AND {_LEASE_GONE}",
            (worker,),
        ).fetchall()
        return [Leftover(*row) for row in found]

    @transaction
    def forget(self, db: sqlite3.Connection, ended: Sequence[Leftover]) -> None:
        """Forget processes that have ended; the next turns of their sessions are told what `told` holds."""
        db.executemany(
            "UPDATE tool_call SET pid=NULL, pid_started=NULL WHERE pid=? AND pid_started=?",
            [(leftover.pid, leftover.started) for leftover in ended],
        )
        for one in ended:
            if one.told:
                edits.note_event(db, root_of(one.session_key), one.key, one.told, self._now(), one.origins)

    @query
    def cut_turns(self, db: sqlite3.Connection, worker: str) -> Sequence[CutTurn]:
        """Return the running turns that earlier workers had claimed, oldest first."""
        found = db.execute(
            "SELECT turn_id, channel FROM turn JOIN conversation ON conv_id = reply_conv"
            f" WHERE {HELD_TURN} AND state='running' AND {_LEASE_GONE} ORDER BY created_at",
            (worker,),
        ).fetchall()
        return [CutTurn(turn_id, channel) for turn_id, channel in found]

    @transaction
    def ready(self, db: sqlite3.Connection) -> None:
        """Make all delayed messages ready."""
        # to times long ago, whatever the clock says; those of the same moment are still taken together, and no others
        (first,) = db.execute(f"SELECT min(ready_at) FROM inbox WHERE {DELAYED}").fetchone()
        db.execute(f"UPDATE inbox SET ready_at=ready_at - ? + 1 WHERE {DELAYED}", (first,))

    @transaction
    def recover(self, db: sqlite3.Connection, turn_id: str, worker: str, give_up: Sequence[Planned]) -> bool:
        """Repair one of those turns and put it back into the queue; after a second crash end it instead.

        give_up: what the person is told when the turn is ended. Returns whether the turn goes on; False also if its
        lease holds. Beats are stopped, not repeated. The attempt counts as having run until its last sign.
        """
        now = self._now()
        found = db.execute(
            f"UPDATE turn SET crashes=crashes+1 WHERE {_LEASE_GONE} AND turn_id=? AND state='running'"
            " RETURNING transcript_id, step, crashes, kind, reply_conv, session_key",
            (worker, turn_id),
        ).fetchone()
        if found is None:
            return False
        transcript_id, step, crashes, kind, conv_id, session_key = found
        db.execute(f"UPDATE turn SET {rows.STOP_CLOCK} WHERE turn_id=?", (_last_sign(db, turn_id), turn_id))
        if kind == "beat":
            repair.close_run(db, turn_id, transcript_id, step, now)
            endings.end_turn(db, turn_id, Outcome.ABORTED, now, "restart")
            return False
        if crashes >= CRASHES:
            repair.close_run(db, turn_id, transcript_id, step, now)
            if not parent_of(session_key):  # of a sub-agent its parent is told
                rows.plan(db, PlanIn(conv_id), give_up, turn_id, now)
            endings.end_turn(db, turn_id, Outcome.FAILED, now, "crash", "the service ended twice during this turn")
            return False
        repair.requeue(db, turn_id, transcript_id, step, now, now)
        return True


def _last_sign(db: sqlite3.Connection, turn_id: str) -> int | None:
    """Return the time of the last event or delivery of a turn in milliseconds; it is not known to have run later."""
    (at,) = db.execute(
        "SELECT max(at) FROM (SELECT max(at) AS at FROM event WHERE event_id >= ?1 || '/' AND event_id < ?1 || '0'"
        " UNION ALL SELECT max(planned_at) FROM delivery WHERE turn_id=?1)",
        (turn_id,),
    ).fetchone()
    return at  # type: ignore[no-any-return]
