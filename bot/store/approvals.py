"""Turns that wait for a person: parked on an approval, and queued again by what becomes of it.

A decision is one transaction, of which exactly one wins; it is used up by the one that starts its call. Whether a turn
still waits is read from its approval alone, so that nothing is left to repair after a crash. That the messages which
ask show it follows, in one of its own.
"""

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent.events import WAITING, AgentEnd, Notice, Outcome, RunRef
from agent.tools.base import Ask, Decision, Verdict
from bot.persistence.approvals import SHOWN, STOPPED, Approval, Granted, Request, Shown
from bot.persistence.deliveries import PlanIn
from bot.store import codec, endings, rows
from bot.store.indexes import OPEN_APPROVAL, SAID, UNTOLD_APPROVAL
from bot.store.rows import IN_BACKGROUND
from bot.store.writer import Subject, query, transaction
from channels.message import ChatKind, Origin, Place
from channels.outgoing import Action, Delivery
from channels.sources import SourceKind, piece_key, request, sentence

_FOUND = 20
_NAMED = re.compile(rf"[0-9a-f]{{{SHOWN}}}|[0-9a-f]{{32}}")
# True of deliveries that show an approval.
_SHOWING = (SourceKind.REQUEST.value, SourceKind.REMINDER.value)
OF_IT = f"subject=approval_id AND source_kind IN {_SHOWING}"


class Approvals(Subject):
    """Turns that wait for a person."""

    @transaction
    def park(
        self, db: sqlite3.Connection, run: RunRef, call_id: str, ask: Ask, request: Request, where: PlanIn
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
        """A run ends at a call about which a person must decide.

        Its message stays taken: the turn has not ended. Returns what is to be delivered and the end of the run.
        """
        now = self._now()
        rows.check_epoch(db, run)
        db.execute("UPDATE tool_call SET state='waiting' WHERE turn_id=? AND call_id=?", (run.turn_id, call_id))
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
    def decide(
        self, db: sqlite3.Connection, approval_id: str, state: Verdict, by: str, reason: str = ""
    ) -> tuple[str, bool] | None:
        """Settle an open approval and queue its turn; by: who decided, "channel:id"; empty: nobody did in time.

        reason: for the model; of one that expires empty, for then its own words count.

        Returns the session to wake, and whether its turn is of the background; None when it is not open any more, or
        not in time. Whether `by` may decide is the caller's to know.
        """
        return decide(db, approval_id, state, by, reason, self._now())

    @query
    def due(self, db: sqlite3.Connection) -> Sequence[str]:
        """The ids of those that are open and whose time is over: they are to be decided as "expired"."""
        found = db.execute(
            f"SELECT approval_id FROM approval WHERE {OPEN_APPROVAL} AND expires_at <= ?", (self._now(),)
        )
        return [ident for (ident,) in found]

    @query
    def next_expiry(self, db: sqlite3.Connection) -> int | None:
        """When the next of the others has had its time; None where there is none."""
        later = f"SELECT min(expires_at) FROM approval WHERE {OPEN_APPROVAL} AND expires_at > ?"
        (at,) = db.execute(later, (self._now(),)).fetchone()
        return at  # type: ignore[no-any-return]

    @query
    def find(self, db: sqlite3.Connection, named: str) -> Sequence[Approval]:
        """Those that an id means, in any state, newest first; at most twenty.

        named: all 32 digits of it, or the SHOWN first ones; case and dashes do not matter. Anything else means none.
        """
        digits = named.lower().replace("-", "")
        if not _NAMED.fullmatch(digits):
            return ()
        return _read(
            db, "approval_id >= ?1 AND approval_id < ?1 || 'g' ORDER BY asked_at DESC LIMIT ?2", digits, _FOUND
        )

    @query
    def questions(self, db: sqlite3.Connection, turn_id: str) -> int:
        """How many questions a turn has asked people, whatever became of them."""
        return int(db.execute("SELECT count(*) FROM approval WHERE turn_id=? AND question=1", (turn_id,)).fetchone()[0])

    @query
    def open(self, db: sqlite3.Connection) -> Sequence[Approval]:
        """Those that wait, oldest first."""
        return _read(db, f"approval.{OPEN_APPROVAL} AND expires_at > ? ORDER BY asked_at", self._now())

    @query
    def offered(self, db: sqlite3.Connection, place: Place) -> Sequence[Approval]:
        """Requests that wait and are shown in a chat in full, oldest first; no questions."""
        return _read(
            db,
            f"approval.{OPEN_APPROVAL} AND question=0 AND expires_at > ? AND EXISTS (SELECT 1 FROM delivery"
            f" JOIN conversation USING (conv_id) WHERE {OF_IT} AND delivery.{SAID} AND buttons IS NOT NULL"
            " AND channel=? AND account=? AND chat=?) ORDER BY asked_at",
            *(self._now(), place.channel, place.account, place.chat),
        )

    @query
    def seen(self, db: sqlite3.Connection, place: Place) -> frozenset[str]:
        """Who has written to the bot in a chat, by their ids."""
        found = db.execute(
            "SELECT DISTINCT sender FROM conversation JOIN inbox USING (conv_id)"
            " WHERE conversation.channel=? AND conversation.account=? AND chat=?",
            (place.channel, place.account, place.chat),
        )
        return frozenset(sender for (sender,) in found if sender)

    @query
    def words(self, db: sqlite3.Connection, approval_id: str, seq: int, place: Place) -> str:
        """What somebody wrote in a chat while a request waited, by its place in the inbox; empty when it is gone."""
        found = db.execute(
            "SELECT payload, seq FROM inbox JOIN conversation USING (conv_id) WHERE seq=? AND inbox.state<>'withdrawn'"
            " AND conversation.channel=? AND conversation.account=? AND chat=?",
            (seq, place.channel, place.account, place.chat),
        ).fetchone()
        message = codec.read_inbound(*found) if found else None
        return message.text.removeprefix(f"/approve {approval_id} ask ").strip() if message else ""

    @query
    def untold(self, db: sqlite3.Connection) -> Sequence[str]:
        """The ids of those that are settled, while their messages do not show it."""
        found = db.execute(f"SELECT approval_id FROM approval WHERE approval.{UNTOLD_APPROVAL} ORDER BY asked_at")
        return [ident for (ident,) in found]

    @transaction
    def tell(self, db: sqlite3.Connection, approval_id: str, shown: Shown) -> tuple[Delivery, ...]:
        """Plan the edits that show it, once."""
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

    @query
    def granted(self, db: sqlite3.Connection) -> Sequence[Granted]:
        """What is allowed for always, oldest first."""
        found = db.execute("SELECT what, words, granted_by, granted_at FROM granted ORDER BY granted_at, what")
        return [Granted(*row) for row in found]

    @transaction
    def revoke(self, db: sqlite3.Connection, what: str) -> bool:
        """Allow it no more; False when it was not."""
        return db.execute("DELETE FROM granted WHERE what=?", (what,)).rowcount == 1


def decide(
    db: sqlite3.Connection, approval_id: str, state: Verdict, by: str, reason: str, now: int
) -> tuple[str, bool] | None:
    """See `bot/persistence/approvals.py`."""
    found = db.execute(
        "SELECT turn_id, ask FROM approval WHERE approval_id=? AND state='open' AND (expires_at > ? OR ?='expired')",
        (approval_id, now, state),
    ).fetchone()
    if found is None:
        return None
    turn_id, ask = found[0], codec.ASK.load(found[1], None)
    for what in ask.grants if ask and state == "always" else ():
        db.execute(
            "INSERT OR IGNORE INTO granted (what, words, granted_by, granted_at) VALUES (?,?,?,?)",
            (what, ask.granted if ask else "", by, now),
        )
    return _settle(db, turn_id, approval_id, state, by or None, reason, now)


def still_waits(db: sqlite3.Connection, turn_id: str, now: int) -> bool:
    """Whether a parked turn has to wait on; when its approval has had its time, or is gone, it is queued instead."""
    parked_on, expires_at = db.execute(
        "SELECT parked_on, expires_at FROM turn"
        " LEFT JOIN approval ON approval_id=parked_on AND approval.state='open' WHERE turn.turn_id=?",
        (turn_id,),
    ).fetchone()
    if expires_at is not None and expires_at > now:
        return True
    _settle(db, turn_id, parked_on, "expired", None, "", now)
    return False


# True of parked turns for which `still_waits` is; the first parameter is now.
WAITS = "EXISTS (SELECT 1 FROM approval WHERE approval_id=parked_on AND approval.state='open' AND expires_at > ?1)"


def decisions(db: sqlite3.Connection, turn_id: str) -> Mapping[str, Decision]:
    """What was decided about the call that a turn was parked on last, by its id, if it has not begun."""
    found = db.execute(
        "SELECT approval.call_id, approval.state, digest, reason FROM turn JOIN approval ON approval_id=parked_on"
        " JOIN tool_call ON tool_call.turn_id=turn.turn_id AND tool_call.call_id=approval.call_id"
        " WHERE turn.turn_id=? AND tool_call.state='waiting' AND approval.state<>'open'",
        (turn_id,),
    ).fetchall()
    return {call_id: Decision(state, digest, reason or "") for call_id, state, digest, reason in found}


def give_up(db: sqlite3.Connection, turn_id: str, now: int) -> None:
    """Nobody has to decide any more: the turn ends."""
    db.execute(
        "UPDATE approval SET state='expired', decided_at=?, reason=? WHERE turn_id=? AND state='open'",
        (now, STOPPED, turn_id),
    )


def asked_by(db: sqlite3.Connection, approval_id: str) -> Origin | None:
    """Whose message led to a request, and where they wrote it, while that is kept."""
    found = db.execute(
        "SELECT payload, seq FROM inbox JOIN approval USING (turn_id) WHERE approval_id=? ORDER BY seq DESC LIMIT 1",
        (approval_id,),
    ).fetchone()
    message = codec.read_inbound(*found) if found else None
    return message.origin if message else None


def is_anything_open(db: sqlite3.Connection, now: int) -> bool:
    """Return whether any request waits for a decision; if none does, no message can be about one."""
    found = db.execute(f"SELECT 1 FROM approval WHERE {OPEN_APPROVAL} AND expires_at > ? LIMIT 1", (now,))
    return found.fetchone() is not None


def waited_for(db: sqlite3.Connection, session_key: str, now: int) -> str | None:
    """The request on which the turn of a session is parked, if it is."""
    found = db.execute(
        "SELECT parked_on FROM turn JOIN approval ON approval_id=parked_on WHERE session_key=?"
        " AND turn.state IN ('running','parked') AND turn.state='parked' AND approval.state='open' AND expires_at > ?",
        (session_key, now),
    ).fetchone()
    return str(found[0]) if found else None


def _settle(
    db: sqlite3.Connection, turn_id: str, approval_id: str, state: Verdict, by: str | None, reason: str, now: int
) -> tuple[str, bool]:
    """An approval that expires keeps the words that were made for that."""
    db.execute(
        "UPDATE approval SET state=?1, decided_by=?2, decided_at=?3,"
        " reason=CASE WHEN ?1='expired' AND ?4='' THEN reason ELSE ?4 END WHERE approval_id=?5 AND state='open'",
        (state, by, now, reason, approval_id),
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
    """Keep an event of what is waited for, or decided; in words the request itself says it."""
    event = Notice(run=run, at=now, id=f"{run.turn_id}/{kind}/{approval_id}", kind=kind, detail="")
    rows.persist_events(db, [event])


_ASKER = "(SELECT channel || ':' || sender FROM inbox WHERE inbox.turn_id=turn.turn_id ORDER BY seq DESC LIMIT 1)"


def _read(db: sqlite3.Connection, which: str, *values: object) -> Sequence[Approval]:
    found = db.execute(
        f"SELECT reply_conv, ask, approvers, approval_id, approval.turn_id, approval.call_id, session_key, {_ASKER},"
        " name, asked_at, expires_at, approval.state, decided_by, reason FROM approval JOIN turn USING (turn_id)"
        " JOIN tool_call ON tool_call.turn_id=approval.turn_id AND tool_call.call_id=approval.call_id"
        f" WHERE {which}",
        values,
    ).fetchall()
    return [_approval(rows.place_of(db, conv_id), *row) for conv_id, *row in found]


def _approval(place: Place, ask: str, approvers: str, *row: Any) -> Approval:
    approval_id, turn_id, call_id, session_key, asker, tool, asked_at, expires_at, state, by, reason = row
    return Approval(
        approval_id=approval_id,
        turn_id=turn_id,
        call_id=call_id,
        session_key=session_key,
        place=place,
        asker=asker or "",
        tool=tool,
        ask=codec.ASK.load(ask, Ask(digest="", subject="")),
        approvers=tuple(json.loads(approvers)),
        asked_at=asked_at,
        expires_at=expires_at,
        state=state,
        decided_by=by or "",
        reason="" if state == "open" else reason or "",
    )
