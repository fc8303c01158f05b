"""The end of sub-agents: told to the session that has started them in the transaction that ends their turn.

A task is a message of the session of the sub-agent, and what becomes of it is a message of the session that has started
it (event key `s:<turn>`), so both cause a turn exactly once, as the messages of people do. Each function runs inside a
unit of the writer.
"""

import sqlite3
from dataclasses import replace

from agent.events import Outcome
from agent.message import Provenance
from bot.compose import named
from bot.persistence.causes import Cause
from bot.persistence.children import ENDED, SPAWN, ended_head, sent_key, started
from bot.persistence.schedules import TOLD
from bot.store import codec, edits, rows
from bot.store.gone import give_back
from bot.store.indexes import OPEN_TURN, UNNOTED
from channels.message import InboundKind, InboundMessage, Origin


def tell_end(db: sqlite3.Connection, turn_id: str, outcome: Outcome, kind: str | None, now: int) -> None:
    """Tell the session that has started a sub-agent of the end of a turn of it. kind: of the error that ended it.

    One that was stopped wakes nobody, see `tell_stopped`.
    """
    if outcome is Outcome.ABORTED:
        return
    parent, label, conv_id = db.execute(
        "SELECT parent, label, reply_conv FROM turn JOIN child USING (session_key) WHERE turn_id=?", (turn_id,)
    ).fetchone()
    text, origins = _said(db, turn_id)
    asked = db.execute("SELECT payload, seq FROM inbox WHERE turn_id=? ORDER BY seq LIMIT 1", (turn_id,)).fetchone()
    task = codec.read_inbound(*asked) if asked else None
    place = rows.place_of(db, conv_id)
    message = InboundMessage(
        origin=replace(task.origin, message_id="") if task else Origin(place=place),
        event_key=f"{ENDED}{turn_id}",
        kind=InboundKind.CHILD,
        text=text,
        extra_context=ended_head(named(label), outcome, kind, says=bool(text)),
        sent_at=now,
        origins=codec.ORIGINS.dump(origins) if origins else "",
    )
    made = db.execute(
        "INSERT INTO inbox (channel, account, event_key, conv_id, session_key, kind, sender, sent_at, accepted_at,"
        " payload, state, ready_at) VALUES (?,?,?,?,?,'child',?,?,?,?,'waiting',0) ON CONFLICT DO NOTHING",
        (
            *(place.channel, place.account, message.event_key, conv_id, parent, message.origin.sender, now, now),
            codec.INBOUND.dump(message),
        ),
    )
    if made.rowcount != 1:
        give_back(db, "inbox")


def tell_stopped(db: sqlite3.Connection, turn_id: str, now: int, reason: Cause, *, dropped: bool = False) -> None:
    """Let the next turn of the session that has started a sub-agent be told that somebody has stopped it.

    dropped: it had ended by itself, and its last text was dropped before a turn read it.
    """
    found = db.execute(
        "SELECT parent, label, session_key FROM turn JOIN child USING (session_key) WHERE turn_id=?", (turn_id,)
    ).fetchone()
    if found is None or reason not in (Cause.STOP, Cause.ABORT, Cause.INTERRUPT, Cause.UNDONE):
        return  # what is told would stand in a transcript that knows nothing of it
    was = "has ended, and what it said was dropped; sessions_history has it" if dropped else "was stopped"
    words = f"The sub-agent {named(found[1])} {was}. It says nothing any more."
    edits.note_event(db, found[0], f"{ENDED}{found[2]}/{turn_id}", words, now, _said(db, turn_id)[1])


def take_back(db: sqlite3.Connection, turns: str, *, again: bool = False) -> None:
    """Tell nothing more of the end of sub-agents that turns have started which are taken back. turns: a JSON list.

    again: the turns count again, so it is told after all.
    """
    before, after = (f"reason='{Cause.UNDONE}'", UNNOTED) if again else (UNNOTED, f"reason='{Cause.UNDONE}'")
    db.execute(
        f"UPDATE inbox SET {after} WHERE {before} AND seq IN (SELECT seq FROM child CROSS JOIN inbox"
        f" ON channel=? AND account=? AND event_key > '{TOLD}{ENDED}' || child.session_key || '/'"
        f" AND event_key < '{TOLD}{ENDED}' || child.session_key || '0'"
        " WHERE by_turn IN (SELECT value FROM json_each(?)))",
        (edits.NOWHERE.channel, edits.NOWHERE.account, turns),
    )


def of_call(db: sqlite3.Connection, turn_id: str, call_id: str, name: str) -> str | None:
    """Return the result of a call that was cut, if it has started a sub-agent or written to a session; None: if not.

    name: of the tool.
    """
    if name == SPAWN:
        find = "SELECT label, session_key FROM child WHERE by_turn=? AND call_id=?"
        found = db.execute(find, (turn_id, call_id)).fetchone()
        return started(named(found[0]), found[1]) if found else None
    sent = "SELECT 1 FROM conversation CROSS JOIN inbox USING (channel, account) WHERE event_key=? LIMIT 1"
    return "Sent." if db.execute(sent, (sent_key(turn_id, call_id),)).fetchone() else None


def open_turns_of(db: sqlite3.Connection, turn_id: str) -> list[str]:
    """Return the open turns of the sub-agents that a turn has started."""
    found = db.execute(
        f"SELECT turn_id FROM child JOIN turn USING (session_key) WHERE by_turn=? AND {OPEN_TURN}", (turn_id,)
    )
    return [one for (one,) in found.fetchall()]


def _said(db: sqlite3.Connection, turn_id: str) -> tuple[str, tuple[Provenance, ...]]:
    """Return the last text of a turn, with what the limit of output has cut from it, and the origins of all lines."""
    lines = db.execute(
        "SELECT entry.kind, body FROM turn JOIN entry USING (transcript_id) WHERE turn.turn_id=?1 AND entry.turn_id=?1"
        " ORDER BY seq DESC",
        (turn_id,),
    ).fetchall()
    text = ""
    for kind, body in lines:
        if text and kind not in ("assistant_cut", "note"):
            break
        answer = codec.MESSAGE.load(body, None) if kind in ("assistant", "assistant_cut") else None
        if answer is not None and (text or answer.text.strip()):
            text = answer.text + text
    return text, codec.bears(body for _, body in lines)
