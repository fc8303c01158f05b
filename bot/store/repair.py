"""Closing what a run left open, so that its transcript is valid and says what may have been seen.

One rule for crash, broken stream, drain, stop, time-out and failure (durability.md part 4): text that was planned is
stored as the assistant's words, marked cut; a call that was running has an unknown outcome and is never run again.
"""

import sqlite3

from agent.cut import CUT_NOTE, INTERRUPTED, NOT_EXECUTED
from agent.message import Entry, Message, Text, ToolResult
from bot.store import rows
from bot.store.values import Leftover


def close_cut_answer(
    db: sqlite3.Connection, turn_id: str, transcript_id: str, step: int, *, go_on: bool
) -> tuple[Entry, ...]:
    """Store the planned text of an answer that has no entry of its own; step counts answers stored so far.

    go_on: the run continues, so the fixed note follows. Returns the lines written; none when nothing was planned. The
    step is counted, so that the next answer's blocks have names of their own.
    """
    said = "".join(
        row[0]
        for row in db.execute(
            "SELECT said FROM delivery WHERE turn_id=? AND step=? AND state <> 'expired' ORDER BY delivery_id",
            (turn_id, step + 1),
        )
    )
    count = db.execute("SELECT count(*) FROM delivery WHERE turn_id=? AND step=?", (turn_id, step + 1)).fetchone()[0]
    if count:
        db.execute("UPDATE turn SET step=step+1 WHERE turn_id=?", (turn_id,))
    if not said.strip():
        return ()
    words = Message("assistant", (Text(said),))
    cut = rows.append_entry(db, transcript_id, "assistant_cut", words, turn_id, step + 1)
    if not go_on:
        return (cut,)
    note = rows.append_entry(db, transcript_id, "note", Message("user", (Text(CUT_NOTE),)), turn_id, step + 1)
    return (cut, note)


def close_calls(db: sqlite3.Connection, turn_id: str, transcript_id: str, *, asked: bool) -> tuple[Entry, ...]:
    """Give every running call the result "outcome unknown"; with `asked`, those not begun "not executed".

    Returns the lines written.
    """
    states = ("running", "asked") if asked else ("running",)
    found = db.execute(
        f"SELECT call_id, name, step, state FROM tool_call WHERE turn_id=? AND state IN ({','.join('?' * len(states))})"
        " ORDER BY step, ordinal",
        (turn_id, *states),
    ).fetchall()
    lines = []
    for call_id, name, step, state in found:
        text = INTERRUPTED if state == "running" else NOT_EXECUTED
        result = Message("tool", (ToolResult(call_id, name, text, is_error=True),))
        lines.append(rows.append_entry(db, transcript_id, "tool_result", result, turn_id, step))
        db.execute("UPDATE tool_call SET state='cut' WHERE turn_id=? AND call_id=?", (turn_id, call_id))
    return tuple(lines)


def leftovers(db: sqlite3.Connection, turn_id: str) -> tuple[Leftover, ...]:
    """Processes of calls that are still marked as running."""
    found = db.execute(
        "SELECT pid, pid_started FROM tool_call WHERE turn_id=? AND state='running' AND pid IS NOT NULL", (turn_id,)
    ).fetchall()
    return tuple(Leftover(pid=pid, started=started) for pid, started in found)


def release_messages(db: sqlite3.Connection, turn_id: str) -> None:
    """Steering texts that the model has not seen become messages that wait."""
    db.execute("UPDATE inbox SET state='waiting', turn_id=NULL WHERE turn_id=? AND state='steering'", (turn_id,))


def close_run(db: sqlite3.Connection, turn_id: str, transcript_id: str, step: int) -> None:
    """Everything of the above for a run that ends for good."""
    close_cut_answer(db, turn_id, transcript_id, step, go_on=False)
    close_calls(db, turn_id, transcript_id, asked=True)
    release_messages(db, turn_id)
