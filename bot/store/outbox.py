"""The ledger of deliveries: each is begun and settled (T6) in the order of planning within its conversation.

States follow durability.md part 5: a send with a known outcome is never repeated, one with an unknown outcome is
settled by the rule of its channel, and an idempotent call is repeated until its outcome is known.
"""

import sqlite3
from collections.abc import Callable, Sequence

from bot.persistence.causes import Cause
from bot.persistence.deliveries import Missed, OwnerNotice, PlanIn
from bot.store import delivery_rows, endings, rows, sending, tool_messages
from bot.store.frozen import HELD_BACK
from bot.store.inbox import move_chat
from bot.store.indexes import OPEN_DELIVERY, OPEN_TURN
from bot.store.writer import Subject, query, transaction
from channels.message import ChatMoved, Place
from channels.outgoing import (
    IDEMPOTENT,
    Action,
    Delivery,
    DeliveryState,
    Elsewhere,
    Moved,
    NotSent,
    Planned,
    Refused,
    SendResult,
    Sent,
    Unknown,
)
from channels.sources import SourceKind

_IDEMPOTENT = (
    f"(action IN {tuple(sorted(action.value for action in IDEMPOTENT))} OR (action='preview' AND target IS NOT NULL))"
)
# Condition for the notices that messages did not arrive in a conversation.
_TELLS = f"source_kind='{SourceKind.MISSED}'"
# Why a delivery is not sent, by what denies it.
_UNSENT = {"off": Cause.UNSENT, "rule": Cause.UNSENT, "hook": Cause.HOOK}
# Whether a reaction, or one before it in its conversation, was put off; messages pass it.
_PUT_OFF = (
    "EXISTS (SELECT 1 FROM delivery AS before WHERE before.conv_id=delivery.conv_id AND before.action='react'"
    " AND before.state='planned' AND before.not_before > 0 AND before.delivery_id<=delivery.delivery_id)"
)
# The longest pause between tries of an idempotent call without an answer, in seconds.
_LONGEST_PAUSE = 60


class Deliveries(Subject):
    """The transactions of the outbox, and of notices to owners."""

    @query
    def next(self, db: sqlite3.Connection, conv_id: int) -> Delivery | None:
        """Return the oldest open delivery of a conversation that no freeze holds back; None if there is none."""
        found = db.execute(
            f"SELECT {delivery_rows.COLUMNS} FROM delivery"
            f" WHERE conv_id=? AND {OPEN_DELIVERY} AND NOT (state='planned' AND {HELD_BACK})"
            f" ORDER BY action='react' AND {_PUT_OFF}, delivery_id LIMIT 1",
            (conv_id,),
        ).fetchone()
        return delivery_rows.read(found, rows.place_of(db, conv_id)) if found else None

    @transaction
    def begin(
        self,
        db: sqlite3.Connection,
        delivery_id: int,
        conv_id: int,
        max_age: int,
        missed: Missed = None,
        unsent: Callable[[], OwnerNotice] | None = None,
        *,
        forbidden: bool = False,
    ) -> Delivery | None:
        """Set a delivery from planned to sending, directly before the call, and return it; None if it must not be sent.

        conv_id: the conversation that is served; None is returned as well if the delivery has moved to another one.
        max_age: after how many milliseconds planned deliveries of the conversation expire. missed: see `Missed`.
        unsent: makes the notice to an owner if a rule of the configuration denies what a turn says. forbidden: a hook
        does not let it be sent.
        """
        now = self._now()
        old = f"conv_id=? AND {OPEN_DELIVERY} AND state='planned' AND planned_at < ? AND NOT {_TELLS}"
        given_up = rows.expire(db, old, (conv_id, now - max_age), Cause.AGE, now)  # all of them, for one notice
        if missed and (since := [when for one in given_up if (when := _remember(db, one))]):
            _tell(db, conv_id, missed(min(since)), now)  # perhaps nothing else will ever be sent there
        if delivery_id in given_up:
            return None
        found = db.execute(
            f"SELECT unless, action, {sending.DENIED} FROM delivery"
            " JOIN conversation AS there USING (conv_id) WHERE delivery_id=?",
            (delivery_id,),
        ).fetchone()
        if found is None:  # its person was forgotten
            return None
        unless, action, denied = found
        if action == Action.DELETE:
            unless = denied = None
        if forbidden:
            denied = "hook"
        if denied or (unless and tool_messages.fate(db, unless).state == "sent"):
            which = "delivery_id=? AND state='planned'"
            if not endings.take_away(db, f"{which} AND action='preview'", delivery_id, now):
                given_up = rows.expire(db, which, (delivery_id,), _UNSENT.get(denied, Cause.SAID_ALREADY), now)
                if denied == "rule" and given_up and unsent is not None:
                    rows.tell_owner(db, unsent(), now)
            return None
        db.execute(  # the message that it edits was planned before, so it is settled
            "UPDATE delivery SET target=(SELECT platform_id FROM delivery AS of WHERE of.delivery_id=delivery.edits)"
            " WHERE delivery_id=? AND edits IS NOT NULL",
            (delivery_id,),
        )
        never = "delivery_id=? AND state='planned' AND action IN ('edit','delete') AND target IS NULL"
        if rows.expire(db, never, (delivery_id,), Cause.NOTHING_TO_EDIT, now):
            return None
        begun = db.execute(
            "UPDATE delivery SET state='sending', attempts=attempts+1, begun_at=?"
            f" WHERE delivery_id=? AND conv_id=? AND state='planned' AND NOT {HELD_BACK}"
            f" RETURNING {delivery_rows.COLUMNS}",
            (now, delivery_id, conv_id),
        ).fetchone()
        return delivery_rows.read(begun, rows.place_of(db, conv_id)) if begun else None

    @transaction
    def settle(
        self,
        db: sqlite3.Connection,
        delivery: Delivery,
        result: SendResult,
        notice: OwnerNotice | None,
        missed: Missed = None,
    ) -> None:
        """T6: store the result of a call, and move a chat that has moved.

        notice: planned if the message was refused, or sent without its manners. missed: see `Missed`.
        """
        now = self._now()
        if isinstance(result, Elsewhere):
            there = rows.conversation(db, result.place)
            again = "conv_id=?, respond=NULL, state='planned', attempts=attempts-1"
            mine = "delivery_id=? AND state='sending'"  # it may have expired during the call
            db.execute(f"UPDATE delivery SET {again} WHERE {mine}", (there, delivery.delivery_id))
            return
        if isinstance(result, Moved):
            place = delivery.place
            moved = ChatMoved(
                channel=place.channel, account=place.account, old_chat=place.chat, new_chat=result.new_chat
            )
            move_chat(db, moved)
        state, conv_id, when = _settle(db, delivery, result, now)
        settled = state is DeliveryState.FAILED or isinstance(result, Sent)
        if settled and notice is not None and delivery.source.kind is not SourceKind.REFUSED:
            rows.tell_owner(db, notice, now, besides=delivery.conv_id)
        if state is DeliveryState.UNCERTAIN:
            _remember(db, delivery.delivery_id)
        if state is DeliveryState.SENT and when and delivery.source.kind is SourceKind.MISSED:
            db.execute(f"DELETE FROM kv WHERE scope='{rows.MISSED}' AND key=?", (str(conv_id),))
        elif state is DeliveryState.SENT and when and missed and delivery.action in (Action.SEND, Action.FILE):
            _tell(db, conv_id, missed(int(when)), now)

    @transaction
    def tell_owner(self, db: sqlite3.Connection, notice: OwnerNotice) -> None:
        """Plan a notice to an owner."""
        rows.tell_owner(db, notice, self._now())

    @transaction
    def recover(self, db: sqlite3.Connection) -> None:
        """Set deliveries that a crash left in `sending` to unknown, or to planned if they are idempotent."""
        db.execute(
            f"UPDATE delivery SET state=CASE WHEN {_IDEMPOTENT} THEN 'planned' ELSE 'unknown' END,"
            f" error='the service ended during the call' WHERE {OPEN_DELIVERY} AND state='sending'"
        )

    @query
    def open_conversations(self, db: sqlite3.Connection) -> Sequence[tuple[int, Place]]:
        """Return the conversations that have open deliveries."""
        found = db.execute(f"SELECT DISTINCT conv_id FROM delivery WHERE {OPEN_DELIVERY}").fetchall()
        return [(conv_id, rows.place_of(db, conv_id)) for (conv_id,) in found]


def _remember(db: sqlite3.Connection, delivery_id: int) -> int | None:
    """Store that a message did not arrive, until its conversation is told; return the time of the first such message.

    None if people miss nothing: the delivery showed no message, or it is one of a beat, which is sent again.
    """
    found = db.execute(
        "INSERT INTO kv (scope, key, value) SELECT ?, conv_id, planned_at FROM delivery WHERE delivery_id=?"
        " AND (action IN ('send','file') OR action='preview' AND step IS NOT NULL)"
        " AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.turn_id=delivery.turn_id AND kind='beat')"
        " ON CONFLICT (scope, key) DO UPDATE SET value=value RETURNING value",
        (rows.MISSED, delivery_id),
    ).fetchone()
    return int(found[0]) if found else None


def _tell(db: sqlite3.Connection, conv_id: int, blocks: Sequence[Planned], now: int) -> None:
    """Plan the notice that messages did not arrive, unless one is open already."""
    told = f"SELECT 1 FROM delivery WHERE conv_id=? AND {OPEN_DELIVERY} AND {_TELLS} LIMIT 1"
    if not db.execute(told, (conv_id,)).fetchone():
        rows.plan(db, PlanIn(conv_id), blocks, None, now)


def _settle(
    db: sqlite3.Connection, delivery: Delivery, result: SendResult, now: int
) -> tuple[DeliveryState | None, int, str | None]:
    """Store the result of a send, or of the search for its message, in the row of an open delivery.

    Returns the new state, or None for a preview that is not final; the conversation of the delivery, which may have
    moved; and the time of the first message that did not arrive there, if there is one.
    """
    state, error, not_before = DeliveryState.PLANNED, "", 0
    platform_id: str | None = None
    body: str | None = None
    match result:
        case Sent(platform_id=platform_id):
            state = DeliveryState.SENT
        case Refused(reason=error):
            state = DeliveryState.FAILED
        case NotSent(retry_after=wait, reason=error, body=body):
            not_before = now + int((wait or 0) * 1000)
        case Moved():
            error = "the chat moved"
        case Unknown(reason=error) if delivery.action in IDEMPOTENT:
            not_before = now + 1000 * min(2**delivery.attempts, _LONGEST_PAUSE)
        case Unknown(reason=error):
            looked = delivery.state is DeliveryState.UNKNOWN
            state = DeliveryState.UNCERTAIN if looked else DeliveryState.UNKNOWN
    previewed = db.execute(
        "SELECT step IS NOT NULL FROM delivery WHERE delivery_id=? AND action='preview'", (delivery.delivery_id,)
    ).fetchone()
    lost = state in (DeliveryState.FAILED, DeliveryState.UNCERTAIN)
    action = _goes_on(delivery, state, lost) if previewed == (1,) else None
    target = platform_id if action == "preview" else None
    state = state if action is None else DeliveryState.PLANNED
    settled = None if state in (DeliveryState.PLANNED, DeliveryState.UNKNOWN) else now
    # a send that certainly did not happen is no attempt, because only doubtful ones are limited
    undo = int(isinstance(result, NotSent | Moved) and delivery.state is not DeliveryState.UNKNOWN)
    found = db.execute(
        "UPDATE delivery SET state=?, error=?, not_before=?, settled_at=?, platform_id=?, attempts=attempts-?,"
        " nonce=nonce + ?,"
        " body=iif(body=?, coalesce(?, body), body), action=coalesce(?, action), target=iif(? IS NULL, target, ?),"
        # the chat may have moved during the call
        " conv_id=(SELECT coalesce(moved_to, conv_id) FROM conversation WHERE conv_id=delivery.conv_id)"
        f" WHERE delivery_id=? AND {OPEN_DELIVERY} AND state=?"
        " RETURNING conv_id,"
        f" (SELECT value FROM kv WHERE scope='{rows.MISSED}' AND key=CAST(delivery.conv_id AS TEXT))",
        (
            *(state, error or None, not_before, settled, platform_id, undo, int(action == "send" and lost)),
            *(delivery.body, body, action, action, target, delivery.delivery_id, delivery.state),
        ),
    ).fetchone()
    conv_id, missed = found or (delivery.conv_id, None)
    if previewed == (0,) and delivery.turn_id is not None:
        if db.execute(f"SELECT 1 FROM turn WHERE turn_id=? AND NOT {OPEN_TURN}", (delivery.turn_id,)).fetchone():
            endings.drop_previews(db, delivery.turn_id, now)
        return None, conv_id, missed
    return state, conv_id, missed


def _goes_on(delivery: Delivery, state: DeliveryState, lost: bool) -> str | None:
    """Return the next action of a preview whose text became final during the call; None if the call has shown it."""
    if lost or (state is DeliveryState.PLANNED and delivery.action is Action.SEND):
        return "send"  # into a message of their own
    if state is DeliveryState.SENT and (delivery.action is Action.SEND or delivery.step is None):
        return "preview"  # it shows what was known when the call began
    return None
