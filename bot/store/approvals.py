"""Turns that wait for a person: parked on an approval, and queued again by what becomes of it.

A decision is one transaction, of which exactly one wins; it is used up by the one that starts its call. Whether a turn
still waits is read from its approval alone, so that nothing is left to repair after a crash.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence

from agent.events import AgentEnd, Outcome, RunRef
from agent.tools.base import Ask, Decision, Verdict
from bot.persistence.values import PlanIn
from bot.store import endings, rows
from bot.store.rows import IN_BACKGROUND
from bot.store.writer import Subject, transaction
from channels.outgoing import Delivery, Planned


class Approvals(Subject):
    """Transactions of parking."""

    @transaction
    def park(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        call_id: str,
        approval_id: str,
        ask: Ask,
        *,
        where: PlanIn,
        blocks: Sequence[Planned],
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
        now = self._now()
        rows.check_epoch(db, run)
        db.execute("UPDATE tool_call SET state='waiting' WHERE turn_id=? AND call_id=?", (run.turn_id, call_id))
        db.execute(
            "INSERT INTO approval (approval_id, turn_id, call_id, digest, approvers, asked_at, expires_at, state,"
            " reason) VALUES (?,?,?,?,?,?,?,'open',?)",
            (
                *(approval_id, run.turn_id, call_id, ask.digest, json.dumps(ask.approvers), now),
                *(now + int(ask.seconds * 1000), ask.otherwise),
            ),
        )
        deliveries = rows.plan(db, where, blocks, run.turn_id, now)
        db.execute(
            f"UPDATE turn SET state='parked', outcome=?, parked_on=?, {rows.STOP_CLOCK} WHERE turn_id=?",
            (Outcome.PARKED.value, approval_id, now, run.turn_id),
        )
        return deliveries, endings.persist_end(db, run.turn_id, Outcome.PARKED, now)

    @transaction
    def decide(
        self, db: sqlite3.Connection, approval_id: str, state: Verdict, by: str, reason: str = ""
    ) -> tuple[str, bool] | None:
        now = self._now()
        found = db.execute(
            "SELECT turn_id FROM approval WHERE approval_id=? AND state='open' AND (expires_at > ? OR ?='expired')",
            (approval_id, now, state),
        ).fetchone()
        return _settle(db, found[0], approval_id, state, by, reason, now) if found else None


def still_waits(db: sqlite3.Connection, turn_id: str, now: int) -> bool:
    """Whether a parked turn has to wait on; when its approval has had its time, or is gone, it is queued instead."""
    parked_on, expires_at = db.execute(
        "SELECT parked_on, expires_at FROM turn"
        " LEFT JOIN approval ON approval_id=parked_on AND approval.state='open' WHERE turn.turn_id=?",
        (turn_id,),
    ).fetchone()
    if expires_at is not None and expires_at > now:
        return True
    _settle(db, turn_id, parked_on, "expired", None, "", now)
    return False


# True of parked turns for which `still_waits` is; the first parameter is now.
WAITS = "EXISTS (SELECT 1 FROM approval WHERE approval_id=parked_on AND approval.state='open' AND expires_at > ?1)"


def decisions(db: sqlite3.Connection, turn_id: str) -> Mapping[str, Decision]:
    """What was decided about the call that a turn was parked on last, by its id, if it has not begun."""
    found = db.execute(
        "SELECT approval.call_id, approval.state, digest, reason FROM turn JOIN approval ON approval_id=parked_on"
        " JOIN tool_call ON tool_call.turn_id=turn.turn_id AND tool_call.call_id=approval.call_id"
        " WHERE turn.turn_id=? AND tool_call.state='waiting' AND approval.state<>'open'",
        (turn_id,),
    ).fetchall()
    return {call_id: Decision(state, digest, reason or "") for call_id, state, digest, reason in found}


def give_up(db: sqlite3.Connection, turn_id: str, now: int) -> None:
    """Nobody has to decide any more: the turn ends."""
    db.execute("UPDATE approval SET state='expired', decided_at=? WHERE turn_id=? AND state='open'", (now, turn_id))


def _settle(
    db: sqlite3.Connection, turn_id: str, approval_id: str, state: Verdict, by: str | None, reason: str, now: int
) -> tuple[str, bool]:
    """An approval that expires keeps the words that were made for that."""
    db.execute(
        "UPDATE approval SET state=?1, decided_by=?2, decided_at=?3,"
        " reason=CASE WHEN ?1='expired' AND ?4='' THEN reason ELSE ?4 END WHERE approval_id=?5 AND state='open'",
        (state, by, now, reason, approval_id),
    )
    session_key, background = db.execute(
        f"UPDATE turn SET state='queued' WHERE turn_id=? RETURNING session_key, {IN_BACKGROUND}", (turn_id,)
    ).fetchone()
    return session_key, bool(background)
