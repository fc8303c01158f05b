"""How turns end, whoever ends them: their last state, what was shown of them on the way, the event of it.

Everything here runs inside a unit of the writer.
"""

import sqlite3

from agent.events import AgentEnd, Outcome
from agent.message import Usage
from bot.persistence.values import PlanIn, TurnState
from bot.store import codec, firings, rows
from channels.outgoing import Action, Planned

# Of turns that have ended.
STATE_OF: dict[Outcome, TurnState] = {
    Outcome.COMPLETED: TurnState.DONE,
    Outcome.LIMIT: TurnState.DONE,
    Outcome.ABORTED: TurnState.STOPPED,
    Outcome.TIMEOUT: TurnState.FAILED,
    Outcome.FAILED: TurnState.FAILED,
}


def end_turn(
    db: sqlite3.Connection,
    turn_id: str,
    outcome: Outcome,
    now: int,
    error_kind: str | None = None,
    error_message: str | None = None,
) -> AgentEnd:
    """Put a turn into its last state, its messages to done, and keep the event of it (once, whoever ends it)."""
    db.execute(
        f"UPDATE turn SET state=?, outcome=?, error_kind=?, error_message=?, ended_at=?, {rows.STOP_CLOCK}"
        " WHERE turn_id=?",
        (STATE_OF[outcome].value, outcome.value, error_kind, error_message, now, now, turn_id),
    )
    db.execute("UPDATE inbox SET state='done' WHERE turn_id=? AND state='taken'", (turn_id,))
    take_acknowledgements_away(db, "inbox.turn_id=?", turn_id, now)
    drop_previews(db, turn_id, now)
    firings.ended(db, turn_id, outcome, now, error_kind, error_message)
    return persist_end(db, turn_id, outcome, now, error_kind, error_message)


def drop_previews(db: sqlite3.Connection, turn_id: str, now: int) -> None:
    """Take away what was shown of answers that have not become final, and never will."""
    rows.expire(db, f"turn_id=? AND {rows.PREVIEW} AND state='planned'", (turn_id,), "not said", now)
    take_away(db, f"turn_id=? AND {rows.PREVIEW} AND state='sent'", turn_id, now)


def take_away(db: sqlite3.Connection, which: str, of: str | int, now: int) -> int:
    """Have previews deleted that stand on the platform; returns how many."""
    return db.execute(
        "UPDATE delivery SET action='delete', target=platform_id, state='planned', body='', settled_at=NULL,"
        f" not_before=0, planned_at=? WHERE {which} AND platform_id IS NOT NULL",
        (now, of),
    ).rowcount


def take_acknowledgements_away(db: sqlite3.Connection, which: str, of: str | int, now: int) -> None:
    """Nobody works on these messages any more: the reactions that say so go."""
    found = db.execute(
        "SELECT source, delivery.conv_id, target FROM inbox JOIN delivery"  # see bot/inbound/routing.py
        " ON source = 'ack:' || inbox.channel || ':' || inbox.account || ':' || event_key"
        f" WHERE {which}",
        (of,),
    ).fetchall()
    for source, conv_id, target in found:
        away = Planned(source=f"un{source}", body="", nonce=0, action=Action.REACT, target=target)
        rows.plan(db, PlanIn(conv_id), [away], None, now)


def persist_end(
    db: sqlite3.Connection,
    turn_id: str,
    outcome: Outcome,
    now: int,
    error_kind: str | None = None,
    error_message: str | None = None,
) -> AgentEnd:
    """Keep the event of a run's end, or of its parking, behind what has become of its turn."""
    epoch, session_key, model, usage, ran = db.execute(
        "SELECT epoch, session_key, model, usage, ran FROM turn WHERE turn_id=?", (turn_id,)
    ).fetchone()
    end = AgentEnd(
        run=rows.run_ref(turn_id, session_key, epoch),
        at=now,
        outcome=outcome,
        model=model or "",
        usage=codec.USAGE.load(usage, Usage()),
        duration=ran / 1000,
        error_kind=error_kind,
        error_message=error_message,
    )
    rows.persist_events(db, (end,))
    return end
