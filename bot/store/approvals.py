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
from bot.approvals import plain
from bot.persistence.approvals import ANYONE, SHOWN, STOPPED, Approval, Granted, Request, Shown
from bot.persistence.values import PlanIn
from bot.store import codec, endings, rows
from bot.store.indexes import OPEN_APPROVAL, SAID, UNTOLD_APPROVAL
from bot.store.rows import IN_BACKGROUND
from bot.store.writer import Subject, query, transaction
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, id_order
from channels.outgoing import Action, Delivery

_FOUND = 20
_NAMED = re.compile(rf"[0-9a-f]{{{SHOWN}}}|[0-9a-f]{{32}}")
# True of deliveries that show an approval.
_OF_IT = "source >= 'ask:' || approval_id AND source < 'ask:' || approval_id || ';'"
# Milliseconds by which the clock of a platform may be behind ours: what was sent before is about something else.
_CLOCKS = 10_000


class Approvals(Subject):
    """Transactions of parking."""

    @transaction
    def park(
        self, db: sqlite3.Connection, run: RunRef, call_id: str, ask: Ask, request: Request, where: PlanIn
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
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
        db.execute(
            f"UPDATE turn SET state='parked', outcome=?, parked_on=?, {rows.STOP_CLOCK} WHERE turn_id=?",
            (Outcome.PARKED.value, request.approval_id, now, run.turn_id),
        )
        _note(db, run, now, WAITING, request.approval_id)
        return deliveries, endings.persist_end(db, run.turn_id, Outcome.PARKED, now)

    @transaction
    def decide(
        self, db: sqlite3.Connection, approval_id: str, state: Verdict, by: str, reason: str = ""
    ) -> tuple[str, bool] | None:
        return decide(db, approval_id, state, by, reason, self._now())

    @query
    def due(self, db: sqlite3.Connection) -> Sequence[str]:
        found = db.execute(
            f"SELECT approval_id FROM approval WHERE {OPEN_APPROVAL} AND expires_at <= ?", (self._now(),)
        )
        return [ident for (ident,) in found]

    @query
    def next_expiry(self, db: sqlite3.Connection) -> int | None:
        later = f"SELECT min(expires_at) FROM approval WHERE {OPEN_APPROVAL} AND expires_at > ?"
        (at,) = db.execute(later, (self._now(),)).fetchone()
        return at  # type: ignore[no-any-return]

    @query
    def find(self, db: sqlite3.Connection, named: str) -> Sequence[Approval]:
        digits = named.lower().replace("-", "")
        if not _NAMED.fullmatch(digits):
            return ()
        return _read(
            db, "approval_id >= ?1 AND approval_id < ?1 || 'g' ORDER BY asked_at DESC LIMIT ?2", digits, _FOUND
        )

    @query
    def questions(self, db: sqlite3.Connection, turn_id: str) -> int:
        return int(db.execute("SELECT count(*) FROM approval WHERE turn_id=? AND question=1", (turn_id,)).fetchone()[0])

    @query
    def open(self, db: sqlite3.Connection) -> Sequence[Approval]:
        return _read(db, f"approval.{OPEN_APPROVAL} AND expires_at > ? ORDER BY asked_at", self._now())

    @query
    def offered(self, db: sqlite3.Connection, place: Place) -> Sequence[Approval]:
        return _read(
            db,
            f"approval.{OPEN_APPROVAL} AND question=0 AND expires_at > ? AND EXISTS (SELECT 1 FROM delivery"
            f" JOIN conversation USING (conv_id) WHERE {_OF_IT} AND delivery.{SAID} AND buttons IS NOT NULL"
            " AND channel=? AND account=? AND chat=?) ORDER BY asked_at",
            *(self._now(), place.channel, place.account, place.chat),
        )

    @query
    def seen(self, db: sqlite3.Connection, place: Place) -> frozenset[str]:
        found = db.execute(
            "SELECT DISTINCT sender FROM conversation JOIN inbox USING (conv_id)"
            " WHERE conversation.channel=? AND conversation.account=? AND chat=?",
            (place.channel, place.account, place.chat),
        )
        return frozenset(sender for (sender,) in found if sender)

    @query
    def words(self, db: sqlite3.Connection, approval_id: str, seq: int, place: Place) -> str:
        found = db.execute(
            "SELECT payload, seq FROM inbox JOIN conversation USING (conv_id) WHERE seq=? AND inbox.state<>'withdrawn'"
            " AND conversation.channel=? AND conversation.account=? AND chat=?",
            (seq, place.channel, place.account, place.chat),
        ).fetchone()
        message = codec.read_inbound(*found) if found else None
        return message.text.removeprefix(f"/approve {approval_id} ask ").strip() if message else ""

    @query
    def untold(self, db: sqlite3.Connection) -> Sequence[str]:
        found = db.execute(f"SELECT approval_id FROM approval WHERE approval.{UNTOLD_APPROVAL} ORDER BY asked_at")
        return [ident for (ident,) in found]

    @transaction
    def tell(self, db: sqlite3.Connection, approval_id: str, shown: Shown) -> tuple[Delivery, ...]:
        now, name = self._now(), f"ask:{approval_id}"
        if not db.execute("UPDATE approval SET told=1 WHERE approval_id=? AND told=0", (approval_id,)).rowcount:
            return ()
        copies = db.execute(
            "SELECT source, conv_id, buttons IS NOT NULL FROM delivery WHERE source >= ?1 AND source < ?1 || ';'"
            " AND (buttons IS NOT NULL OR (source=?1 AND NOT EXISTS (SELECT 1 FROM delivery WHERE source=?1 || '.1')))"
            " AND state NOT IN ('failed','expired')",
            (name,),
        ).fetchall()
        made: tuple[Delivery, ...] = ()
        for source, conv_id, offers in copies:
            place = rows.place_of(db, conv_id)
            if place.kind in (ChatKind.API, ChatKind.CONSOLE):  # what is said there is never changed
                continue
            first = shown(place, bool(offers) and "." not in source)[:1]
            edits = [replace(one, source=f"told:{source}", action=Action.EDIT, target=source) for one in first]
            made += rows.plan(db, PlanIn(conv_id), edits, None, now)
        return made

    @query
    def granted(self, db: sqlite3.Connection) -> Sequence[Granted]:
        found = db.execute("SELECT what, words, granted_by, granted_at FROM granted ORDER BY granted_at, what")
        return [Granted(*row) for row in found]

    @transaction
    def revoke(self, db: sqlite3.Connection, what: str) -> bool:
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


def meant_by(
    db: sqlite3.Connection, message: InboundMessage, conv_id: int, now: int
) -> tuple[InboundMessage | None, str | None]:
    """The command that a message is where something is asked, None for none; then also the request that was shown last
    where it was written, if who wrote it may decide about that.

    A reply to the message that shows a request, or what stands in the thread below, decides it if it is a plain word,
    else they are asked what is to become of it; to a question it is the answer. Without a reply an answer is what
    `plain` takes for one, unless it is older, or there are several questions; and a plain word decides in a direct chat
    alone, about what was shown last there, if that came before it and is the only one that waits there.
    """
    place, said = message.origin.place, message.text.strip()
    if not said or message.attachments or message.origin.by_bot:  # files would be lost
        return None, None
    typed = place.kind is ChatKind.CONSOLE
    word = None if message.forwarded else plain.decision(said, typed=typed)
    if (target := message.reply_to or place.thread) and (shown := _shown_by(db, place, target, now)):
        for approval_id, question in _theirs(shown, message):
            order = f"/approve {approval_id} {word or f'ask {said}'}"
            return _as_command(message, f"/answer {approval_id} {said}" if question else order), None
        return None, None
    asked = _theirs(_questions_in(db, conv_id, message.sent_at + _CLOCKS if message.sent_at else now, now), message)
    if len(asked) == 1:
        (ask,) = db.execute("SELECT ask FROM approval WHERE approval_id=?", (asked[0][0],)).fetchone()
        if plain.answers(codec.ASK.load(ask, Ask(digest="", subject="")), said):
            return _as_command(message, f"/answer {asked[0][0]} {said}"), None
    last = (
        None
        if message.reply_to or not (typed or place.kind is ChatKind.DIRECT)
        else _last_in(db, message, conv_id, now)
    )
    return (_as_command(message, f"/approve {last} {word}"), None) if last and word else (None, last)


def _as_command(message: InboundMessage, text: str) -> InboundMessage:
    return replace(message, kind=InboundKind.COMMAND, text=text)


def _theirs(found: Sequence[tuple[str, int, str]], message: InboundMessage) -> list[tuple[str, bool]]:
    """Of approvals (id, whether it is a question, who may decide) those that are for who wrote a message."""
    place = message.origin.place
    whose = {ANYONE, f"{place.channel}:{message.origin.sender}"}
    local = place.kind is ChatKind.CONSOLE
    return [(one[0], bool(one[1])) for one in found if local or not whose.isdisjoint(json.loads(one[2]))]


def _shown_by(db: sqlite3.Connection, place: Place, target: str, now: int) -> list[tuple[str, int, str]]:
    """What is open of what a message shows."""
    return db.execute(
        "SELECT approval_id, question, approvers FROM delivery JOIN conversation USING (conv_id)"
        " JOIN approval ON approval_id=substr(source, 5, 32)"
        " WHERE channel=? AND account=? AND chat=? AND platform_id=? AND source GLOB 'ask:*'"
        f" AND delivery.{SAID} AND approval.{OPEN_APPROVAL} AND expires_at > ?",
        (place.channel, place.account, place.chat, target, now),
    ).fetchall()


def _questions_in(db: sqlite3.Connection, conv_id: int, until: int, now: int) -> list[tuple[str, int, str]]:
    """The questions that are open in a conversation, asked until then."""
    return db.execute(
        "SELECT approval_id, question, approvers FROM approval INDEXED BY approval_question"
        " WHERE state='open' AND question=1 AND expires_at > ?1 AND asked_at <= ?3 AND EXISTS (SELECT 1 FROM"
        f" delivery WHERE conv_id=?2 AND {_OF_IT})",
        (now, conv_id, until),
    ).fetchall()


def _last_in(db: sqlite3.Connection, message: InboundMessage, conv_id: int, now: int) -> str | None:
    """The request that is the last thing shown in a conversation, and the only one that waits there, if who wrote the
    message may decide and wrote it later: by the platform's order of messages, which no clock disturbs."""
    shown = db.execute(
        "SELECT approval_id, question, approvers, delivery_id, platform_id, settled_at FROM approval"
        f" INDEXED BY approval_expires CROSS JOIN delivery WHERE approval.{OPEN_APPROVAL} AND expires_at > ?"
        f" AND {_OF_IT} AND conv_id=? AND buttons IS NOT NULL AND delivery.{SAID} ORDER BY delivery_id",
        (now, conv_id),
    ).fetchall()
    if len({one[0] for one in shown}) != 1 or shown[0][1] or not _theirs([shown[0][:3]], message):
        return None
    approval_id, *_, delivery_id, platform_id, settled_at = shown[-1]
    later = db.execute(
        "SELECT 1 FROM delivery WHERE delivery_id > ? AND conv_id=? AND action IN ('send','preview','file')"
        " AND state IN ('sent','sending','unknown','uncertain')",
        (delivery_id, conv_id),
    ).fetchone()
    ours = message.origin.message_id
    after = id_order(ours) > id_order(platform_id) if ours and platform_id else message.sent_at >= settled_at
    return str(approval_id) if after and not later else None


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
