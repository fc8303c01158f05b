"""Closes what a run left open, so that its transcript is valid and holds what people may have seen.

One rule holds for crash, broken stream, drain, stop, time-out and failure (durability.md part 4): planned text is
stored as an answer that is marked cut; a running call gets an unknown outcome and is never run again.
"""

import sqlite3

from agent.context import CUT_NOTE, INTERRUPTED, NOT_EXECUTED
from agent.events import MessageEnd, RunRef, ToolExecutionEnd
from agent.journal import Cut
from agent.message import Mark, Message, Text, ToolResult, Usage
from bot.persistence.causes import Cause
from bot.persistence.children import SEND, SPAWN
from bot.store import approvals, child_ends, rows, tool_messages, usage
from channels.sources import answer


def close_cut_answer(
    db: sqlite3.Connection, turn_id: str, transcript_id: str, step: int, now: int, *, go_on: bool, heard: int | None = 0
) -> Cut:
    """Store the planned text of an answer that has no entry yet, and what it has used. step: the number of stored
    answers. heard: the estimated tokens of the answer that have come at least; None if the provider is known to have
    refused the call, which then has used nothing.

    go_on: the run continues, so the fixed note about the cut is stored as well. If nothing was planned, nothing is
    stored. Else the step of the turn is raised, so that the blocks of the next answer have sources of their own.
    """
    found = db.execute(  # what was left out because a tool had said it has been read by people
        f"SELECT iif({rows.STANDS} OR cause='{Cause.SAID_ALREADY}', said, '') FROM delivery WHERE turn_id=? AND step=?"
        " ORDER BY delivery_id",
        (turn_id, step + 1),
    ).fetchall()
    if found or heard is not None:
        usage.record_cut(db, turn_id, step, heard or 0, now)
    if not found:
        return Cut(step=step)
    said = "".join(words for (words,) in found)
    # a preview that shows more than the planned text is edited to show the next answer
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
    entries = [rows.append_entry(db, transcript_id, "assistant_cut", words, turn_id, step + 1)]
    if go_on:
        note = Message("user", (Text(CUT_NOTE),), mark=Mark.CUT)
        entries.append(rows.append_entry(db, transcript_id, "note", note, turn_id, step + 1))
    return Cut(step=step + 1, entries=tuple(entries))


def close_calls(db: sqlite3.Connection, turn_id: str, transcript_id: str, now: int, *, asked: bool) -> None:
    """Give each running call the result "outcome unknown"; with `asked`, each call not begun "not executed".

    The result of a call that sent a message says what became of the message instead.
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
            if name in (SPAWN, SEND):  # which the store knows
                done = child_ends.of_call(db, turn_id, call_id, name)
                text, is_error, mark = done or NOT_EXECUTED, not done, None
        result = Message("tool", (ToolResult(call_id, name, text, is_error=is_error, mark=mark),))
        rows.append_entry(db, transcript_id, "tool_result", result, turn_id, step)
        db.execute("UPDATE tool_call SET state='cut' WHERE turn_id=? AND call_id=?", (turn_id, call_id))
        if state == "running":
            ends.append(
                ToolExecutionEnd(run=run, at=now, step=step, call_id=call_id, name=name, state="cut", text=text)
            )
    rows.persist_events(db, ends)


def release_messages(db: sqlite3.Connection, turn_id: str) -> None:
    """Let the steering texts of a turn that no model has seen wait as messages of their own."""
    db.execute("UPDATE inbox SET state='waiting', turn_id=NULL WHERE turn_id=? AND state='steering'", (turn_id,))


def close_run(
    db: sqlite3.Connection, turn_id: str, transcript_id: str, step: int, now: int, *, heard: int | None = 0
) -> None:
    """Close what a run that has ended left open: its answer, its calls, its requests and its steering texts.

    heard: see `close_cut_answer`.
    """
    close_cut_answer(db, turn_id, transcript_id, step, now, go_on=False, heard=heard)
    close_calls(db, turn_id, transcript_id, now, asked=True)
    approvals.give_up(db, turn_id, now)
    release_messages(db, turn_id)


def requeue(db: sqlite3.Connection, turn_id: str, transcript_id: str, step: int, now: int, until: int) -> None:
    """Queue a turn for another attempt: its answer and its running calls are closed, calls not begun stay open.

    until: when the attempt stopped working, in milliseconds.
    """
    close_cut_answer(db, turn_id, transcript_id, step, now, go_on=True)
    close_calls(db, turn_id, transcript_id, now, asked=False)
    db.execute(f"UPDATE turn SET state='queued', {rows.STOP_CLOCK} WHERE turn_id=?", (until, turn_id))


def _run(db: sqlite3.Connection, turn_id: str) -> RunRef:
    session_key, epoch = db.execute("SELECT session_key, epoch FROM turn WHERE turn_id=?", (turn_id,)).fetchone()
    return rows.run_ref(turn_id, session_key, epoch)
