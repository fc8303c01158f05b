"""Ends turns: sets their last state, removes previews of unfinished answers, and persists the event of the end.

The end of a due run also hides a beat that said nothing, or schedules its job again. Each function runs inside a unit
of the writer.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Literal

from agent.events import AgentEnd, Outcome, RunRef
from agent.message import Provenance, Usage
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.schedules import HEARTBEAT
from bot.persistence.turns import TurnState
from bot.store import child_ends, codec, edits, rows
from bot.store.gone import LISTED
from bot.store.indexes import UNNOTED
from channels.outgoing import Action, Planned
from channels.sources import SourceKind, sentence
from heartbeat.schedule import At

# The columns of a turn that `persist_end` takes: the last model, the usage, the running time in milliseconds, and what
# its calls cost in US dollars.
USED = "model, usage, ran, (SELECT sum(money) FROM usage WHERE usage.turn_id=turn.turn_id)"
# The scope and key in the table `kv` of when the first meeting took place, in milliseconds since the epoch.
MET = ("prompt", "met")
# The last state of a turn by the outcome of its run.
STATE_OF: dict[Outcome, TurnState] = {
    Outcome.COMPLETED: TurnState.DONE,
    Outcome.LIMIT: TurnState.DONE,
    Outcome.ABORTED: TurnState.STOPPED,
    Outcome.TIMEOUT: TurnState.FAILED,
    Outcome.FAILED: TurnState.FAILED,
}
# The minutes until a failed job may run again, by the number of failures in a row.
BACKOFF = (0.5, 1, 5, 15, 60)
# How often a failed job that is due once is tried again.
TRIES = 3
# Condition for the deliveries of a run, without the notice that there was nothing to say.
_SAID = f"turn_id=? AND {rows.STANDS} AND source_kind<>'{SourceKind.QUIET}'"


def end_turn(
    db: sqlite3.Connection,
    turn_id: str,
    outcome: Outcome,
    now: int,
    kind: str | None = None,
    error: str | None = None,
    *,
    silent: bool = False,
) -> AgentEnd:
    """Put a turn into its last state and its messages to `done`; persist the event of the end and return it.

    kind, error: the kind of the error that ended the turn, and its message. silent: its last answer says nothing.
    """
    session_key, epoch, *used, is_shown, is_fired, is_child, meets = db.execute(
        f"UPDATE turn SET state=?, outcome=?, error_kind=?, error_message=?, ended_at=?, silent=?, {LISTED},"
        f" {rows.STOP_CLOCK}"
        f" WHERE turn_id=? RETURNING session_key, epoch, {USED},"
        f" EXISTS (SELECT 1 FROM delivery WHERE turn_id=turn.turn_id AND {rows.PREVIEW}),"
        " EXISTS (SELECT 1 FROM firing WHERE turn_id=turn.turn_id),"
        " EXISTS (SELECT 1 FROM child WHERE session_key=turn.session_key),"
        " kind IN ('reply','api') AND (SELECT first_meeting FROM transcript WHERE transcript_id=turn.transcript_id)",
        (STATE_OF[outcome].value, outcome.value, kind, error, now, silent, now, turn_id),
    ).fetchone()
    db.execute("UPDATE inbox SET state='done' WHERE turn_id=? AND state='taken'", (turn_id,))
    take_acknowledgements_away(db, "inbox.turn_id=?", turn_id, now)
    if is_shown:
        drop_previews(db, turn_id, now)
    if meets and outcome is Outcome.COMPLETED:
        rows.set_value(db, *MET, str(now))
    if is_fired:
        _end_due_run(db, turn_id, outcome, now, kind, error)
    if is_child:
        child_ends.tell_end(db, turn_id, outcome, kind, now)
    return persist_end(db, rows.run_ref(turn_id, session_key, epoch), used, outcome, now, kind, error)


def drop_previews(db: sqlite3.Connection, turn_id: str, now: int) -> None:
    """Remove the previews of a turn whose answers will not become final."""
    rows.expire(db, f"turn_id=? AND {rows.PREVIEW} AND state='planned'", (turn_id,), Cause.NOT_SAID, now)
    take_away(db, f"turn_id=? AND {rows.PREVIEW} AND state='sent'", turn_id, now)


def take_away(db: sqlite3.Connection, which: str, of: str | int, now: int) -> int:
    """Plan the deletion of previews that are on the platform; return how many. which: a condition about `of`."""
    return db.execute(
        "UPDATE delivery SET action='delete', target=platform_id, state='planned', body='', settled_at=NULL,"
        f" not_before=0, planned_at=? WHERE {which} AND platform_id IS NOT NULL",
        (now, of),
    ).rowcount


def take_acknowledgements_away(db: sqlite3.Connection, which: str, of: str | int, now: int) -> None:
    """Plan the removal of the reactions that show that messages are worked on. which: a condition about `of`."""
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
    """Persist the event that a run has ended or parked, and return it. used: the columns USED of the turn."""
    model, usage, ran, money = used
    end = AgentEnd(
        run=run,
        at=now,
        outcome=outcome,
        model=model or "",
        usage=codec.USAGE.load(usage, Usage()),
        duration=ran / 1000,
        money=money,
        error_kind=kind,
        error_message=error,
    )
    rows.persist_events(db, (end,))
    return end


def _end_due_run(
    db: sqlite3.Connection, turn_id: str, outcome: Outcome, now: int, kind: str | None, message: str | None
) -> None:
    """Record the end of the turn of a due run. kind, message: the kind of the error that ended it, and its message."""
    job_id, due_at, told, tasks, session_key, transcript_id = db.execute(
        "SELECT job_id, due_at, firing.session_key, tasks, turn.session_key, turn.transcript_id FROM firing"
        " JOIN turn USING (turn_id) WHERE turn_id=?",
        (turn_id,),
    ).fetchone()
    (said,) = db.execute(f"SELECT count(*) FROM delivery WHERE {_SAID}", (turn_id,)).fetchone()
    failed = outcome in (Outcome.FAILED, Outcome.TIMEOUT)
    became = "failed" if failed else "stopped" if outcome is Outcome.ABORTED else "said" if said else "quiet"
    db.execute(
        "UPDATE firing SET outcome=?, reason=coalesce(nullif(?, ''), reason) WHERE job_id=? AND due_at=?",
        (became, kind or message or "", job_id, due_at),
    )
    if said and told not in ("", session_key):
        tell(db, turn_id, told, now)
    if not said:  # kept, but not sent to a model again
        db.execute("UPDATE entry SET hidden=1 WHERE transcript_id=? AND turn_id=?", (transcript_id, turn_id))
    if job_id == HEARTBEAT:
        if not said and outcome not in (Outcome.COMPLETED, Outcome.LIMIT):  # the next turn is told of its events
            given_back = f"UPDATE inbox SET {UNNOTED}, turn_id=NULL WHERE turn_id=? AND reason='{Cause.NOTED}'"
            db.execute(given_back, (turn_id,))
        if outcome is Outcome.COMPLETED:
            for task in json.loads(tasks):
                rows.set_value(db, HEARTBEAT, f"task:{task}", str(due_at))
    elif failed:
        _put_off(db, job_id, now)
    else:  # a job that is due once has been done
        db.execute("UPDATE job SET failures=0, retry_at=0 WHERE job_id=?", (job_id,))
        done = "job_id=? AND next_at IS NULL AND json_extract(schedule, '$.type')='at'"
        db.execute(f"DELETE FROM job WHERE {done}", (job_id,))


def tell(
    db: sqlite3.Connection,
    turn_id: str,
    session_key: str,
    now: int,
    each: Literal["conv_id", "source"] = "conv_id",
    bears: tuple[Provenance, ...] | None = None,
) -> None:
    """Let the next turn of a session be told what another turn has said in its conversation.

    each: what is told at once. bears: the origins of what was said; None: those of the newest answer.
    """
    found = db.execute(
        f"SELECT min(source), conv_id, group_concat(said, '') FROM (SELECT * FROM delivery WHERE {_SAID} AND said<>''"
        f" ORDER BY delivery_id) GROUP BY {each} ORDER BY min(delivery_id)",
        (turn_id,),
    ).fetchall()
    if bears is None:
        bears = edits.said_from(db, turn_id) if found else ()
    for source, conv_id, words in found:
        edits.note_written(db, rows.place_of(db, conv_id), conv_id, session_key, source, words, now, bears)


def _put_off(db: sqlite3.Connection, job_id: str, now: int) -> None:
    """Count a failed run and delay the job. A job that is due once is tried again, at most TRIES times."""
    found = db.execute(
        "UPDATE job SET failures=failures+1 WHERE job_id=? RETURNING failures, schedule, next_at", (job_id,)
    ).fetchone()
    if found is None:
        return
    failures, schedule, next_at = found
    again = now + int(BACKOFF[min(failures, len(BACKOFF)) - 1] * 60_000)
    once = isinstance(codec.SCHEDULE.load(schedule, None), At) and next_at is None and failures <= TRIES
    db.execute(
        "UPDATE job SET retry_at=?, next_at=coalesce(next_at, ?) WHERE job_id=?",
        (again, again if once else None, job_id),
    )
