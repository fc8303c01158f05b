"""What a crash left, brought into a state from which work goes on (durability.md part 4); before lanes and intake.

One transaction per turn. Twice the same turn in a crash is the end of it: a plain notice, never a third try.
"""

import sqlite3
from collections.abc import Callable, Sequence

from agent.events import Outcome
from bot.persistence.values import CutTurn, Leftover, PlanIn
from bot.store import repair, rows
from bot.store.indexes import HELD_TURN, WITH_PROCESS
from bot.store.subject import Subject, query, transaction
from channels.outgoing import Planned

CRASHES = 2


class Recovery(Subject):
    """Transactions of the start."""

    @query
    def leftovers(self, db: sqlite3.Connection) -> Sequence[Leftover]:
        """Processes that nobody has seen end: their turns may be running, or stopped before the process was."""
        found = db.execute(f"SELECT pid, pid_started FROM tool_call WHERE {WITH_PROCESS}").fetchall()
        return [Leftover(pid=pid, started=started) for pid, started in found]

    @transaction
    def forget(self, db: sqlite3.Connection, ended: Sequence[Leftover]) -> None:
        """These processes are known to have ended."""
        db.executemany(
            "UPDATE tool_call SET pid=NULL, pid_started=NULL WHERE pid=? AND pid_started=?",
            [(leftover.pid, leftover.started) for leftover in ended],
        )

    @query
    def cut_turns(self, db: sqlite3.Connection) -> Sequence[CutTurn]:
        """Turns found running, oldest first."""
        found = db.execute(
            "SELECT turn_id, channel FROM turn JOIN conversation ON conv_id = reply_conv"
            f" WHERE {HELD_TURN} AND state='running' ORDER BY created_at"
        ).fetchall()
        return [CutTurn(turn_id, channel) for turn_id, channel in found]

    @transaction
    def recover(self, db: sqlite3.Connection, turn_id: str, give_up: Callable[[str], Sequence[Planned]]) -> bool:
        """Repair a turn found running and put it back into the queue; after a second crash end it instead.

        give_up: makes the notice to the person. Returns whether the turn goes on. Beats are stopped, not repeated.
        The attempt counts as having run until its last sign.
        """
        now = self._now()
        transcript_id, step, crashes, kind, conv_id = db.execute(
            "UPDATE turn SET crashes=crashes+1 WHERE turn_id=? AND state='running'"
            " RETURNING transcript_id, step, crashes, kind, reply_conv",
            (turn_id,),
        ).fetchone()
        db.execute(f"UPDATE turn SET {rows.STOP_CLOCK} WHERE turn_id=?", (_last_sign(db, turn_id), turn_id))
        if kind == "beat":
            repair.close_run(db, turn_id, transcript_id, step, now)
            rows.end_turn(db, turn_id, Outcome.ABORTED, now, "restart")
            return False
        if crashes >= CRASHES:
            repair.close_run(db, turn_id, transcript_id, step, now)
            rows.plan(db, PlanIn(conv_id), give_up(turn_id), turn_id, now)
            rows.end_turn(db, turn_id, Outcome.FAILED, now, "crash", "the service ended twice during this turn")
            return False
        repair.requeue(db, turn_id, transcript_id, step, now, now)
        return True


def _last_sign(db: sqlite3.Connection, turn_id: str) -> int | None:
    """When a turn last left a trace, in milliseconds: an event or a block. Behind that nobody knows whether it ran."""
    (at,) = db.execute(
        "SELECT max(at) FROM (SELECT max(at) AS at FROM event WHERE event_id >= ?1 || '/' AND event_id < ?1 || '0'"
        " UNION ALL SELECT max(planned_at) FROM delivery WHERE turn_id=?1)",
        (turn_id,),
    ).fetchone()
    return at  # type: ignore[no-any-return]
