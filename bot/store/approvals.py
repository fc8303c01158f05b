"""Transactions about requests: a turn parks on one, and a decision queues the turn again.

A request is decided in one transaction, and only the first decision counts; the transaction that starts the call uses
it up. Whether a turn still waits is read from its request alone, so that a crash leaves nothing to repair. The edits
that show the decision are planned later, in a transaction of their own.
"""

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.events import WAITING, AgentEnd, Notice, Outcome, RunRef
from agent.tools.base import Ask, Asked, Decision
from bot.persistence.approvals import SHOWN, STOPPED, Approval, Choice, Request, Shown
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.turns import BY_THEMSELVES, CommandKept
from bot.store import codec, endings, indexes, rows
from bot.store.commands import NOT_ANEW, become_message, begin, finish
from bot.store.grants import grant
from bot.store.indexes import OPEN_APPROVAL, SAID, UNTOLD_APPROVAL
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND
from bot.store.writer import Subject, query, transaction
from channels.message import ChatKind, InboundMessage, Origin, Place
from channels.outgoing import Action, Delivery, Planned
from channels.sources import SourceKind, piece_key, request, sentence

# The most requests that are found by one id.
_FOUND = 20
_NAMED = re.compile(rf"[0-9a-f]{{{SHOWN}}}|[0-9a-f]{{32}}")
# Condition for the deliveries that show the request of the row at hand.
_SHOWING = (SourceKind.REQUEST.value, SourceKind.REMINDER.value)
OF_IT = f"subject=approval_id AND source_kind IN {_SHOWING}"


class Approvals(Subject):
    """Transactions about requests."""

    @transaction
    def park(
        self, db: sqlite3.Connection, run: RunRef, call_id: str, ask: Ask, request: Request, where: PlanIn
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
        """End a run at a call, or several, about which a person must decide, and store the request.

        The turn is not over, so its message stays `taken`. Returns what is to be delivered and the end of the run.
        Raises StaleRun.
        """
        now = self._now()
        rows.check_epoch(db, run)
        for one in ask.calls or (Asked(call_id, ask),):
            db.execute("UPDATE tool_call SET state='waiting' WHERE turn_id=? AND call_id=?", (run.turn_id, one.call_id))
        db.execute(
            "INSERT INTO approval (approval_id, turn_id, call_id, ask, digest, question, approvers, asked_at,"
            " expires_at, state, reason) VALUES (?,?,?,?,?,?,?,?,?,'open',?)",
            (
                *(request.approval_id, run.turn_id, call_id, codec.ASK.dump(ask), ask.digest, ask.question),
                *(json.dumps(request.approvers), now, now + request.expires, ask.otherwise),
            ),
        )
        deliveries = rows.plan(db, where, request.blocks, run.turn_id, now)
        for place, blocks in request.elsewhere:
            deliveries += rows.plan(db, PlanIn(rows.conversation(db, place)), blocks, None, now)
        if request.notice is not None:
            rows.tell_owner(db, request.notice, now, besides=where.conv_id)
        used = db.execute(
            f"UPDATE turn SET state='parked', outcome=?, parked_on=?, {rows.STOP_CLOCK} WHERE turn_id=?"
            f" RETURNING {endings.USED}",
            (Outcome.PARKED.value, request.approval_id, now, run.turn_id),
        ).fetchone()
        _note(db, run, now, WAITING, request.approval_id)
        return deliveries, endings.persist_end(db, run, used, Outcome.PARKED, now)

    @transaction
    def decide(self, db: sqlite3.Connection, approval_id: str, choice: Choice, by: str) -> tuple[str, bool] | None:
        """Decide an open request and queue its turn. The caller knows that `by` may decide it.

        by: who decides, as "channel:id" with their name behind; empty if nobody did in time. Returns the session to
        wake and whether its turn is one of the background; None if the request is not open any more, or its time is
        over.
        """
        return decide(db, approval_id, choice, by, self._now())

    @transaction
    def decide_by_command(
        self,
        db: sqlite3.Connection,
        seq: int,
        approval_id: str,
        choice: Choice,
        by: str,
        blocks: Sequence[Planned],
        passed_on: int = 0,
    ) -> CommandKept | None:
        """Carry out a command that decides a request as `decide` does; `resumed` of the result is what that returns.

        seq: the place of the command in the inbox. blocks: the answer. passed_on: the place of the message whose words
        are the reason, 0 for none; if it still waits, no turn takes it. Returns None, and changes nothing, if the
        request is not open any more: the command is still to be answered.
        """
        begun = begin(db, seq, now := self._now())
        if begun is None:
            return NOT_ANEW
        resumed = decide(db, approval_id, choice, by, now)
        if resumed is None:
            db.execute("UPDATE inbox SET state='waiting' WHERE seq=?", (seq,))
            return None
        _pass_on(db, passed_on, now)
        return finish(db, begun, blocks, resumed=resumed)

    @transaction
    def ask_again(
        self, db: sqlite3.Connection, seq: int, message: InboundMessage, approval_id: str, shown: Sequence[Planned]
    ) -> CommandKept:
        """Make the command a message whose turn begins with the call of an expired request.

        The turn is one of the session that the request was made in and answers there, as if who asked then had written
        the message, wherever the command was given. shown: what says that it is asked again, see `Commands.chosen`.
        """
        begun = begin(db, seq, self._now(), shown)
        if begun is None:
            return NOT_ANEW
        message = replace(message, origin=asked_by(db, approval_id) or message.origin)
        db.execute(
            "UPDATE inbox SET (session_key, conv_id, turn_id)=(SELECT session_key, reply_conv, NULL"
            " FROM approval JOIN turn USING (turn_id) WHERE approval_id=?) WHERE seq=?",
            (approval_id, seq),
        )
        return become_message(db, begun, message, approval_id)

    @query
    def due(self, db: sqlite3.Connection) -> Sequence[str]:
        """Return the ids of the open requests whose time is over: they are to be decided as "expired"."""
        found = db.execute(
            f"SELECT approval_id FROM approval WHERE {OPEN_APPROVAL} AND expires_at <= ?", (self._now(),)
        )
        return [ident for (ident,) in found]

    @query
    def next_expiry(self, db: sqlite3.Connection) -> int | None:
        """Return when the time of the next open request is over (milliseconds); None if there is none."""
        later = f"SELECT min(expires_at) FROM approval WHERE {OPEN_APPROVAL} AND expires_at > ?"
        (at,) = db.execute(later, (self._now(),)).fetchone()
        return at  # type: ignore[no-any-return]

    @query
    def find(self, db: sqlite3.Connection, named: str) -> Sequence[Approval]:
        """Return the requests that an id means, in any state, newest first; at most twenty.

        named: all 32 digits of the id, or the first SHOWN of them; case and dashes do not matter. Anything else means
        none.
        """
        digits = named.lower().replace("-", "")
        if not _NAMED.fullmatch(digits):
            return ()
        return _read(
            db, "approval_id >= ?1 AND approval_id < ?1 || 'g' ORDER BY asked_at DESC LIMIT ?2", digits, _FOUND
        )

    @query
    def newest(self, db: sqlite3.Connection, session_key: str) -> Approval | None:
        """Return the newest request of a session that is no question, in any state; None if there is none."""
        found = _read(db, "session_key=? AND question=0 ORDER BY asked_at DESC LIMIT 1", session_key)
        return found[0] if found else None

    @query
    def questions(self, db: sqlite3.Connection, turn_id: str) -> int:
        """Return how many questions a turn has asked people, whatever became of them."""
        return int(db.execute("SELECT count(*) FROM approval WHERE turn_id=? AND question=1", (turn_id,)).fetchone()[0])

    @query
    def open(self, db: sqlite3.Connection) -> Sequence[Approval]:
        """Return the open requests, oldest first."""
        return _read(db, f"approval.{OPEN_APPROVAL} AND expires_at > ? ORDER BY asked_at", self._now())

    @query
    def offered(self, db: sqlite3.Connection, place: Place) -> Sequence[Approval]:
        """Return the open requests that a chat shows with their buttons, oldest first; no questions."""
        return _read(
            db,
            f"approval.{OPEN_APPROVAL} AND question=0 AND expires_at > ? AND EXISTS (SELECT 1 FROM delivery"
            f" JOIN conversation USING (conv_id) WHERE {OF_IT} AND delivery.{SAID} AND buttons IS NOT NULL"
            " AND channel=? AND account=? AND chat=?) ORDER BY asked_at",
            *(self._now(), place.channel, place.account, place.chat),
        )

    @query
    def words(self, db: sqlite3.Connection, approval_id: str, seq: int, place: Place) -> str:
        """Return the words of the message at a place in the inbox that was written in a chat while a request waited.

        Return "" if it was deleted or was written elsewhere. In rows of earlier versions the words may stand behind a
        command that names the request.
        """
        found = db.execute(
            "SELECT payload, seq FROM inbox JOIN conversation USING (conv_id) WHERE seq=? AND inbox.state<>'withdrawn'"
            " AND conversation.channel=? AND conversation.account=? AND chat=?",
            (seq, place.channel, place.account, place.chat),
        ).fetchone()
        message = codec.read_inbound(*found) if found else None
        return message.text.removeprefix(f"/approve {approval_id} ask ").strip() if message else ""

    @query
    def untold(self, db: sqlite3.Connection) -> Sequence[str]:
        """Return the ids of the decided requests whose messages do not show the decision yet."""
        found = db.execute(f"SELECT approval_id FROM approval WHERE approval.{UNTOLD_APPROVAL} ORDER BY asked_at")
        return [ident for (ident,) in found]

    @transaction
    def tell(self, db: sqlite3.Connection, approval_id: str, shown: Shown) -> tuple[Delivery, ...]:
        """Plan the edits of all messages that show a request, once. Returns them."""
        now = self._now()
        if not db.execute("UPDATE approval SET told=1 WHERE approval_id=? AND told=0", (approval_id,)).rowcount:
            return ()
        copies = db.execute(
            "SELECT delivery_id, source, piece, source_kind, conv_id, buttons IS NOT NULL FROM delivery"
            f" WHERE subject=?1 AND source_kind IN {_SHOWING} AND {rows.STANDS} AND (buttons IS NOT NULL"
            " OR source=?2 AND NOT EXISTS (SELECT 1 FROM delivery WHERE source=?2 AND piece=1))",
            (approval_id, request(approval_id).key),
        ).fetchall()
        made: tuple[Delivery, ...] = ()
        for delivery_id, key, piece, kind, conv_id, offers in copies:
            place = rows.place_of(db, conv_id)
            if place.kind in (ChatKind.API, ChatKind.CONSOLE):  # what is said there is never changed
                continue
            source = sentence("told", piece_key(key, piece))
            first = shown(place, bool(offers) and piece == 0 and kind == SourceKind.REQUEST)[:1]
            edits = [replace(one, source=source, action=Action.EDIT, edits=delivery_id) for one in first]
            made += rows.plan(db, PlanIn(conv_id), edits, None, now)
        return made


def decide(db: sqlite3.Connection, approval_id: str, choice: Choice, by: str, now: int) -> tuple[str, bool] | None:
    """Decide a request inside a unit of the writer, see `Approvals.decide`."""
    found = db.execute(
        "SELECT turn_id, session_key, ask FROM approval JOIN turn USING (turn_id)"
        " WHERE approval_id=? AND approval.state='open' AND (expires_at > ? OR ?='expired')",
        (approval_id, now, choice.verdict),
    ).fetchone()
    if found is None:
        return None
    turn_id, session_key, ask = found[0], found[1], codec.ASK.load(found[2], None)
    until = now + round(1000 * choice.seconds) if choice.seconds else None
    if ask is not None and choice.verdict == "always":
        grant(db, ask, by, now, session_key, until)
    return _settle(db, turn_id, approval_id, choice, by or None, now, until)


def still_waits(db: sqlite3.Connection, turn_id: str, now: int) -> bool:
    """Return whether a parked turn has to wait on; if its request is not open or its time is over, queue the turn.

    A turn that waits for a model has to until one works (`bot/store/outages`), and one that waits for a budget until
    that lets it go on (`bot/store/budget_waits`).
    """
    parked_on, expires_at, misses, over = db.execute(
        "SELECT parked_on, expires_at, misses, over FROM turn"
        " LEFT JOIN approval ON approval_id=parked_on AND approval.state='open' WHERE turn.turn_id=?",
        (turn_id,),
    ).fetchone()
    if misses is not None or over is not None or (expires_at is not None and expires_at > now):
        return True
    _settle(db, turn_id, parked_on, Choice(verdict="expired"), None, now)
    return False


# Condition for parked turns that have to wait on; the first parameter is the moment, in milliseconds.
WAITS = (
    "(misses IS NOT NULL OR over IS NOT NULL"
    " OR EXISTS (SELECT 1 FROM approval WHERE approval_id=parked_on AND approval.state='open' AND expires_at > ?1))"
)


def decisions(db: sqlite3.Connection, turn_id: str) -> Mapping[str, Decision]:
    """Return the newest decision about each call of a turn that waited for one and has not begun, by its id."""
    found: dict[str, Decision] = {}
    waiting: set[str] = set()
    for call_id, ask, digest, state, reason, picked, waits in db.execute(
        "SELECT call_id, ask, digest, approval.state, reason, picked, (SELECT json_group_array(call_id) FROM tool_call"
        " WHERE tool_call.turn_id=?1 AND tool_call.state='waiting') FROM approval JOIN turn USING (turn_id)"
        " WHERE approval.turn_id=?1 AND approval.state<>'open' ORDER BY approval_id=parked_on, decided_at",
        (turn_id,),
    ).fetchall():
        waiting = set(json.loads(waits))
        asked = codec.ASK.load(ask, Ask(digest=digest, subject=""))
        found |= asked.decisions(call_id, state, reason or "", json.loads(picked or "[]"))
    return {call_id: decision for call_id, decision in found.items() if call_id in waiting}


def give_up(db: sqlite3.Connection, turn_id: str, now: int) -> None:
    """Close the open request of a turn that ends."""
    db.execute(
        "UPDATE approval SET state='expired', decided_at=?, reason=? WHERE turn_id=? AND state='open'",
        (now, STOPPED, turn_id),
    )


def asked_by(db: sqlite3.Connection, approval_id: str) -> Origin | None:
    """Return the origin of the last message that led to a request; None if it is not kept any more."""
    found = db.execute(
        "SELECT payload, seq FROM inbox JOIN approval USING (turn_id) WHERE approval_id=? ORDER BY seq DESC LIMIT 1",
        (approval_id,),
    ).fetchone()
    message = codec.read_inbound(*found) if found else None
    return message.origin if message else None


def _pass_on(db: sqlite3.Connection, seq: int, now: int) -> None:
    """Drop a message that waits: its words are the reason of a decision, which the model is told already."""
    taken = db.execute(
        f"UPDATE inbox SET state='dropped', reason='{Cause.PASSED_ON}' WHERE seq=? AND {indexes.WAITING}"
        f" AND {FOR_A_RUN} AND NOT {IN_BACKGROUND} RETURNING turn_id",
        (seq,),
    ).fetchone()
    if taken and taken[0] is not None:  # made at acceptance, for the terminal
        endings.end_turn(db, taken[0], Outcome.COMPLETED, now)


def _settle(
    db: sqlite3.Connection,
    turn_id: str,
    approval_id: str,
    choice: Choice,
    by: str | None,
    now: int,
    until: int | None = None,
) -> tuple[str, bool]:
    """Write a decision and queue the turn; returns its session, and whether it is one of the background."""
    state, picked = choice.verdict, json.dumps(choice.picked) if choice.picked else None
    db.execute(
        "UPDATE approval SET state=?1, decided_by=?2, decided_at=?3, picked=?6, until=?7,"
        " reason=CASE WHEN ?1='expired' AND ?4='' THEN reason ELSE ?4 END WHERE approval_id=?5 AND state='open'",
        (state, by, now, choice.reason, approval_id, picked, until),
    )
    session_key, epoch, background = db.execute(
        f"UPDATE turn SET state='queued' WHERE turn_id=? RETURNING session_key, epoch, {IN_BACKGROUND}", (turn_id,)
    ).fetchone()
    _note(
        db,
        rows.run_ref(turn_id, session_key, epoch),
        now,
        "allowed" if state in ("once", "always") else state,
        approval_id,
    )
    return session_key, bool(background)


def _note(db: sqlite3.Connection, run: RunRef, now: int, kind: str, approval_id: str) -> None:
    """Store the event that a request waits or was decided; its words stand in the request itself."""
    event = Notice(run=run, at=now, id=f"{run.turn_id}/{kind}/{approval_id}", kind=kind, detail="")
    rows.persist_events(db, [event])


_ASKER = "(SELECT channel || ':' || sender FROM inbox WHERE inbox.turn_id=turn.turn_id ORDER BY seq DESC LIMIT 1)"


def _read(db: sqlite3.Connection, which: str, *values: object) -> Sequence[Approval]:
    found = db.execute(
        "SELECT reply_conv, turn.kind, ask, approvers, approval_id, approval.turn_id, approval.call_id, session_key,"
        f" {_ASKER},"
        " name, asked_at, expires_at, approval.state, decided_by, reason, picked, until, decided_at"
        " FROM approval JOIN turn USING (turn_id)"
        " JOIN tool_call ON tool_call.turn_id=approval.turn_id AND tool_call.call_id=approval.call_id"
        f" WHERE {which}",
        values,
    ).fetchall()
    return [_approval(rows.place_of(db, conv_id), *row) for conv_id, *row in found]


def _approval(place: Place, kind: str, ask: str, approvers: str, *row: Any) -> Approval:
    approval_id, turn_id, call_id, session_key, asker, tool, asked_at, expires_at, state, by, reason, *more = row
    picked, until, decided_at = more
    return Approval(
        approval_id=approval_id,
        turn_id=turn_id,
        call_id=call_id,
        session_key=session_key,
        by_itself=kind in BY_THEMSELVES,
        place=place,
        asker=asker or "",
        tool=tool,
        ask=codec.ASK.load(ask, Ask(digest="", subject="")),
        approvers=tuple(json.loads(approvers)),
        asked_at=asked_at,
        expires_at=expires_at,
        state=state,
        decided_by=by or "",
        decided_at=decided_at or 0,
        reason="" if state == "open" else reason or "",
        picked=tuple(json.loads(picked or "[]")),
        until=until,
    )
