"""A beat or job gives its session to a person who writes, and goes on afterwards, inside units of the writer.

Its lines are hidden while it waits, so that the person's turn reads no half of it, and stand behind what was written
meanwhile once it goes on. A call that runs then is finished apart, and its result is kept with those lines.
"""

import sqlite3

from agent.events import RunRef
from agent.message import Provenance
from bot.store import approvals, codec, endings, repair, rows
from bot.store.indexes import OPEN_TURN, WAITING
from bot.store.rows import CALL_RUNS, FOR_A_RUN, IN_BACKGROUND

# Condition for turns that no person asked for just now, see `BY_THEMSELVES`.
BY_ITSELF = "kind IN ('beat','job')"
# Whether something of the background waits in the session of a turn.
BEHIND = (
    f"(EXISTS (SELECT 1 FROM turn AS other WHERE other.session_key=turn.session_key AND other.{OPEN_TURN}"
    f" AND other.{BY_ITSELF} AND other.epoch > 0 AND other.turn_id<>turn.turn_id)"
    f" OR EXISTS (SELECT 1 FROM inbox WHERE session_key=turn.session_key AND {WAITING} AND {IN_BACKGROUND}))"
)
# Who wrote what a session (?1) has to run, in their order as JSON; ?2: of the background.
ASKERS = (
    f"SELECT json_group_array(asker) FROM (SELECT {rows.ASKER} AS asker FROM turn AS had JOIN inbox USING (turn_id)"
    f" WHERE had.session_key=?1 AND had.{OPEN_TURN} AND inbox.state IN ('taken','steering')"
    f" AND (inbox.{IN_BACKGROUND})=?2 UNION ALL SELECT {rows.ASKER} FROM inbox WHERE session_key=?1 AND {WAITING}"
    f" AND {FOR_A_RUN} AND ({IN_BACKGROUND})=?2)"
)
_LAST = "(SELECT max(seq) FROM entry WHERE transcript_id=?1)"


def person_waits(db: sqlite3.Connection, session_key: str, ready: int | None = None) -> bool:
    """Return whether a message of a person waits in a session. ready: by this time it must be ready; None: or not."""
    found = db.execute(
        f"SELECT 1 FROM inbox WHERE session_key=?1 AND {WAITING} AND {FOR_A_RUN} AND NOT {IN_BACKGROUND}"
        " AND (?2 IS NULL OR ready_at <= ?2) LIMIT 1",
        (session_key, ready),
    )
    return found.fetchone() is not None


def give_way(db: sqlite3.Connection, turn_id: str, now: int) -> str:
    """Queue a beat or job that runs, or that waits for a decision or to go on, and hide its lines.

    The next turn of the session is told what it has said so far. Returns the id of the turn if it has a run that is to
    end at once; empty if not, or if a call of it runs.
    """
    session_key, transcript_id, step, state, runs = db.execute(
        f"SELECT session_key, transcript_id, step, state, {CALL_RUNS} FROM turn WHERE turn_id=?", (turn_id,)
    ).fetchone()
    if state == "running":
        repair.close_cut_answer(db, turn_id, transcript_id, step, now, go_on=True)
    db.execute(f"UPDATE turn SET state='queued', {rows.STOP_CLOCK} WHERE turn_id=?", (now, turn_id))
    endings.tell(db, turn_id, session_key, now, each="source", bears=_bears(db, transcript_id))
    hide(db, turn_id, transcript_id)
    return turn_id if state == "running" and not runs else ""


def _bears(db: sqlite3.Connection, transcript_id: str) -> tuple[Provenance, ...]:
    """Return the origins of what is written last in a transcript: a label is looked for no further than an answer."""
    found = db.execute(
        "SELECT body FROM entry WHERE transcript_id=?1 AND seq >="
        " (SELECT coalesce(max(seq), 0) FROM entry WHERE transcript_id=?1 AND kind='assistant')",
        (transcript_id,),
    )
    return codec.bears(body for (body,) in found)


def hide(db: sqlite3.Connection, turn_id: str, transcript_id: str) -> None:
    """Hide the lines of a turn. Those before the beginning of the context are not sent anyway."""
    db.execute(
        "UPDATE entry SET hidden=1 WHERE transcript_id=?1 AND turn_id=?2"
        " AND seq >= (SELECT context_start FROM transcript WHERE transcript_id=?1)",
        (transcript_id, turn_id),
    )


def show_again(db: sqlite3.Connection, turn_id: str, transcript_id: str) -> None:
    """Show the hidden lines of a turn behind all others of its transcript."""
    first, last = db.execute(
        f"SELECT min(seq), {_LAST} FROM entry WHERE transcript_id=?1 AND turn_id=?2 AND hidden=1",
        (transcript_id, turn_id),
    ).fetchone()
    if first is not None:
        db.execute(
            "UPDATE entry SET hidden=0, seq=seq + ? WHERE transcript_id=? AND turn_id=? AND hidden=1",
            (last - first + 1, transcript_id, turn_id),
        )


def goes_on(db: sqlite3.Connection, turn_id: str, worker: str, now: int) -> bool:
    """Return whether a queued beat or job can go on; if so, show its lines again.

    It waits for every message of a person, for an open decision, and for a call that this worker still runs. A call of
    a worker that has died is closed.
    """
    session_key, transcript_id, holder, asks, runs = db.execute(
        "SELECT session_key, transcript_id, worker,"
        f" EXISTS (SELECT 1 FROM approval WHERE approval_id=parked_on AND approval.state='open'), {CALL_RUNS}"
        " FROM turn WHERE turn_id=?",
        (turn_id,),
    ).fetchone()
    if person_waits(db, session_key) or (asks and approvals.still_waits(db, turn_id, now)):
        return False
    if runs and holder == worker:
        return False
    repair.close_calls(db, turn_id, transcript_id, now, asked=False)
    show_again(db, turn_id, transcript_id)
    return True


def give_up_calls(db: sqlite3.Connection, run: RunRef, now: int) -> None:
    """Close the calls of a run whose turn has given way, because it has ended without their results."""
    found = db.execute(
        f"SELECT transcript_id FROM turn WHERE turn_id=? AND epoch=? AND state='queued' AND {CALL_RUNS}",
        (run.turn_id, run.attempt),
    ).fetchone()
    if found is not None:
        repair.close_calls(db, run.turn_id, found[0], now, asked=False)
        hide(db, run.turn_id, found[0])
