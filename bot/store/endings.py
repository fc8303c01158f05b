"""Ends turns: sets their last state, removes what was shown of unfinished answers, and stores the event of the end.

Everything here runs inside a unit of the writer.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any

from agent.events import AgentEnd, Outcome, RunRef
from agent.message import Usage
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.turns import TurnState
from bot.store import codec, firings, rows
from channels.outgoing import Action, Planned
from channels.sources import SourceKind, sentence

# What a turn has used so far, for `persist_end`: the last model, its usage, and milliseconds of running time.
USED = "model, usage, ran"
# The last state of a turn, by the outcome of its run.
STATE_OF: dict[Outcome, TurnState] = {
    Outcome.COMPLETED: TurnState.DONE,
    Outcome.LIMIT: TurnState.DONE,
    Outcome.ABORTED: TurnState.STOPPED,
    Outcome.TIMEOUT: TurnState.FAILED,
    Outcome.FAILED: TurnState.FAILED,
}


def end_turn(
    db: sqlite3.Connection, turn_id: str, outcome: Outcome, now: int, kind: str | None = None, error: str | None = None
) -> AgentEnd:
    """Put a turn into its last state and its messages to done; store the event of that (once) and return it.

    kind, error: the kind of error that ended it, and its message.
    """
    session_key, epoch, *used, is_shown, is_fired = db.execute(
        f"UPDATE turn SET state=?, outcome=?, error_kind=?, error_message=?, ended_at=?, {rows.STOP_CLOCK}"
        f" WHERE turn_id=? RETURNING session_key, epoch, {USED},"
        f" EXISTS (SELECT 1 FROM delivery WHERE turn_id=turn.turn_id AND {rows.PREVIEW}),"
        " EXISTS (SELECT 1 FROM firing WHERE turn_id=turn.turn_id)",
        (STATE_OF[outcome].value, outcome.value, kind, error, now, now, turn_id),
    ).fetchone()
    db.execute("UPDATE inbox SET state='done' WHERE turn_id=? AND state='taken'", (turn_id,))
    take_acknowledgements_away(db, "inbox.turn_id=?", turn_id, now)
    if is_shown:
        drop_previews(db, turn_id, now)
    if is_fired:
        firings.ended(db, turn_id, outcome, now, kind, error)
    return persist_end(db, rows.run_ref(turn_id, session_key, epoch), used, outcome, now, kind, error)


def drop_previews(db: sqlite3.Connection, turn_id: str, now: int) -> None:
    """Remove what was shown of answers that have not become final and never will."""
    rows.expire(db, f"turn_id=? AND {rows.PREVIEW} AND state='planned'", (turn_id,), Cause.NOT_SAID, now)
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
        "SELECT source, delivery.conv_id, target FROM inbox JOIN delivery ON subject=event_key"
        " JOIN conversation ON conversation.conv_id=delivery.conv_id AND conversation.channel=inbox.channel"
        f" AND conversation.account=inbox.account WHERE {which} AND source_kind='{SourceKind.ACKNOWLEDGEMENT}'",
        (of,),
    ).fetchall()
    for source, conv_id, target in found:
        away = Planned(source=sentence(f"un{source}"), body="", nonce=0, action=Action.REACT, target=target)
        rows.plan(db, PlanIn(conv_id), [away], None, now)


def persist_end(
    db: sqlite3.Connection,
    run: RunRef,
    used: Sequence[Any],
    outcome: Outcome,
    now: int,
    kind: str | None = None,
    error: str | None = None,
) -> AgentEnd:
    """Store the event of a run's end, or of its parking, and return it. used: the columns USED of its turn."""
    model, usage, ran = used
    end = AgentEnd(
        run=run,
        at=now,
        outcome=outcome,
        model=model or "",
        usage=codec.USAGE.load(usage, Usage()),
        duration=ran / 1000,
        error_kind=kind,
        error_message=error,
    )
    rows.persist_events(db, (end,))
    return end
