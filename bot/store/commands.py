"""Commands of people (TC): effect, reply and the command's own end in one transaction, so that none happens twice."""

import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.events import Outcome
from agent.message import Message, Text
from agent.tools.base import Verdict
from bot.persistence.settings import Change
from bot.persistence.values import CommandKept, PlanIn, Reply, Stopped
from bot.store import approvals, codec, endings, repair, rows
from bot.store.claims import AGAIN
from bot.store.history import IS_BEHIND
from bot.store.indexes import OPEN_TURN, WAITING
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND
from bot.store.writer import Subject, transaction
from channels.message import InboundMessage
from channels.outgoing import Planned

# Milliseconds between a command and its acceptance that no clock and no queue explains.
_LATE = 5 * 60_000
_SAID_AT = "coalesce(nullif(sent_at, 0), accepted_at)"
STOP_NOTE = "(The person stopped this turn.)"

# True of runs in a session of their own that tell ?1 what they say.
_OF_ITS_OWN = "EXISTS (SELECT 1 FROM firing WHERE firing.turn_id=turn.turn_id AND firing.session_key=?1)"


class Commands(Subject):
    """Transactions of commands. seq: of the command's own row in the inbox."""

    @transaction
    def answer(
        self, db: sqlite3.Connection, seq: int, blocks: Sequence[Planned], chosen: Sequence[Planned] = ()
    ) -> CommandKept:
        return self._carry_out(db, seq, lambda now: Stopped(), lambda _: blocks, chosen)

    @transaction
    def set(
        self, db: sqlite3.Connection, seq: int, session_key: str, change: Change, blocks: Sequence[Planned]
    ) -> CommandKept:

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

        def effect(now: int) -> Stopped:
            said = replace(message, origin=approvals.asked_by(db, again) or message.origin) if again else message
            become = "UPDATE inbox SET kind='message', state='waiting', payload=?, reason=? WHERE seq=?"
            db.execute(become, (codec.INBOUND.dump(said), f"{AGAIN}{again}" if again else None, seq))
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
    ) -> CommandKept:
        resumed: list[tuple[str, bool]] = []

        def effect(now: int) -> Stopped:
            if found := approvals.decide(db, approval_id, state, by, reason, now):
                resumed.append(found)
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
        renew: str | None = None,
    ) -> CommandKept:

        def effect(now: int) -> Stopped:
            stopped = _stop(db, session_key, seq, now, "reset" if renew else "stop")
            if renew:
                rows.new_transcript(db, session_key, renew, now)
            return stopped

        return self._carry_out(db, seq, effect, reply, chosen)

    @transaction
    def abort(self, db: sqlite3.Connection, turn_id: str) -> bool:
        found = db.execute(f"SELECT 1 FROM turn WHERE turn_id=? AND {OPEN_TURN}", (turn_id,)).fetchone()
        if found:
            _stop_turn(db, turn_id, self._now(), "abort")
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
        deliveries = (*edited, *rows.plan(db, PlanIn(conv_id), reply(stopped), turn_id, now))
        if turn_id is not None:
            endings.end_turn(db, turn_id, Outcome.COMPLETED, now)
        return CommandKept(stopped, deliveries)


def _stop(db: sqlite3.Connection, session_key: str, before: int, now: int, reason: str) -> Stopped:
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
            f" AND {FOR_A_RUN} AND NOT {IN_BACKGROUND} AND seq < ? AND {_SAID_AT} <= ? RETURNING turn_id",
            (reason, session_key, before, until),
        ).fetchall()
    ]
    begun = db.execute(
        "SELECT turn_id, (SELECT count(*) FROM inbox WHERE inbox.turn_id = turn.turn_id AND inbox.state='steering')"
        f" FROM turn WHERE (session_key=?1 OR {_OF_ITS_OWN}) AND {OPEN_TURN} AND epoch > 0"
        " AND EXISTS (SELECT 1 FROM inbox WHERE inbox.turn_id = turn.turn_id"
        f" AND seq < ?2 AND {_SAID_AT} <= ?3)",
        (session_key, before, until),
    ).fetchall()
    made = [turn_id for (turn_id,) in waiting if turn_id is not None]  # at acceptance, for HTTP
    turns = (*(turn_id for turn_id, _ in begun), *made)
    for turn_id in turns:
        _stop_turn(db, turn_id, now, reason)
    dropped = len(waiting) + sum(steering for _, steering in begun)
    return Stopped(running=bool(begun), dropped=dropped, turns=turns)


def _stop_turn(db: sqlite3.Connection, turn_id: str, now: int, reason: str) -> None:
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
