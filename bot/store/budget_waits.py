"""Transactions about turns that are parked because they have reached a budget, and what owners have allowed besides.

Which turns wait is read from the turns alone, so that a crash leaves nothing to repair.
"""

import sqlite3
from collections.abc import Sequence

from agent.events import AgentEnd, Notice, Outcome, RunRef
from bot.persistence.deliveries import OwnerNotice, PlanIn
from bot.persistence.usage import BudgetWait, Waiting
from bot.store import endings, rows
from bot.store.indexes import HELD_TURN
from bot.store.writer import Subject, query, transaction
from channels.outgoing import Delivery, Planned

# Condition for turns that are parked until their budget lets them go on.
_OVER = f"{HELD_TURN} AND state='parked' AND over IS NOT NULL"
# Queues turns that are parked; the conditions follow.
_QUEUE = f"UPDATE turn SET state='queued', over=NULL WHERE {_OVER}"


class BudgetWaits(Subject):
    """Transactions about turns that wait for a budget."""

    @transaction
    def park(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        wait: BudgetWait,
        where: PlanIn,
        blocks: Sequence[Planned],
        notice: OwnerNotice | None,
        told: Notice,
        limits: str,
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
        """End a run before its next model call, and park its turn with all that it has done.

        blocks: what people are told. notice: for an owner who does not read that. limits: all budgets, in any form.
        Returns what is to be delivered and the end of the run. Raises StaleRun.
        """
        now = self._now()
        rows.check_epoch(db, run)
        rows.set_value(db, "budget", "limits", limits)
        deliveries = rows.plan(db, where, blocks, run.turn_id, now)
        if notice is not None:
            rows.tell_owner(db, notice, now, besides=where.conv_id)
        used = db.execute(
            "UPDATE turn SET state='parked', outcome=?, over=?, over_of=?, over_until=?, over_model=?,"
            f" {rows.STOP_CLOCK} WHERE turn_id=? RETURNING {endings.USED}",
            (Outcome.PARKED.value, wait.scope, wait.of, wait.until, wait.cheaper or None, now, run.turn_id),
        ).fetchone()
        rows.persist_events(db, (told,))
        return deliveries, endings.persist_end(db, run, used, Outcome.PARKED, now)

    @query
    def waiting(self, db: sqlite3.Connection) -> Sequence[Waiting]:
        """Return the turns that wait for a budget, oldest first."""
        found = db.execute(
            "SELECT turn_id, session_key, over, over_of, over_until, coalesce(over_model, '')"
            f" FROM turn WHERE {_OVER} ORDER BY created_at, turn_id"
        ).fetchall()
        return [Waiting(turn_id, session_key, BudgetWait(*wait)) for turn_id, session_key, *wait in found]

    @transaction
    def resume(self, db: sqlite3.Connection, until: int) -> Sequence[str]:
        """Queue the turns whose budget is enough again at a moment, in milliseconds; returns their sessions."""
        return _sessions(db.execute(f"{_QUEUE} AND over_until <= ? RETURNING session_key", (until,)))

    @transaction
    def begin(self, db: sqlite3.Connection, limits: str) -> None:
        """Queue all turns that wait if the budgets are others than at the last `park`. limits: as there."""
        if not db.execute("SELECT 1 FROM kv WHERE scope='budget' AND key='limits' AND value=?", (limits,)).fetchone():
            db.execute(_QUEUE)

    @transaction
    def allow_more(self, db: sqlite3.Connection, seq: int, waiting: Waiting, since: int) -> Sequence[str]:
        """Allow the whole limit once more if a turn still waits for it, and queue all turns that do.

        seq: the place in the inbox of the command. since: when the day began. Returns the sessions of the turns.
        """
        wait = waiting.wait
        since = 0 if wait.scope == "turn" else since
        allowed = db.execute(
            f"INSERT INTO budget_raise SELECT ?, over, over_of, ? FROM turn WHERE {_OVER} AND turn_id=?",
            (seq, since, waiting.turn_id),
        ).rowcount
        if not allowed:
            return ()
        same = f"{_QUEUE} AND over=? AND over_of=? RETURNING session_key"
        return _sessions(db.execute(same, (wait.scope, wait.of)))

    @transaction
    def choose(self, db: sqlite3.Connection, waiting: Waiting, model: str) -> Sequence[str]:
        """Have a model answer in the session of a turn that waits, and queue the turn; returns its session, or none."""
        found = _sessions(db.execute(f"{_QUEUE} AND turn_id=? RETURNING session_key", (waiting.turn_id,)))
        become = "UPDATE session SET settings=json_set(settings, '$.model', ?) WHERE session_key=?"
        db.executemany(become, [(model, session_key) for session_key in found])
        return found


def _sessions(found: sqlite3.Cursor) -> Sequence[str]:
    return [session_key for (session_key,) in found.fetchall()]
