"""Takes exchanges back and brings them back. An exchange is what people said to one turn, and all that the turn said.

The lines of an exchange that is taken back stay in the transcript and are hidden, so that no model is shown them; a
hidden line behind them makes contexts in memory be read anew. What the ledger holds of its turn is taken off the
platforms by further deliveries. A summary cannot be freed from the lines it stands for, so an exchange that is part of
one is not taken back.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.message import Message, Text, ToolCall
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.exchanges import Refusal, Shown, TakeOff, Undone
from bot.persistence.turns import CommandKept
from bot.store import child_ends, codec, rows
from bot.store.commands import NOT_ANEW, Begun, begin, finish
from bot.store.indexes import HELD_TURN, OPEN_TURN, UNNOTED, WAITING
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND
from bot.store.stops import SAID_AT, reaches, stop_session
from bot.store.writer import Subject, transaction
from channels.message import InboundMessage
from channels.outgoing import Action, Delivery, Planned

# Makes the answer to a command from what it took back or brought back. It has no effects.
Tell = Callable[[Undone], Sequence[Planned]]

# Condition for the turns of a JSON list.
_OF_THEM = "turn_id IN (SELECT value FROM json_each(?))"
# Condition for messages of people in a session (?) that wait for a turn.
_WAITS = f"session_key=? AND {WAITING} AND {FOR_A_RUN} AND NOT {IN_BACKGROUND}"
_TAKEN_BACK, _BROUGHT_BACK = "(What was said here was taken back.)", "(What had been taken back counts again.)"


class Exchanges(Subject):
    """Transactions about exchanges. In all of them `seq` is the place of the command in the inbox."""

    @transaction
    def undo(
        self,
        db: sqlite3.Connection,
        seq: int,
        session_key: str,
        count: int,
        take_off: TakeOff,
        tell: Tell,
        *,
        by_owner: bool,
    ) -> CommandKept:
        """Take the newest exchanges of a session back, so many that people caused, and stop what runs before.

        by_owner: exchanges of other conversations count, too.
        """
        transcript_id, turns = _newest(db, session_key, count)
        refused = _refusal(db, seq, session_key, transcript_id, turns, by_owner)
        begun = begin(db, seq, self._now())
        if begun is None:
            return NOT_ANEW
        if refused:
            return finish(db, begun, tell(Undone(refused=refused)))
        undone, off = _take_back(db, begun, session_key, transcript_id, turns, take_off)
        kept = finish(db, begun, tell(undone), undone.stopped)
        return replace(kept, deliveries=(*off, *kept.deliveries))

    @transaction
    def redo(self, db: sqlite3.Connection, seq: int, session_key: str, tell: Tell, *, by_owner: bool) -> CommandKept:
        """Bring back what was taken back last, unless something was said since. by_owner: see `undo`."""
        transcript_id, command = db.execute(
            "SELECT transcript_id, max(command) FROM session JOIN undone USING (transcript_id) WHERE session_key=?",
            (session_key,),
        ).fetchone()
        which = "transcript_id=? AND command=?"
        found = db.execute(f"SELECT turn_id FROM undone WHERE {which}", (transcript_id, command)).fetchall()
        turns = [turn_id for (turn_id,) in found]
        refused = _not_again(db, seq, session_key, transcript_id, turns, by_owner)
        begun = begin(db, seq, self._now())
        if begun is None:
            return NOT_ANEW
        if refused:
            return finish(db, begun, tell(Undone(refused=refused)))
        db.execute(f"DELETE FROM undone WHERE {which}", (transcript_id, command))
        child_ends.take_back(db, json.dumps(turns), again=True)
        _hide(db, transcript_id, turns, 0, _BROUGHT_BACK)
        return finish(db, begun, tell(Undone(asked=_asked(db, turns))))

    @transaction
    def ask_anew(
        self,
        db: sqlite3.Connection,
        seq: int,
        session_key: str,
        message_id: str,
        asker: tuple[str, str] | None,
        chosen: Sequence[Planned],
        take_off: TakeOff,
        tell: Tell,
    ) -> CommandKept:
        """Take the newest exchange back and let its messages wait for another turn, with the words of their edits.

        message_id: of a message that was edited. asker: channel and sender of whom it must be; None: of anybody.
        chosen: see `Commands`.
        """
        transcript_id, turns = _newest(db, session_key, 1)
        refused = _refusal(db, seq, session_key, transcript_id, turns, by_owner=True)
        refused = refused or _not_anew(db, session_key, turns[0], message_id, asker)
        pressed = [one.source.key for one in chosen]  # else nothing is shown as chosen that is refused
        first = not pressed or not db.execute("SELECT 1 FROM delivery WHERE source=?", pressed).fetchone()
        begun = begin(db, seq, self._now(), () if refused and first else chosen)
        if begun is None:
            return NOT_ANEW
        if refused:
            return finish(db, begun, tell(Undone(refused=refused)))
        undone, off = _take_back(db, begun, session_key, transcript_id, turns, take_off)
        for asked, conv_id, ident, payload in _messages(db, turns[0]):
            if (edited := _edit(db, conv_id, ident)) and (words := codec.read_inbound(payload, asked)):
                words = replace(words, text=edited.text, attachments=edited.attachments)
                db.execute("UPDATE inbox SET payload=? WHERE seq=?", (codec.INBOUND.dump(words), asked))
            changes = f"conv_id=? AND message_id=? AND kind IN ('edit','delete') AND {UNNOTED}"
            told = f"UPDATE inbox SET state='dropped', reason='{Cause.REPLACED}' WHERE {changes} RETURNING kind"
            is_gone = ("delete",) in db.execute(told, (conv_id, ident)).fetchall()
            state = "withdrawn" if is_gone else "waiting"
            db.execute("UPDATE inbox SET state=?, turn_id=NULL WHERE seq=?", (state, asked))
        kept = finish(db, begun, (), undone.stopped, resumed=(session_key, False))
        return replace(kept, deliveries=(*off, *kept.deliveries))


def may_ask_anew(db: sqlite3.Connection, session_key: str, message_id: str, asker: tuple[str, str]) -> str:
    """Return the turn that has answered a message which was edited since, if it can be answered anew; else nothing.

    asker: channel and sender of the message.
    """
    _, turns = _newest(db, session_key, 1)
    return turns[0] if turns and not _not_anew(db, session_key, turns[0], message_id, asker) else ""


def _newest(db: sqlite3.Connection, session_key: str, count: int) -> tuple[str, list[str]]:
    """Return the present transcript of a session, and its newest turns that people caused, the newest first."""
    transcript_id = db.execute("SELECT transcript_id FROM session WHERE session_key=?", (session_key,)).fetchone()
    found: dict[str, None] = {}
    lines = db.execute(
        "SELECT turn_id FROM entry JOIN turn USING (turn_id) WHERE entry.transcript_id=? AND entry.kind='user'"
        " AND hidden=0 AND turn.kind IN ('reply','api') ORDER BY seq DESC",
        transcript_id or ("",),
    )
    for (turn_id,) in lines:
        found[turn_id] = None
        if len(found) == count:
            break
    return (transcript_id[0] if transcript_id else ""), list(found)


def _refusal(
    db: sqlite3.Connection, seq: int, session_key: str, transcript_id: str, turns: Sequence[str], by_owner: bool
) -> Refusal:
    """Return why turns cannot be taken back by a command; empty if they can."""
    if not turns:
        return "nothing"
    later = (
        "SELECT 1 FROM inbox WHERE turn_id IN (SELECT turn_id FROM turn WHERE turn_id=?1 OR session_key=?2 AND"
        f" {HELD_TURN}) GROUP BY turn_id HAVING min(seq) > ?3 OR min({SAID_AT}) > ?4"
    )
    if db.execute(later, (turns[0], session_key, seq, reaches(db, seq))).fetchone():
        return "newer"
    if not by_owner and _are_elsewhere(db, seq, turns):
        return "others"
    covered = (
        "SELECT 1 FROM transcript JOIN entry AS shown ON shown.transcript_id=?1 AND shown.seq=summary"
        " WHERE transcript.transcript_id=?1 AND shown.covers > (SELECT min(seq) FROM entry"
        " WHERE transcript_id=?1 AND turn_id IN (SELECT value FROM json_each(?2)))"
    )
    return "summed up" if db.execute(covered, (transcript_id, json.dumps(turns))).fetchone() else ""


def _not_again(
    db: sqlite3.Connection, seq: int, session_key: str, transcript_id: str, turns: Sequence[str], by_owner: bool
) -> Refusal:
    """Return why turns that were taken back cannot be brought back by a command; empty if they can."""
    if not turns:
        return "nothing"
    if not by_owner and _are_elsewhere(db, seq, turns):
        return "others"
    behind = (
        "SELECT 1 FROM entry WHERE transcript_id=?1 AND hidden=0 AND seq > (SELECT min(seq) FROM entry"
        " WHERE transcript_id=?1 AND turn_id IN (SELECT value FROM json_each(?2)))"
    )
    said = db.execute(behind, (transcript_id, json.dumps(turns))).fetchone()
    return "newer" if said or db.execute(f"SELECT 1 FROM inbox WHERE {_WAITS}", (session_key,)).fetchone() else ""


def _not_anew(
    db: sqlite3.Connection, session_key: str, turn_id: str, message_id: str, asker: tuple[str, str] | None
) -> Refusal:
    """Return why the messages of a turn cannot be answered anew after an edit of one; empty if they can."""
    messages = _messages(db, turn_id)
    is_open = db.execute(f"SELECT 1 FROM turn WHERE turn_id=? AND {OPEN_TURN}", (turn_id,)).fetchone()
    if is_open or message_id not in [ident for _, _, ident, _ in messages]:
        return "newer"
    if db.execute(f"SELECT 1 FROM inbox WHERE {_WAITS}", (session_key,)).fetchone():
        return "newer"
    wrote = db.execute("SELECT DISTINCT channel, sender FROM inbox WHERE turn_id=?", (turn_id,)).fetchall()
    if asker is not None and wrote != [asker]:
        return "others"
    return "" if any(_edit(db, conv_id, ident) for _, conv_id, ident, _ in messages) else "unedited"


def _are_elsewhere(db: sqlite3.Connection, seq: int, turns: Sequence[str]) -> bool:
    """Whether any of the turns answers in another conversation than the one of a command."""
    elsewhere = f"SELECT 1 FROM turn WHERE {_OF_THEM} AND reply_conv IS NOT (SELECT conv_id FROM inbox WHERE seq=?)"
    return db.execute(elsewhere, (json.dumps(turns), seq)).fetchone() is not None


def _messages(db: sqlite3.Connection, turn_id: str) -> list[tuple[int, int, str, str]]:
    """Return the messages that a turn has answered: place in the inbox, conversation, platform's id and payload."""
    return db.execute(
        f"SELECT seq, conv_id, message_id, payload FROM inbox WHERE turn_id=? AND state='done' AND {FOR_A_RUN}"
        " ORDER BY seq",
        (turn_id,),
    ).fetchall()


def _edit(db: sqlite3.Connection, conv_id: int, message_id: str) -> InboundMessage | None:
    """Return the newest edit of a message of which no turn was told; None if there is none."""
    found = db.execute(
        f"SELECT payload, seq FROM inbox WHERE conv_id=? AND message_id=? AND kind='edit' AND {UNNOTED}"
        " ORDER BY seq DESC LIMIT 1",
        (conv_id, message_id),
    ).fetchone()
    return codec.read_inbound(*found) if found else None


def _asked(db: sqlite3.Connection, turns: Sequence[str]) -> tuple[str, ...]:
    """Return the words of people that turns have answered, oldest first."""
    found = db.execute(
        f"SELECT payload, seq FROM inbox WHERE {_OF_THEM} AND {FOR_A_RUN} ORDER BY seq", (json.dumps(turns),)
    ).fetchall()
    read = (codec.read_inbound(payload, seq) for payload, seq in found)
    return tuple(message.text for message in read if message is not None)


def _take_back(
    db: sqlite3.Connection,
    begun: Begun,
    session_key: str,
    transcript_id: str,
    turns: Sequence[str],
    take_off: TakeOff,
) -> tuple[Undone, list[Delivery]]:
    """Stop what runs in a session, hide the lines of turns, and plan what takes their messages off the platforms."""
    ids, now = json.dumps(turns), begun.now
    calls = db.execute(
        f"SELECT call_id, name, args FROM tool_call JOIN turn USING (turn_id) WHERE {_OF_THEM}"
        " AND tool_call.state IN ('running','done','failed','cut') ORDER BY created_at, tool_call.step, ordinal",
        (ids,),
    ).fetchall()
    asked, stopped = _asked(db, turns), stop_session(db, session_key, begun.seq, now, Cause.UNDONE)
    db.execute(  # sessions that were to be told of what is now taken back
        f"UPDATE inbox SET reason='{Cause.NOTED}' WHERE {UNNOTED} AND event_key IN"
        f" (SELECT source FROM delivery WHERE {_OF_THEM} AND {rows.OF_TOOL})",
        (ids,),
    )
    child_ends.take_back(db, ids)
    line = _hide(db, transcript_id, turns, 1, _TAKEN_BACK)
    db.executemany("INSERT INTO undone VALUES (?,?,?,?)", [(transcript_id, one, begun.seq, line) for one in turns])
    (granted,) = db.execute(f"SELECT count(*) FROM approval WHERE {_OF_THEM} AND state='always'", (ids,)).fetchone()
    undone = Undone(asked=asked, stopped=stopped, calls=tuple(ToolCall(*one) for one in calls), granted=granted)
    return _take_off(db, ids, undone, take_off, now)


def _hide(db: sqlite3.Connection, transcript_id: str, turns: Sequence[str], hidden: int, note: str) -> int:
    """Hide the lines of turns, or show them again (0), and return the newest line, which says so and is hidden."""
    which = f"transcript_id=? AND {_OF_THEM}"
    db.execute(f"UPDATE entry SET hidden={hidden} WHERE {which}", (transcript_id, json.dumps(turns)))
    line = rows.append_entry(db, transcript_id, "note", Message("user", (Text(note),)), None, 0).seq
    db.execute("UPDATE entry SET hidden=1 WHERE transcript_id=? AND seq=?", (transcript_id, line))
    return line


def _take_off(
    db: sqlite3.Connection, ids: str, undone: Undone, take_off: TakeOff, now: int
) -> tuple[Undone, list[Delivery]]:
    """Give up what is not sent yet of turns, and plan what takes the rest off the platforms. ids: a JSON list."""
    gone = f"{_OF_THEM} AND state IN ('planned','unknown') AND NOT (action='delete' AND NOT {rows.OF_TOOL})"
    rows.expire(db, gone, (ids,), Cause.UNDONE, now)
    found = db.execute(
        "SELECT delivery_id, conv_id, said, coalesce(settled_at, ?), coalesce(platform_id, '')<>'', state='sending',"
        " attempts > iif(action='preview', 2, 1)"
        f" FROM delivery JOIN conversation USING (conv_id) WHERE {_OF_THEM} AND {rows.MESSAGE}"
        " AND (state IN ('sending','sent','uncertain') OR platform_id IS NOT NULL) AND kind NOT IN ('api','console')"
        " ORDER BY delivery_id",
        (now, ids),
    ).fetchall()
    off, deleted, struck, lost = list[Delivery](), 0, 0, 0
    for delivery_id, conv_id, words, at, known, under_way, again in found:
        lost += again or not known  # of what was sent again there may be another one
        if known or under_way:
            blocks = take_off(Shown(delivery_id, rows.place_of(db, conv_id), words, at))
            off += rows.plan(db, PlanIn(conv_id), blocks, None, now)
            is_deleted = blocks[0].action is Action.DELETE
            deleted, struck = deleted + (known and is_deleted), struck + (known and not is_deleted)
    return replace(undone, deleted=deleted, struck=struck, lost=lost), off
