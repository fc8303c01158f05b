"""Closing what a run left open, so that its transcript is valid and says what may have been seen.

One rule for crash, broken stream, drain, stop, time-out and failure (durability.md part 4): text that was planned is
stored as the assistant's words, marked cut; a call that was running has an unknown outcome and is never run again.
"""

import sqlite3

from agent.context import CUT_NOTE, INTERRUPTED, NOT_EXECUTED
from agent.events import MessageEnd, RunRef, ToolExecutionEnd
from agent.journal import Cut
from agent.message import Mark, Message, Text, ToolResult, Usage
from bot.persistence.causes import Cause
from bot.store import approvals, rows, tool_messages
from channels.sources import answer


def close_cut_answer(
    db: sqlite3.Connection, turn_id: str, transcript_id: str, step: int, now: int, *, go_on: bool
) -> Cut:
    """Store the planned text of an answer that has no entry of its own; step counts answers stored so far.

    go_on: the run continues, so the fixed note follows. When nothing was planned, the answer never existed. The step is
    counted, so that the next answer's blocks have names of their own.
    """
    found = db.execute(  # people have read what was left out because a tool had said it
        "SELECT said FROM delivery WHERE turn_id=? AND step=?"
        f" AND ({rows.STANDS} OR cause='{Cause.SAID_ALREADY}') ORDER BY delivery_id",
        (turn_id, step + 1),
    ).fetchall()
    said = "".join(words for (words,) in found)
    count = db.execute("SELECT count(*) FROM delivery WHERE turn_id=? AND step=?", (turn_id, step + 1)).fetchone()[0]
    if not count:
        return Cut(step=step)
    # what a preview shows behind that is edited to what the next answer says
    db.execute(
        f"UPDATE delivery SET source=?, answer=? WHERE turn_id=? AND {rows.PREVIEW} AND answer=?",
        (answer(turn_id, step + 2, 0).key, step + 2, turn_id, step + 1),
    )
    db.execute("UPDATE turn SET step=step+1 WHERE turn_id=?", (turn_id,))
    run = _run(db, turn_id)
    end = MessageEnd(run=run, at=now, step=step + 1, text=said, calls=(), stop_reason="other", usage=Usage(), cut=True)
    rows.persist_events(db, [end])
    if not said.strip():
        return Cut(step=step + 1)
    words = Message("assistant", (Text(said),))
    cut = rows.append_entry(db, transcript_id, "assistant_cut", words, turn_id, step + 1)
    if not go_on:
        return Cut(step=step + 1, entries=(cut,))
    note = rows.append_entry(
        db, transcript_id, "note", Message("user", (Text(CUT_NOTE),), mark=Mark.CUT), turn_id, step + 1
    )
    return Cut(step=step + 1, entries=(cut, note))


def close_calls(db: sqlite3.Connection, turn_id: str, transcript_id: str, now: int, *, asked: bool) -> None:
    """Give every running call the result "outcome unknown"; with `asked`, those not begun "not executed".

    One that sent a message is told what became of it instead.
    """
    states = ("running", "asked", "waiting") if asked else ("running",)
    found = db.execute(
        f"SELECT call_id, name, step, state FROM tool_call WHERE turn_id=? AND state IN ({','.join('?' * len(states))})"
        " ORDER BY step, ordinal",
        (turn_id, *states),
    ).fetchall()
    run = _run(db, turn_id)
    ends = []
    for call_id, name, step, state in found:
        text, is_error, mark = NOT_EXECUTED, True, None
        if state == "running":
            mark = Mark.CUT
            text, is_error = tool_messages.of_call(db, turn_id, call_id) or (INTERRUPTED, True)
        result = Message("tool", (ToolResult(call_id, name, text, is_error=is_error, mark=mark),))
        rows.append_entry(db, transcript_id, "tool_result", result, turn_id, step)
        db.execute("UPDATE tool_call SET state='cut' WHERE turn_id=? AND call_id=?", (turn_id, call_id))
        if state == "running":
            ends.append(
                ToolExecutionEnd(run=run, at=now, step=step, call_id=call_id, name=name, state="cut", text=text)
            )
    rows.persist_events(db, ends)


def release_messages(db: sqlite3.Connection, turn_id: str) -> None:
    """Steering texts that the model has not seen become messages that wait."""
    db.execute("UPDATE inbox SET state='waiting', turn_id=NULL WHERE turn_id=? AND state='steering'", (turn_id,))


def close_run(db: sqlite3.Connection, turn_id: str, transcript_id: str, step: int, now: int) -> None:
    """Everything of the above for a run that ends for good."""
    close_cut_answer(db, turn_id, transcript_id, step, now, go_on=False)
    close_calls(db, turn_id, transcript_id, now, asked=True)
    approvals.give_up(db, turn_id, now)
    release_messages(db, turn_id)


def requeue(db: sqlite3.Connection, turn_id: str, transcript_id: str, step: int, now: int, until: int) -> None:
    """The same for a run that goes on in another attempt: what was not begun stays open, the turn is queued.

    until: when the attempt ceased to work.
    """
    close_cut_answer(db, turn_id, transcript_id, step, now, go_on=True)
    close_calls(db, turn_id, transcript_id, now, asked=False)
    db.execute(f"UPDATE turn SET state='queued', {rows.STOP_CLOCK} WHERE turn_id=?", (until, turn_id))


def _run(db: sqlite3.Connection, turn_id: str) -> RunRef:
    session_key, epoch = db.execute("SELECT session_key, epoch FROM turn WHERE turn_id=?", (turn_id,)).fetchone()
    return rows.run_ref(turn_id, session_key, epoch)
