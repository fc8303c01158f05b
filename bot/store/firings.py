"""Records how the turn of a beat or a job has ended: a beat that said nothing is hidden, a job is scheduled on.

Everything here runs inside a unit of the writer.
"""

import json
import sqlite3

from agent.events import Outcome
from bot.persistence.causes import Cause
from bot.persistence.schedules import HEARTBEAT
from bot.store import codec, edits, rows
from bot.store.indexes import UNNOTED
from channels.sources import SourceKind
from heartbeat.schedule import At

# Minutes until a job that has failed may run again, by how often in a row.
BACKOFF = (0.5, 1, 5, 15, 60)
# How often one that is due once is tried again.
TRIES = 3
# True of what a run has said: not that there was nothing to say.
_SAID = f"turn_id=? AND {rows.STANDS} AND source_kind<>'{SourceKind.QUIET}'"


def ended(
    db: sqlite3.Connection, turn_id: str, outcome: Outcome, now: int, kind: str | None, message: str | None
) -> None:
    """Record the end of a turn that a firing has started. kind, message: of its error."""
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
        _tell(db, turn_id, told, now)
    if not said:  # kept, and shown to no model again
        db.execute("UPDATE entry SET hidden=1 WHERE transcript_id=? AND turn_id=?", (transcript_id, turn_id))
    if job_id == HEARTBEAT:
        if not said and outcome not in (Outcome.COMPLETED, Outcome.LIMIT):  # its events are for the next turn
            given_back = f"UPDATE inbox SET {UNNOTED}, turn_id=NULL WHERE turn_id=? AND reason='{Cause.NOTED}'"
            db.execute(given_back, (turn_id,))
        if outcome is Outcome.COMPLETED:
            for task in json.loads(tasks):
                rows.set_value(db, HEARTBEAT, f"task:{task}", str(due_at))
    elif failed:
        _put_off(db, job_id, now)
    else:
        _go_on(db, job_id)


def _tell(db: sqlite3.Connection, turn_id: str, session_key: str, now: int) -> None:
    """The session in whose conversation something was said is told of it with its next turn."""
    found = db.execute(
        f"SELECT min(source), conv_id, group_concat(said, '') FROM (SELECT * FROM delivery WHERE {_SAID} AND said<>''"
        " ORDER BY delivery_id) GROUP BY conv_id",
        (turn_id,),
    ).fetchall()
    for source, conv_id, words in found:
        edits.note_written(db, rows.place_of(db, conv_id), conv_id, session_key, source, words, now)


def _put_off(db: sqlite3.Connection, job_id: str, now: int) -> None:
    """A run has failed: the job rests for a while; one that is due once is tried again a few times."""
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


def _go_on(db: sqlite3.Connection, job_id: str) -> None:
    """A run was no failure: one that is due once has been done."""
    db.execute("UPDATE job SET failures=0, retry_at=0 WHERE job_id=?", (job_id,))
    db.execute(
        "DELETE FROM job WHERE job_id=? AND next_at IS NULL AND json_extract(schedule, '$.type')='at'", (job_id,)
    )
