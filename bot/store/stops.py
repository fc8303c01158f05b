"""Transactions that stop turns: /stop, /new and /reset of people, and the end of a single turn."""

import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import replace

from agent.events import Outcome
from agent.message import Message, Text
from bot.persistence.causes import Cause
from bot.persistence.children import ENDED
from bot.persistence.deliveries import PlanIn
from bot.persistence.settings import SessionSettings
from bot.persistence.turns import CommandKept, Ending, Reply, Stopped
from bot.store import child_ends, codec, endings, repair, rows, yielding
from bot.store.commands import NOT_ANEW, become_message, begin, finish
from bot.store.history import IS_BEHIND
from bot.store.indexes import OPEN_TURN, UNNOTED, WAITING
from bot.store.rows import FOR_A_RUN
from bot.store.writer import Subject, transaction
from channels.outgoing import Delivery, Planned
from channels.session_key import CHILD

# The most milliseconds between the sending of a command and its acceptance that clocks and queues explain. A command
# that took longer was found in a history.
_LATE = 5 * 60_000
# When a message was said, in milliseconds.
SAID_AT = "coalesce(nullif(sent_at, 0), accepted_at)"
# The last entry of a stopped turn in the transcript.
STOP_NOTE = "(The person stopped this turn.)"

# Condition for turns in a session of their own (isolated beats and jobs) that speak in the session ?1.
_OF_ITS_OWN = "EXISTS (SELECT 1 FROM firing WHERE firing.turn_id=turn.turn_id AND firing.session_key=?1)"


class Stops(Subject):
    """Transactions that stop turns."""

    @transaction
    def stop(
        self,
        db: sqlite3.Connection,
        seq: int,
        session_key: str,
        reply: Reply,
        chosen: Sequence[Planned] = (),
        ending: Ending = Ending(),  # noqa: B008
    ) -> CommandKept:
        """Carry out a command that ends the run of a session and drops the messages that waited before the command.

        reply: makes the answer of what was stopped; it may be called several times and has no effects. seq, chosen: see
        `Commands`.
        """
        begun = begin(db, seq, now := self._now(), chosen)
        if begun is None:
            return NOT_ANEW
        each = [stop_session(db, session_key, seq, now, Cause.RESET if ending.renew else Cause.STOP, ending.only)]
        told: list[Delivery] = []
        for other in _busy(db, ending.below) if ending.below else ():
            stopped = stop_session(db, other, seq, now, Cause.STOP, ending.only)
            (conv_id,) = db.execute("SELECT last_conv FROM session WHERE session_key=?", (other,)).fetchone()
            if conv_id and (stopped.running or stopped.dropped):  # those who wait there are told, too
                say = [replace(one, source=one.source.also(other), respond="") for one in reply(stopped)]
                told.extend(rows.plan(db, PlanIn(conv_id), say, None, now))
            each.append(stopped)
        if ending.model:
            rows.transcript_of(db, session_key, None, now, self._new_id())  # there may be no such session yet
            change = "UPDATE session SET settings=json_set(settings, '$.model', ?) WHERE session_key=?"
            db.execute(change, (ending.model, session_key))
        left, kept_settings = "", None
        if ending.renew:
            before = "SELECT transcript_id, settings FROM session WHERE session_key=?"
            left, kept_settings = db.execute(before, (session_key,)).fetchone() or ("", None)
            rows.new_transcript(db, session_key, ending.renew, now)
        stopped = Stopped(
            running=any(one.running for one in each),
            dropped=sum(one.dropped for one in each),
            turns=tuple(turn for one in each for turn in one.turns),
            sessions=tuple(session for one in each for session in one.sessions),
            done=tuple(call for one in each for call in one.done),
            left=left,
            settings=codec.SETTINGS.load(kept_settings, SessionSettings()),
        )
        if ending.becomes is not None:
            said = reply(stopped) if stopped.running or stopped.dropped else ()
            kept = become_message(db, begun, ending.becomes, blocks=said, stopped=stopped)
        else:
            kept = finish(db, begun, reply(stopped), stopped)
        return replace(kept, deliveries=(*kept.deliveries, *told))

    @transaction
    def abort(self, db: sqlite3.Connection, turn_id: str) -> tuple[str, ...]:
        """End a turn that is queued or running; returns what `stop_turn` does, nothing if it had ended already."""
        found = db.execute(f"SELECT 1 FROM turn WHERE turn_id=? AND {OPEN_TURN}", (turn_id,)).fetchone()
        return stop_turn(db, turn_id, self._now(), Cause.ABORT) if found else ()


def stop_session(
    db: sqlite3.Connection, session_key: str, before: int, now: int, reason: Cause, only: str = ""
) -> Stopped:
    """Stop the turns of a session that began with a message in front of the command `before`, and drop what waited
    in front of it; then the same in the sessions of its sub-agents.

    Beats and jobs in a session of their own that speak in this one are stopped, too. A command that is found in a
    history hours later stops nothing that was said after it. Reminders that wait are kept. only: see `Ending`.
    """
    stopped = _stop_one(db, session_key, before, now, reason, only)
    for other in _busy(db, f"{session_key}{CHILD}"):
        below = _stop_one(db, other, before, now, reason, only)
        stopped = replace(
            stopped,
            running=stopped.running or below.running,
            turns=stopped.turns + below.turns,
            sessions=stopped.sessions + below.sessions,
        )
    return stopped


def _stop_one(db: sqlite3.Connection, session_key: str, before: int, now: int, reason: Cause, only: str) -> Stopped:
    until = reaches(db, before)
    waiting = [
        found
        for state in (WAITING, IS_BEHIND)
        for found in db.execute(
            f"UPDATE inbox SET state='dropped', reason=? WHERE session_key=? AND {state}"
            f" AND {FOR_A_RUN} AND kind NOT IN ('wake','job') AND seq < ? AND {SAID_AT} <= ? AND (?='' OR sender=?)"
            " RETURNING turn_id, seq, kind, event_key",
            (reason, session_key, before, until, only, only),
        ).fetchall()
    ]
    db.execute(  # what was dropped for the cap is not told in short any more
        f"UPDATE inbox SET reason=? WHERE session_key=? AND {UNNOTED} AND kind='message' AND seq < ?"
        " AND (?='' OR sender=?)",
        (reason, session_key, before, only, only),
    )
    for _, seq, _, event_key in waiting:
        endings.take_acknowledgements_away(db, "seq=?", seq, now)
        if event_key.startswith(ENDED):
            child_ends.tell_stopped(db, event_key.removeprefix(ENDED), now, reason, dropped=True)
    begun = db.execute(
        "SELECT turn_id, (SELECT count(*) FROM inbox WHERE inbox.turn_id = turn.turn_id AND inbox.state='steering')"
        f" FROM turn WHERE (session_key=?1 OR {_OF_ITS_OWN}) AND {OPEN_TURN} AND epoch > 0"
        " AND EXISTS (SELECT 1 FROM inbox WHERE inbox.turn_id = turn.turn_id"
        f" AND seq < ?2 AND {SAID_AT} <= ?3)"
        " AND (?4='' OR NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.turn_id = turn.turn_id AND sender<>?4))",
        (session_key, before, until, only),
    ).fetchall()
    made = [turn_id for turn_id, *_ in waiting if turn_id is not None]  # at acceptance, for HTTP and sub-agents
    turns = (*(turn_id for turn_id, _ in begun), *made)
    finished = "SELECT name, args FROM tool_call WHERE turn_id=? AND state='done' ORDER BY step, ordinal"
    done = [call for turn_id in turns for call in db.execute(finished, (turn_id,)).fetchall()]
    ended = tuple(one for turn_id in turns for one in stop_turn(db, turn_id, now, reason))
    dropped = sum(kind != "child" for _, _, kind, _ in waiting) + sum(steering for _, steering in begun)
    sessions, running = (session_key,) if turns else (), bool(begun or (made and CHILD in session_key))
    return Stopped(running=running, dropped=dropped, turns=ended, sessions=sessions, done=tuple(done))


def reaches(db: sqlite3.Connection, seq: int) -> int:
    """Return the time up to which a command acts on what was said: later than all, unless a history had it."""
    said_at, accepted_at = db.execute("SELECT sent_at, accepted_at FROM inbox WHERE seq=?", (seq,)).fetchone()
    return said_at if said_at and accepted_at - said_at > _LATE else sys.maxsize


def _busy(db: sqlite3.Connection, below: str) -> list[str]:
    """Return the keys that begin with `below` of the sessions in which something runs or waits."""
    begins = "session_key >= ?1 AND session_key < ?2"
    found = db.execute(
        f"SELECT session_key FROM turn WHERE {OPEN_TURN} AND {begins}"
        f" UNION SELECT session_key FROM inbox WHERE {WAITING} AND {begins}",
        (below, f"{below}\U0010ffff"),
    )
    return [session_key for (session_key,) in found]


def stop_turn(db: sqlite3.Connection, turn_id: str, now: int, reason: Cause) -> tuple[str, ...]:
    """End a turn as stopped. Deliveries whose sending has not begun are given up; what was said is kept.

    The sub-agents that it has started end with it. Returns the ids of all turns that have ended: none if it had before,
    as one of these.
    """
    found = db.execute(
        f"SELECT transcript_id, step, epoch, {yielding.BY_ITSELF} FROM turn WHERE turn_id=? AND {OPEN_TURN}", (turn_id,)
    ).fetchone()
    if found is None:
        return ()
    transcript_id, step, epoch, by_itself = found
    begun = "action='preview' AND target IS NOT NULL"  # the beginning stands there, and gets its end
    rows.expire(db, f"turn_id=? AND state IN ('planned','unknown') AND NOT ({begun})", (turn_id,), reason, now)
    db.execute(
        "UPDATE inbox SET state='dropped', reason=? WHERE turn_id=? AND state IN ('waiting','steering')",
        (reason, turn_id),
    )
    if epoch:
        if by_itself:  # it may have given way
            yielding.show_again(db, turn_id, transcript_id)
        repair.close_run(db, turn_id, transcript_id, step, now)
        rows.append_entry(db, transcript_id, "note", Message("user", (Text(STOP_NOTE),)), turn_id, step)
    endings.end_turn(db, turn_id, Outcome.ABORTED, now)
    child_ends.tell_stopped(db, turn_id, now, reason)
    below = child_ends.open_turns_of(db, turn_id)
    return (turn_id, *(one for child in below for one in stop_turn(db, child, now, reason)))
