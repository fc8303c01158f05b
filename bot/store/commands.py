"""Commands of people (TC): effect, reply and the command's own end in one transaction, so that none happens twice."""

import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.events import Outcome
from agent.message import Message, Text
from agent.tools.base import Verdict
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.settings import Change
from bot.persistence.turns import CommandKept, Reply, Stopped
from bot.store import approvals, codec, endings, repair, rows
from bot.store.history import IS_BEHIND
from bot.store.indexes import OPEN_TURN, WAITING
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND
from bot.store.writer import Subject, transaction
from channels.message import InboundMessage
from channels.outgoing import Delivery, Planned

# Milliseconds between a command and its acceptance that no clock and no queue explains.
_LATE = 5 * 60_000
_SAID_AT = "coalesce(nullif(sent_at, 0), accepted_at)"
STOP_NOTE = "(The person stopped this turn.)"

# True of runs in a session of their own that tell ?1 what they say.
_OF_ITS_OWN = "EXISTS (SELECT 1 FROM firing WHERE firing.turn_id=turn.turn_id AND firing.session_key=?1)"


class Commands(Subject):
    """Commands of people (TC): effect, reply and the end of the command at once.

    seq: of the command's own row in the inbox. chosen: the edit of the message whose button the command is; when it is
    planned already, somebody was first, and nothing else is done.
    """

    @transaction
    def answer(
        self, db: sqlite3.Connection, seq: int, blocks: Sequence[Planned], chosen: Sequence[Planned] = ()
    ) -> CommandKept:
        """A command that only says something."""
        return self._carry_out(db, seq, lambda now: Stopped(), lambda _: blocks, chosen)

    @transaction
    def set(
        self, db: sqlite3.Connection, seq: int, session_key: str, change: Change, blocks: Sequence[Planned]
    ) -> CommandKept:
        """Change a setting of the session."""

        def effect(now: int) -> Stopped:
            rows.transcript_of(db, session_key, None, now, self._new_id())
            become = "UPDATE session SET settings=json_set(settings, '$.' || ?, ?) WHERE session_key=?"
            db.execute(become, (*change, session_key))
            return Stopped()

        return self._carry_out(db, seq, effect, lambda _: blocks, ())

    @transaction
    def take_up(
        self, db: sqlite3.Connection, seq: int, message: InboundMessage, chosen: Sequence[Planned], again: str = ""
    ) -> CommandKept:
        """A press of a button that is no command becomes a message of who pressed it.

        again: an approval that has expired: the turn of that message begins with the same call.
        """

        def effect(now: int) -> Stopped:
            said = replace(message, origin=approvals.asked_by(db, again) or message.origin) if again else message
            become = "UPDATE inbox SET kind='message', state='waiting', payload=?, asks_again=? WHERE seq=?"
            db.execute(become, (codec.INBOUND.dump(said), again or None, seq))
            if again:  # it goes on where it was asked for, and as if by who did, wherever that was pressed
                db.execute(
                    "UPDATE inbox SET (session_key, conv_id, turn_id)=(SELECT session_key, reply_conv, NULL"
                    " FROM approval JOIN turn USING (turn_id) WHERE approval_id=?) WHERE seq=?",
                    (again, seq),
                )
            resumed.append(db.execute("SELECT session_key, 0 FROM inbox WHERE seq=?", (seq,)).fetchone())
            return Stopped()

        resumed: list[tuple[str, bool]] = []
        kept = self._carry_out(db, seq, effect, lambda _: (), chosen)
        return replace(kept, resumed=resumed[0]) if resumed else kept

    @transaction
    def decide(
        self,
        db: sqlite3.Connection,
        seq: int,
        approval_id: str,
        state: Verdict,
        by: str,
        reason: str,
        reply: Callable[[bool], Sequence[Planned]],
        passed_on: int = 0,
    ) -> CommandKept:
        """Settle an approval (see `Approvals.decide`). reply: made of whether it was this command that did. passed_on:
        a message whose words are the reason; while it still waits, no run takes it any more."""
        resumed: list[tuple[str, bool]] = []

        def effect(now: int) -> Stopped:
            if found := approvals.decide(db, approval_id, state, by, reason, now):
                resumed.append(found)
                _pass_on(db, passed_on, now)
            return Stopped()

        kept = self._carry_out(db, seq, effect, lambda _: reply(bool(resumed)), ())
        return replace(kept, resumed=resumed[0]) if resumed else kept

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
        """End the session's run and drop what waited before the command was written; below: also in the sessions whose
        keys begin so, and say it there. renew: the session goes on with a new, empty transcript of that id.
        """

        def effect(now: int) -> Stopped:
            each = [_stop(db, session_key, seq, now, Cause.RESET if renew else Cause.STOP)]
            for other in _busy(db, below) if below else ():
                stopped = _stop(db, other, seq, now, Cause.STOP)
                (conv_id,) = db.execute("SELECT last_conv FROM session WHERE session_key=?", (other,)).fetchone()
                if conv_id and (stopped.running or stopped.dropped):  # those who wait there are told, too
                    say = [replace(one, source=one.source.also(other), respond="") for one in reply(stopped)]
                    told.extend(rows.plan(db, PlanIn(conv_id), say, None, now))
                each.append(stopped)
            if renew:
                rows.new_transcript(db, session_key, renew, now)
            return Stopped(
                running=any(one.running for one in each),
                dropped=sum(one.dropped for one in each),
                turns=tuple(turn for one in each for turn in one.turns),
                sessions=tuple(session for one in each for session in one.sessions),
            )

        told: list[Delivery] = []
        kept = self._carry_out(db, seq, effect, reply, chosen)
        return replace(kept, deliveries=(*kept.deliveries, *told))

    @transaction
    def abort(self, db: sqlite3.Connection, turn_id: str) -> bool:
        """End one turn, queued or running; False when it has ended already or is not known."""
        found = db.execute(f"SELECT 1 FROM turn WHERE turn_id=? AND {OPEN_TURN}", (turn_id,)).fetchone()
        if found:
            stop_turn(db, turn_id, self._now(), Cause.ABORT)
        return found is not None

    def _carry_out(
        self,
        db: sqlite3.Connection,
        seq: int,
        effect: Callable[[int], Stopped],
        reply: Reply,
        chosen: Sequence[Planned],
    ) -> CommandKept:
        now = self._now()
        conv_id, turn_id, state = db.execute("SELECT conv_id, turn_id, state FROM inbox WHERE seq=?", (seq,)).fetchone()
        if state != "waiting":  # carried out already: by recovery, or by the run that recovery overtook
            return CommandKept(Stopped(), ())
        db.execute("UPDATE inbox SET state='done' WHERE seq=?", (seq,))
        edited = rows.plan(db, PlanIn(conv_id), chosen, turn_id, now)
        if chosen and not edited:
            return CommandKept(Stopped(), ())
        stopped = effect(now)
        endings.take_acknowledgements_away(db, "seq=? AND inbox.state='done'", seq, now)  # it was a message at first
        deliveries = (*edited, *rows.plan(db, PlanIn(conv_id), reply(stopped), turn_id, now))
        if turn_id is not None:
            endings.end_turn(db, turn_id, Outcome.COMPLETED, now)
        return CommandKept(stopped, deliveries)


def _stop(db: sqlite3.Connection, session_key: str, before: int, now: int, reason: Cause) -> Stopped:
    """Stop the turns of a session that began with a message before `before`, and drop what waited before it.

    So are isolated beats and jobs that speak there. A command that is found in a history hours later stops nothing that
    was said after it. Reminders that wait are kept.
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
    """Sessions whose keys begin so, and in which something runs or waits."""
    begins = "session_key >= ?1 AND session_key < ?2"
    found = db.execute(
        f"SELECT session_key FROM turn WHERE {OPEN_TURN} AND {begins}"
        f" UNION SELECT session_key FROM inbox WHERE {WAITING} AND {begins}",
        (below, f"{below}\U0010ffff"),
    )
    return [session_key for (session_key,) in found]


def _pass_on(db: sqlite3.Connection, seq: int, now: int) -> None:
    """The words of a message that waits have become the reason of a decision: it is not said twice."""
    taken = db.execute(
        f"UPDATE inbox SET state='dropped', reason='{Cause.PASSED_ON}' WHERE seq=? AND {WAITING} AND {FOR_A_RUN}"
        f" AND NOT {IN_BACKGROUND} RETURNING turn_id",
        (seq,),
    ).fetchone()
    if taken and taken[0] is not None:  # made at acceptance, for the terminal
        endings.end_turn(db, taken[0], Outcome.COMPLETED, now)


def stop_turn(db: sqlite3.Connection, turn_id: str, now: int, reason: Cause) -> None:
    """End a turn as stopped: what is planned and not begun is not said any more, what was said is kept."""
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
