"""Transactions that stop turns: /stop, /new and /reset of people, and the end of a single turn."""

import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import replace

from agent.events import Outcome
from agent.message import Message, Text
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.turns import CommandKept, Reply, Stopped
from bot.store import endings, repair, rows
from bot.store.commands import NOT_ANEW, begin, finish
from bot.store.history import IS_BEHIND
from bot.store.indexes import OPEN_TURN, WAITING
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND
from bot.store.writer import Subject, transaction
from channels.outgoing import Delivery, Planned

# The most milliseconds between the sending of a command and its acceptance that clocks and queues explain. A command
# that took longer was found in a history.
_LATE = 5 * 60_000
_SAID_AT = "coalesce(nullif(sent_at, 0), accepted_at)"
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
        renew: str = "",
        below: str = "",
    ) -> CommandKept:
        """Carry out a command that ends the run of a session and drops the messages that waited before the command.

        reply: makes the answer of what was stopped; it may be called several times and has no effects. renew: the id of
        a new, empty transcript with which the session goes on; empty: with the present one. below: the beginning of
        session keys in which the same is done, and said there; empty: none. seq, chosen: see `Commands`.
        """
        begun = begin(db, seq, now := self._now(), chosen)
        if begun is None:
            return NOT_ANEW
        each = [_stop(db, session_key, seq, now, Cause.RESET if renew else Cause.STOP)]
        told: list[Delivery] = []
        for other in _busy(db, below) if below else ():
            stopped = _stop(db, other, seq, now, Cause.STOP)
            (conv_id,) = db.execute("SELECT last_conv FROM session WHERE session_key=?", (other,)).fetchone()
            if conv_id and (stopped.running or stopped.dropped):  # those who wait there are told, too
                say = [replace(one, source=one.source.also(other), respond="") for one in reply(stopped)]
                told.extend(rows.plan(db, PlanIn(conv_id), say, None, now))
            each.append(stopped)
        if renew:
            rows.new_transcript(db, session_key, renew, now)
        stopped = Stopped(
            running=any(one.running for one in each),
            dropped=sum(one.dropped for one in each),
            turns=tuple(turn for one in each for turn in one.turns),
            sessions=tuple(session for one in each for session in one.sessions),
        )
        kept = finish(db, begun, reply(stopped), stopped)
        return replace(kept, deliveries=(*kept.deliveries, *told))

    @transaction
    def abort(self, db: sqlite3.Connection, turn_id: str) -> bool:
        """End a turn that is queued or running; returns False if it has ended already or is not known."""
        found = db.execute(f"SELECT 1 FROM turn WHERE turn_id=? AND {OPEN_TURN}", (turn_id,)).fetchone()
        if found:
            stop_turn(db, turn_id, self._now(), Cause.ABORT)
        return found is not None


def _stop(db: sqlite3.Connection, session_key: str, before: int, now: int, reason: Cause) -> Stopped:
    """Stop the turns of a session that began with a message in front of the command `before`, and drop what waited
    in front of it.

    Beats and jobs in a session of their own that speak in this one are stopped, too. A command that is found in a
    history hours later stops nothing that was said after it. Reminders that wait are kept.
    """
    said_at, accepted_at = db.execute("SELECT sent_at, accepted_at FROM inbox WHERE seq=?", (before,)).fetchone()
    until = said_at if said_at and accepted_at - said_at > _LATE else sys.maxsize
    waiting = [
        found
        for state in (WAITING, IS_BEHIND)
        for found in db.execute(
            f"UPDATE inbox SET state='dropped', reason=? WHERE session_key=? AND {state}"
            f" AND {FOR_A_RUN} AND NOT {IN_BACKGROUND} AND seq < ? AND {_SAID_AT} <= ? RETURNING turn_id, seq",
            (reason, session_key, before, until),
        ).fetchall()
    ]
    for _, seq in waiting:
        endings.take_acknowledgements_away(db, "seq=?", seq, now)
    begun = db.execute(
        "SELECT turn_id, (SELECT count(*) FROM inbox WHERE inbox.turn_id = turn.turn_id AND inbox.state='steering')"
        f" FROM turn WHERE (session_key=?1 OR {_OF_ITS_OWN}) AND {OPEN_TURN} AND epoch > 0"
        " AND EXISTS (SELECT 1 FROM inbox WHERE inbox.turn_id = turn.turn_id"
        f" AND seq < ?2 AND {_SAID_AT} <= ?3)",
        (session_key, before, until),
    ).fetchall()
    made = [turn_id for turn_id, _ in waiting if turn_id is not None]  # at acceptance, for HTTP
    turns = (*(turn_id for turn_id, _ in begun), *made)
    for turn_id in turns:
        stop_turn(db, turn_id, now, reason)
    dropped = len(waiting) + sum(steering for _, steering in begun)
    return Stopped(running=bool(begun), dropped=dropped, turns=turns, sessions=(session_key,) if turns else ())


def _busy(db: sqlite3.Connection, below: str) -> list[str]:
    """Return the keys that begin with `below` of the sessions in which something runs or waits."""
    begins = "session_key >= ?1 AND session_key < ?2"
    found = db.execute(
        f"SELECT session_key FROM turn WHERE {OPEN_TURN} AND {begins}"
        f" UNION SELECT session_key FROM inbox WHERE {WAITING} AND {begins}",
        (below, f"{below}\U0010ffff"),
    )
    return [session_key for (session_key,) in found]


def stop_turn(db: sqlite3.Connection, turn_id: str, now: int, reason: Cause) -> None:
    """End a turn as stopped. Deliveries whose sending has not begun are given up; what was said is kept."""
    transcript_id, step, epoch = db.execute(
        "SELECT transcript_id, step, epoch FROM turn WHERE turn_id=?", (turn_id,)
    ).fetchone()
    begun = "action='preview' AND target IS NOT NULL"  # the beginning stands there, and gets its end
    rows.expire(db, f"turn_id=? AND state IN ('planned','unknown') AND NOT ({begun})", (turn_id,), reason, now)
    db.execute(
        "UPDATE inbox SET state='dropped', reason=? WHERE turn_id=? AND state IN ('waiting','steering')",
        (reason, turn_id),
    )
    if epoch:
        repair.close_run(db, turn_id, transcript_id, step, now)
        rows.append_entry(db, transcript_id, "note", Message("user", (Text(STOP_NOTE),)), turn_id, step)
    endings.end_turn(db, turn_id, Outcome.ABORTED, now)
