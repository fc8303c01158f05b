"""Accepting what people wrote (T1): stored before the platform is told, once per event key, in order of arrival."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from bot.persistence.values import Accepted, AcceptedMessage, Duplicate, Fresh, Heard, Later, PlanIn
from bot.store import codec, history, rows
from bot.store.approvals import WAITS
from bot.store.indexes import DELAYED, OPEN_DELIVERY, OPEN_TURN, WAITING
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND, UNSEEN
from bot.store.subject import Subject, query, transaction
from channels.base import Mark
from channels.message import ChatMoved, InboundKind, InboundMessage, UnreadEvent

UNREAD_LIMIT = 65_536
"""Characters kept of an event that could not be read."""


class Inbox(Subject):
    """Order of acceptance is order within a session: `seq` is given here, by the database."""

    @transaction
    def accept(
        self, db: sqlite3.Connection, batch: Sequence[Accepted], mark: Mark | None = None
    ) -> Sequence[Fresh | Duplicate]:
        now = self._now()
        answers = [self._accept(db, item, now) for item in batch]
        if mark:
            rows.set_value(db, mark.scope, "mark", mark.value)
        return answers

    @transaction
    def steer(self, db: sqlite3.Connection, turn_id: str, what: InboundMessage | int) -> bool:
        turn = db.execute(
            f"SELECT session_key, reply_conv FROM turn WHERE turn_id=? AND {OPEN_TURN}", (turn_id,)
        ).fetchone()
        if turn is None:
            return False
        session_key, conv_id = turn
        if isinstance(what, InboundMessage):
            return self._insert(db, what, session_key, conv_id, self._now(), "steering", turn_id) is not None
        taken = db.execute(
            f"UPDATE inbox SET state='steering', turn_id=? WHERE seq=? AND {WAITING} AND {FOR_A_RUN}"
            f" AND turn_id IS NULL AND session_key=? AND conv_id=? AND ({rows.COMMANDS_BEFORE}) = 0",
            (turn_id, what, session_key, conv_id),
        )
        return taken.rowcount == 1

    @query
    def mark(self, db: sqlite3.Connection, scope: str) -> str | None:
        found = db.execute("SELECT value FROM kv WHERE scope=? AND key='mark'", (scope,)).fetchone()
        return found[0] if found else None

    @query
    def waiting_sessions(self, db: sqlite3.Connection, limit: int) -> Sequence[tuple[str, bool]]:
        found = db.execute(
            "SELECT session_key, background, min(seq) AS since FROM ("
            f" SELECT session_key, {IN_BACKGROUND} AS background,"
            " (SELECT min(seq) FROM inbox WHERE inbox.turn_id = turn.turn_id) AS seq FROM turn"
            f" WHERE {OPEN_TURN} AND (state='queued' AND epoch > 0 OR state='parked' AND NOT {WAITS})"
            f" UNION ALL SELECT session_key, {IN_BACKGROUND}, seq FROM inbox WHERE {WAITING} AND {FOR_A_RUN}"
            " AND ready_at <= ?1) GROUP BY session_key, background ORDER BY since LIMIT ?2",
            (self._now(), limit),
        ).fetchall()
        return [(row[0], bool(row[1])) for row in found]

    @query
    def later(self, db: sqlite3.Connection, limit: int) -> Sequence[Later]:
        found = db.execute(
            f"SELECT session_key, {IN_BACKGROUND}, ready_at, min(ready_at - ?1, ready_at - accepted_at) FROM inbox"
            f" WHERE {DELAYED} AND {FOR_A_RUN} AND ready_at > ?1 ORDER BY ready_at LIMIT ?2",
            (self._now(), limit),
        ).fetchall()
        return [
            Later(session_key, bool(background), ready_at, wait) for session_key, background, ready_at, wait in found
        ]

    @query
    def open_commands(self, db: sqlite3.Connection) -> Sequence[tuple[int, str, InboundMessage]]:
        found = db.execute(
            "SELECT seq, session_key, payload FROM inbox INDEXED BY inbox_waiting"
            f" WHERE {WAITING} AND {rows.CARRIED_OUT} ORDER BY seq"
        ).fetchall()
        read = ((seq, session_key, codec.read_inbound(payload, seq)) for seq, session_key, payload in found)
        return [(seq, session_key, message) for seq, session_key, message in read if message is not None]

    @query
    def count_waiting(self, db: sqlite3.Connection, session_key: str) -> int:
        found = db.execute(
            f"SELECT count(*) FROM inbox WHERE session_key=? AND {WAITING} AND {FOR_A_RUN}", (session_key,)
        ).fetchone()
        return int(found[0])

    def _accept(self, db: sqlite3.Connection, item: Accepted, now: int) -> Fresh | Duplicate:
        match item:
            case AcceptedMessage():
                return self._accept_message(db, item, now)
            case UnreadEvent():
                made = db.execute(
                    "INSERT INTO inbox (channel, account, event_key, kind, accepted_at, payload, state, reason)"
                    " VALUES (?,?,?,'event',?,?,'unread',?) ON CONFLICT DO NOTHING RETURNING seq",
                    (item.channel, item.account, item.event_key, now, item.raw[:UNREAD_LIMIT], item.error),
                ).fetchone()
                return Fresh(made[0]) if made else Duplicate(0, None, None)
            case ChatMoved():
                move_chat(db, item)
                return Fresh(0)
            case Heard():
                history.move_cursor(db, item)
                return Fresh(0)

    def _accept_message(self, db: sqlite3.Connection, item: AcceptedMessage, now: int) -> Fresh | Duplicate:
        message = item.message
        place = message.origin.place
        found = db.execute(
            "SELECT seq, turn_id, digest FROM inbox WHERE channel=? AND account=? AND event_key=?",
            (place.channel, place.account, message.event_key),
        ).fetchone()
        if found and (item.behind or not history.take_anew(db, found[0])):
            return Duplicate(*found)
        history.change_overheard(db, message)
        conv_id = rows.conversation(db, place)
        if message.kind is InboundKind.EDIT and item.state == "waiting":
            item = _edited(db, item, conv_id)
        if item.state == "overheard":
            history.overhear(db, conv_id, message)
            return Fresh(0)
        if item.session_key is not None:
            used_in = conv_id if message.by_person else None
            transcript = rows.transcript_of(db, item.session_key, used_in, now, self._new_id())
            if item.turn_id is not None:
                db.execute(
                    "INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, reply_conv, created_at)"
                    " VALUES (?,?,?,'api','queued',?,?)",
                    (item.turn_id, item.session_key, transcript, conv_id, now),
                )
        if item.behind and item.state == "waiting" and message.kind is InboundKind.MESSAGE:
            item = replace(item, state="held", reason=history.BEHIND)
        ready_at = now + item.delay if item.delay else 0
        seq = self._insert(db, message, item.session_key, conv_id, now, item.state, item.turn_id, item, ready_at)
        return Fresh(seq or 0, ready_at, rows.plan(db, PlanIn(conv_id), item.say, None, now))

    def _insert(
        self,
        db: sqlite3.Connection,
        message: InboundMessage,
        session_key: str | None,
        conv_id: int,
        now: int,
        state: str,
        turn_id: str | None,
        item: AcceptedMessage | None = None,
        ready_at: int = 0,
    ) -> int | None:
        place, origin = message.origin.place, message.origin
        made = db.execute(
            "INSERT INTO inbox (channel, account, event_key, conv_id, session_key, kind, message_id, sender, sent_at,"
            " accepted_at, payload, digest, state, reason, turn_id, ready_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
            " ON CONFLICT DO NOTHING RETURNING seq",
            (
                *(place.channel, place.account, message.event_key, conv_id, session_key, message.kind.value),
                *(origin.message_id, origin.sender, message.sent_at, now, codec.dump_inbound(message)),
                *(item.digest if item else None, state, item.reason if item else None, turn_id, ready_at),
            ),
        ).fetchone()
        return int(made[0]) if made else None


def _edited(db: sqlite3.Connection, item: AcceptedMessage, conv_id: int) -> AcceptedMessage:
    """An edit replaces the words of a message that no model has seen (durability.md part 6); else it is dropped."""
    message = item.message
    found = db.execute(
        f"SELECT seq, payload FROM inbox WHERE conv_id=? AND message_id=? AND {UNSEEN} AND kind='message'",
        (conv_id, message.origin.message_id),
    ).fetchone()
    if found is None:
        return replace(item, state="dropped", reason="edited too late")
    original = codec.read_inbound(found[1], found[0]) or replace(message, kind=InboundKind.MESSAGE)
    words = replace(original, text=message.text, attachments=message.attachments)
    db.execute("UPDATE inbox SET payload=? WHERE seq=?", (codec.dump_inbound(words), found[0]))
    return replace(item, state="dropped", reason="replaced the message")


def move_chat(db: sqlite3.Connection, moved: ChatMoved) -> None:
    """Let what is open follow a chat to its new id: messages that wait, turns, deliveries.

    Session keys stay: those of direct messages name a person and not a chat.
    """
    olds = db.execute(
        "SELECT conv_id, thread, kind FROM conversation WHERE channel=? AND account=? AND chat=? AND moved_to IS NULL",
        (moved.channel, moved.account, moved.old_chat),
    ).fetchall()
    for old, thread, kind in olds:
        db.execute(
            "INSERT INTO conversation (channel, account, chat, thread, kind) VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING",
            (moved.channel, moved.account, moved.new_chat, thread, kind),
        )
        (new,) = db.execute(
            "SELECT conv_id FROM conversation WHERE channel=? AND account=? AND chat=? AND thread=?",
            (moved.channel, moved.account, moved.new_chat, thread),
        ).fetchone()
        db.execute("UPDATE conversation SET moved_to=? WHERE conv_id=?", (new, old))
        for moving in (
            f"UPDATE delivery SET conv_id=? WHERE conv_id=? AND {OPEN_DELIVERY}",
            f"UPDATE turn SET reply_conv=? WHERE reply_conv=? AND {OPEN_TURN}",
            f"UPDATE inbox SET conv_id=? WHERE conv_id=? AND {UNSEEN}",
            "UPDATE session SET last_conv=? WHERE last_conv=?",
        ):
            db.execute(moving, (new, old))
