"""Accepts messages (T1): each is stored once per event key, before the platform gets its acknowledgement."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace

from agent.events import Outcome
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import GATHER_MOST, Accepted, AcceptedMessage, Duplicate, Fresh, Heard
from bot.store import codec, edits, endings, history, queueing, rows
from bot.store.approvals import WAITS
from bot.store.exchanges import may_ask_anew
from bot.store.gone import give_back, list_told
from bot.store.indexes import OPEN_APPROVAL, OPEN_DELIVERY, OPEN_TURN, WAITING
from bot.store.people import admitted
from bot.store.plain_decisions import meant_by, waited_for
from bot.store.queueing import Queued
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND, UNSEEN
from bot.store.writer import Subject, query, transaction
from channels.base import Mark
from channels.message import CARRIED_OUT, ChatKind, ChatMoved, InboundKind, InboundMessage, Place, UnreadEvent
from channels.outgoing import Delivery, Planned

# The kinds of messages that end a wait of gathered ones, or join it.
_IN_ORDER = CARRIED_OUT | {InboundKind.MESSAGE}
# Milliseconds within which another copy of a message may bring more of it to the run that has taken it.
_TWIN = 60_000
# The number of characters that are kept of an event that could not be read.
UNREAD_LIMIT = 65_536


class Inbox(Subject):
    """The accepted messages. Their order within a session is that of acceptance (`seq`)."""

    @transaction
    def accept(
        self, db: sqlite3.Connection, batch: Sequence[Accepted], mark: Mark | None = None
    ) -> Sequence[Fresh | Duplicate]:
        """T1: store a batch and the mark after it; return one result per item, in order.

        An edit or a deletion finds its message by `message_key`. If no model has seen the message, it is replaced or
        withdrawn. If it is being answered, an edit becomes a message to the next turn, and its `say` is planned. Else
        the next turn of the session is told of the change. Only the last edit counts; one with the same text changes
        nothing. Raises StoreUnavailable if nothing was stored.
        """
        now = self._now()
        answers = [self._accept(db, item, now) for item in batch]
        if mark:
            rows.set_value(db, mark.scope, "mark", mark.value)
        return answers

    @transaction
    def steer(
        self, db: sqlite3.Connection, turn_id: str, what: InboundMessage | int, *, only_own: bool = False
    ) -> bool:
        """Give an open turn a text to read before its next answer: a new one, or a waiting one by its seq.

        only_own: a new text may join the turn only if its sender alone wrote the messages of the turn, because the run
        has the rights of their senders. Returns False and changes nothing if the turn has ended or `only_own` forbids
        it, or if the message does not wait, is in another conversation than the turn, or follows an open command.
        """
        turn = db.execute(
            f"SELECT session_key, reply_conv FROM turn WHERE turn_id=? AND {OPEN_TURN}", (turn_id,)
        ).fetchone()
        if turn is None:
            return False
        session_key, conv_id = turn
        if isinstance(what, InboundMessage):
            others = "SELECT 1 FROM inbox WHERE turn_id=? AND sender<>?"
            if only_own and db.execute(others, (turn_id, what.origin.sender)).fetchone():
                return False
            item = AcceptedMessage(message=what, session_key=session_key, turn_id=turn_id)
            return self._insert(db, item, "steering", conv_id, self._now()) is not None
        taken = db.execute(
            f"UPDATE inbox SET state='steering', turn_id=? WHERE seq=? AND {WAITING} AND {FOR_A_RUN}"
            f" AND turn_id IS NULL AND session_key=? AND conv_id=? AND ({rows.COMMANDS_BEFORE}) = 0",
            (turn_id, what, session_key, conv_id),
        )
        return taken.rowcount == 1

    @query
    def mark(self, db: sqlite3.Connection, scope: str) -> str | None:
        """Return the value of the last mark of a scope, such as a poll offset; None if there is none."""
        found = db.execute("SELECT value FROM kv WHERE scope=? AND key='mark'", (scope,)).fetchone()
        return found[0] if found else None

    @query
    def waiting_sessions(
        self, db: sqlite3.Connection, limit: int, each: int = 4096, owners: Collection[str] = ()
    ) -> Sequence[tuple[str, bool, str]]:
        """Return sessions with something to run, an owner's first, then the longest waiting.

        Each comes with True if it is work of the background, and the name (`rows.ASKER`) of an owner who wrote in it,
        else of who wrote first. each: the most sessions of one guest; the second comes behind every other's first.
        """
        found = db.execute(
            "WITH work AS ("
            f" SELECT turn.session_key AS session, turn.background, inbox.seq, {rows.ASKER} AS asker FROM"
            f" (SELECT turn_id, session_key, {IN_BACKGROUND} AS background FROM turn WHERE {OPEN_TURN}"
            f" AND (state='queued' AND epoch > 0 OR state='parked' AND NOT {WAITS})) AS turn"
            f" LEFT JOIN inbox USING (turn_id) UNION ALL SELECT session_key, {IN_BACKGROUND}, seq, {rows.ASKER}"
            f" FROM inbox WHERE {WAITING} AND {FOR_A_RUN} AND ready_at <= ?1),"
            " sessions AS (SELECT session, background, min(seq) AS since, coalesce(asker, '') AS first,"
            " total(asker IN (SELECT value FROM json_each(?3))) > 0 AS owned"
            " FROM work GROUP BY session, background),"
            " ordered AS (SELECT *, iif(owned, 1,"
            " row_number() OVER (PARTITION BY background, owned, first ORDER BY since)) AS nth FROM sessions)"
            " SELECT session, background, first, owned FROM ordered WHERE nth <= ?4"
            " ORDER BY owned DESC, nth, since LIMIT ?2",
            (self._now(), limit, json.dumps([*owners]), each),
        ).fetchall()
        some_owner = next(iter(owners), "")
        return [
            (session, bool(background), some_owner if owned else first) for session, background, first, owned in found
        ]

    @query
    def open_commands(self, db: sqlite3.Connection) -> Sequence[tuple[int, str, InboundMessage]]:
        """Return open commands, oldest first, as seq, session key and message. Damaged ones are skipped."""
        found = db.execute(
            "SELECT seq, session_key, payload FROM inbox INDEXED BY inbox_waiting"
            f" WHERE {WAITING} AND {rows.CARRIED_OUT} ORDER BY seq"
        ).fetchall()
        read = ((seq, session_key, codec.read_inbound(payload, seq)) for seq, session_key, payload in found)
        return [(seq, session_key, message) for seq, session_key, message in read if message is not None]

    @query
    def unanswered(self, db: sqlite3.Connection, session_key: str) -> Sequence[tuple[int, InboundMessage]]:
        """Return the messages that wait for a turn of a session, oldest first, without those of the background."""
        found = db.execute(
            f"SELECT seq, payload FROM inbox WHERE session_key=? AND {WAITING} AND {FOR_A_RUN} AND NOT {IN_BACKGROUND}"
            " ORDER BY seq",
            (session_key,),
        ).fetchall()
        read = ((seq, codec.read_inbound(payload, seq)) for seq, payload in found)
        return [(seq, message) for seq, message in read if message is not None]

    @transaction
    def drop(self, db: sqlite3.Connection, seq: int, reason: Cause) -> None:
        """Drop a message that waits: the sign that it was seen goes, and the turn that a program waits for ends."""
        dropped = f"UPDATE inbox SET state='dropped', reason=? WHERE seq=? AND {WAITING} RETURNING turn_id"
        if (taken := db.execute(dropped, (reason, seq)).fetchone()) is None:
            return
        endings.take_acknowledgements_away(db, "seq=?", seq, self._now())
        if taken[0] is not None:  # made at acceptance, for the terminal or a program
            endings.end_turn(db, taken[0], Outcome.ABORTED, self._now())

    @query
    def count_waiting(self, db: sqlite3.Connection, session_key: str) -> int:
        """Return how many messages wait in a session, ready or not; a stop would drop them."""
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
                if made is None:
                    give_back(db, "inbox")
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
        if found and ((item.behind and not item.gathers) or not history.take_anew(db, found[0])):
            return self._copied(db, item, found, now)
        history.change_overheard(db, message)
        if message.kind in edits.CHANGES and item.state != "dropped":
            return self._change(db, item, now)
        conv_id = rows.conversation(db, place)
        item = admitted(db, item, conv_id, now)
        message = item.message
        if item.state == "overheard":
            history.overhear(db, conv_id, message)
            return Fresh(0, state=item.state)
        if message.part_of and message.kind is InboundKind.MESSAGE and item.state == "waiting":
            for part in history.other_parts(db, conv_id, message):
                self._accept_message(db, replace(item, message=part, follows=None, say=()), now)
        if item.session_key is not None and item.state == "waiting":
            used_in = conv_id if message.by_person else None
            transcript, _ = rows.transcript_of(db, item.session_key, used_in, now, self._new_id())
            if item.turn_id is not None:
                kind = rows.TURN_OF.get(message.kind, "api")
                rows.new_turn(db, item.turn_id, item.session_key, transcript, kind, conv_id, now)
        item, waits_for = _asked_about(db, item, conv_id, now)
        if item.asks_around and item.state == "waiting" and history.is_new_in(db, conv_id, item.session_key):
            item = replace(item, behind=True, gathers=True)
        if item.behind and item.state == "waiting" and item.message.kind is InboundKind.MESSAGE:
            item = replace(item, state="held", reason=Cause.BEHIND)
        placed = queueing.place(db, item, conv_id, now)
        placed, ready_at, wake = _gathered(db, placed, conv_id, now)
        item = placed.item
        seq = self._insert(db, item, item.state, conv_id, now, ready_at=ready_at, queued=placed.queued)
        own = rows.plan(db, PlanIn(conv_id), item.say, None, now)
        if seq and (own or placed.said) and item.state in ("held", "dropped"):
            list_told(db, seq, own or placed.said)
        said = placed.said + own
        said += rows.tell_owner(db, item.notice, now) if item.notice else ()
        wait = max(0, min(ready_at - now, item.delay))
        became = item.message if item.message.kind is not message.kind else None
        fresh = Fresh(seq or 0, ready_at, said, item.state, item.reason, wait, wake, became, waits_for, now)
        return replace(fresh, stopped=placed.stopped) if placed.stopped else fresh

    def _copied(
        self, db: sqlite3.Connection, item: AcceptedMessage, found: tuple[int, str | None, str | None], now: int
    ) -> Fresh | Duplicate:
        """Complete a message of which a later copy knows more; the first event about it may lack files and tables.

        If a run has taken it, what the copy has more is a message of its own.
        """
        copy, seq = item.message, found[0]
        asked = "SELECT state, payload, accepted_at FROM inbox WHERE seq=?"
        state, payload, accepted_at = db.execute(asked, (seq,)).fetchone()
        late = state not in edits.UNSEEN and (state not in ("taken", "done") or now - accepted_at > _TWIN)
        if late or copy.kind is not InboundKind.MESSAGE or item.state in ("dropped", "overheard"):
            return Duplicate(*found)
        first = codec.read_inbound(payload, seq)
        if first is None or not edits.knows_more(copy, first):
            return Duplicate(*found)
        names = {(one.name, one.size) for one in first.attachments}
        rest = tuple(one for one in copy.attachments if (one.name, one.size) not in names)
        if state in edits.UNSEEN:
            files = (*first.attachments, *rest)
            whole = replace(first, text=copy.text, attachments=files, forwarded=copy.forwarded or first.forwarded)
            db.execute("UPDATE inbox SET payload=? WHERE seq=?", (codec.INBOUND.dump(whole), seq))
            return Duplicate(*found)
        text = copy.text.removeprefix(first.text).strip()
        more = replace(copy, event_key=f"{copy.event_key}:more", text=text, attachments=rest)
        return self._accept_message(db, replace(item, message=more, follows=None, say=()), now)

    def _change(self, db: sqlite3.Connection, item: AcceptedMessage, now: int) -> Fresh | Duplicate:
        """Apply an edit or a deletion and store it, unless it is one of a stranger.

        A deletion of an unknown message is not stored: such events come from every channel that the bot can see.
        """
        if item.anew is not None and edits.is_new(db, item.anew.message):
            history.change_overheard(db, replace(item.message, kind=InboundKind.DELETE))
            fresh = self._accept_message(db, item.anew, now)
            return replace(fresh, became=fresh.became or item.anew.message) if isinstance(fresh, Fresh) else fresh
        made = edits.change(db, item)
        if item.state == "held":
            return Duplicate(0, None, None)
        if made.item.reason is Cause.TOO_LATE and item.message.kind is InboundKind.DELETE:
            return Fresh(0, reason=made.item.reason)
        conv_id = made.conv_id or rows.conversation(db, item.message.origin.place)
        if not made.told:
            seq = self._insert(db, made.item, made.state, conv_id, now) or 0
            return Fresh(seq, said=_offer(db, item.offer, made.item, conv_id, now) if item.offer else ())
        placed = queueing.place(db, made.item, conv_id, now)
        item, queued = placed.item, placed.queued
        seq = self._insert(db, item, item.state, conv_id, now, kind=InboundKind.MESSAGE, queued=queued) or 0
        say = item.say if item.state == "waiting" and not placed.stopped else ()
        said = placed.said + rows.plan(db, PlanIn(conv_id), say, None, now)
        return Fresh(seq, said=said, wake=item.session_key, stopped=placed.stopped)

    def _insert(
        self,
        db: sqlite3.Connection,
        item: AcceptedMessage,
        state: str,
        conv_id: int,
        now: int,
        *,
        ready_at: int = 0,
        kind: InboundKind | None = None,
        queued: str | None = None,
    ) -> int | None:
        message, origin, place = item.message, item.message.origin, item.message.origin.place
        made = db.execute(
            "INSERT INTO inbox (channel, account, event_key, conv_id, session_key, kind, message_id, sender, sent_at,"
            " accepted_at, payload, digest, state, reason, turn_id, ready_at, gathers, queued)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
            " ON CONFLICT DO NOTHING RETURNING seq",
            (
                *(place.channel, place.account, message.event_key, conv_id, item.session_key, kind or message.kind),
                *(origin.message_id, origin.sender, message.sent_at, now, codec.INBOUND.dump(message)),
                *(item.digest, state, item.reason, item.turn_id, ready_at, item.gathers, queued),
            ),
        ).fetchone()
        if made is None:
            give_back(db, "inbox")
        return int(made[0]) if made else None


def _offer(
    db: sqlite3.Connection, offer: Sequence[Planned], edited: AcceptedMessage, conv_id: int, now: int
) -> tuple[Delivery, ...]:
    """Plan the offer to answer an edited message anew, if its answer is the last that was said; once for an answer."""
    origin = edited.message.origin
    asker = (origin.place.channel, origin.sender)
    turn_id = may_ask_anew(db, edited.session_key or "", origin.message_id, asker)
    blocks = [replace(one, source=one.source.also(turn_id)) for one in offer] if turn_id else []
    return rows.plan(db, PlanIn(conv_id), blocks, None, now)


def _asked_about(
    db: sqlite3.Connection, item: AcceptedMessage, conv_id: int, now: int
) -> tuple[AcceptedMessage, str | None]:
    """Make a message that answers a request the command it stands for.

    Returns the message, and the approval that its session waits for or that was shown last in its conversation.
    """
    message = item.message
    is_said = item.state == "waiting" and message.kind in (InboundKind.MESSAGE, InboundKind.API)
    if not is_said or item.session_key is None or not _is_anything_open(db, now):
        return item, None
    command, shown = meant_by(db, message, conv_id, now) if message.by_person and message.by_hand else (None, None)
    if command is not None:
        return replace(item, message=command, delay=0, gathers=False), None
    return item, waited_for(db, item.session_key, now) or shown


def _is_anything_open(db: sqlite3.Connection, now: int) -> bool:
    """Return whether any request is open; if none is, no message can be about one."""
    found = db.execute(f"SELECT 1 FROM approval WHERE {OPEN_APPROVAL} AND expires_at > ? LIMIT 1", (now,))
    return found.fetchone() is not None


def _gathered(db: sqlite3.Connection, placed: Queued, conv_id: int, now: int) -> tuple[Queued, int, str | None]:
    """Return a message, when it is ready (milliseconds), and the session to be woken if the message ends a wait.

    Gathered messages that one turn takes together have the same ready_at, and are the same to their session.
    """
    item = placed.item
    message, ready_at = item.message, now + item.delay if item.delay else -int(item.gathers)
    if item.session_key is None or item.state != "waiting":
        return replace(placed, item=replace(item, gathers=item.gathers and item.behind)), 0, None
    if message.kind not in _IN_ORDER:
        return placed, ready_at, None
    gathering = f"session_key=? AND {WAITING} AND gathers AND ready_at > ? AND conv_id=? AND sender=?"
    which = (item.session_key, now, conv_id, message.origin.sender)
    of_all = f"SELECT min(accepted_at), max(ready_at), max(queued) FROM inbox WHERE {gathering}"
    first, moment, queued = db.execute(of_all, which).fetchone()
    if first is None or (item.delay and not item.gathers):
        return placed, ready_at, None
    ends = not item.gathers
    ready_at = now if ends else min(max(ready_at, moment), first + GATHER_MOST * item.delay)
    queued = placed.queued or queued
    db.execute(f"UPDATE inbox SET ready_at=?, queued=? WHERE {gathering}", (ready_at, queued, *which))
    joins = message.kind is InboundKind.MESSAGE
    placed = replace(placed, item=replace(item, gathers=joins), queued=queued if joins else None)
    return placed, ready_at if joins else 0, item.session_key if ends else None


def move_chat(db: sqlite3.Connection, moved: ChatMoved) -> None:
    """Move open messages, turns and deliveries of a chat to its new id.

    Session keys stay the same: those of direct messages name a person and not a chat.
    """
    olds = db.execute(
        "SELECT conv_id, thread, kind FROM conversation WHERE channel=? AND account=? AND chat=? AND moved_to IS NULL",
        (moved.channel, moved.account, moved.old_chat),
    ).fetchall()
    for old, thread, kind in olds:
        where = {"channel": moved.channel, "account": moved.account, "chat": moved.new_chat, "thread": thread}
        new = rows.conversation(db, Place(**where, kind=ChatKind(kind)))
        db.execute("UPDATE conversation SET moved_to=? WHERE conv_id=?", (new, old))
        for moving in (
            f"UPDATE delivery SET conv_id=? WHERE conv_id=? AND {OPEN_DELIVERY}",
            f"UPDATE turn SET reply_conv=? WHERE reply_conv=? AND {OPEN_TURN}",
            f"UPDATE inbox SET conv_id=? WHERE conv_id=? AND {UNSEEN}",
            "UPDATE session SET last_conv=? WHERE last_conv=?",
            f"UPDATE OR REPLACE kv SET key=? WHERE scope='{rows.MISSED}' AND key=?",
        ):
            db.execute(moving, (new, old))
