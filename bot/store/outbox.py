"""The ledger of deliveries: begin and settle (T6), in the order of planning within a conversation.

States and their settling are those of durability.md part 5: a send whose outcome is known is never repeated, one whose
outcome the platform never told is settled by the channel's rule; what is idempotent is repeated until it is known.
"""

import sqlite3
from collections.abc import Sequence

from bot.persistence.values import REFUSED, OwnerNotice
from bot.store import rows
from bot.store.inbox import move_chat
from bot.store.indexes import OPEN_DELIVERY
from bot.store.subject import Subject, query, transaction
from channels.message import ChatMoved, Place
from channels.outgoing import IDEMPOTENT, Delivery, DeliveryState, Moved, NotSent, Refused, SendResult, Sent, Unknown

_IDEMPOTENT = f"action IN {tuple(sorted(action.value for action in IDEMPOTENT))}"
_LONGEST_PAUSE = 60
"""Seconds until an idempotent call is repeated, which nobody has answered again and again."""


class Deliveries(Subject):
    """Transactions of the outbox."""

    @query
    def next(self, db: sqlite3.Connection, conv_id: int) -> Delivery | None:
        found = db.execute(
            f"SELECT {rows.DELIVERY_COLUMNS} FROM delivery"
            f" WHERE conv_id=? AND {OPEN_DELIVERY} ORDER BY delivery_id LIMIT 1",
            (conv_id,),
        ).fetchone()
        return rows.delivery(found, rows.place_of(db, conv_id)) if found else None

    @transaction
    def begin(self, db: sqlite3.Connection, delivery_id: int, conv_id: int, max_age: int) -> Delivery | None:
        now = self._now()
        old = "delivery_id=? AND state='planned' AND planned_at < ?"
        if rows.expire(db, old, (delivery_id, now - max_age), "age", now):
            return None
        begun = db.execute(
            "UPDATE delivery SET state='sending', attempts=attempts+1, begun_at=?"
            f" WHERE delivery_id=? AND conv_id=? AND state='planned' RETURNING {rows.DELIVERY_COLUMNS}",
            (now, delivery_id, conv_id),
        ).fetchone()
        return rows.delivery(begun, rows.place_of(db, conv_id)) if begun else None

    @transaction
    def settle(self, db: sqlite3.Connection, delivery: Delivery, result: SendResult, notice: OwnerNotice) -> None:
        now = self._now()
        if isinstance(result, Moved):
            place = delivery.place
            moved = ChatMoved(
                channel=place.channel, account=place.account, old_chat=place.chat, new_chat=result.new_chat
            )
            move_chat(db, moved)
        _settle(db, delivery, result, now)
        if isinstance(result, Refused) and not delivery.source.startswith(REFUSED):
            rows.tell_owner(db, notice, now, besides=delivery.conv_id)

    @transaction
    def tell_owner(self, db: sqlite3.Connection, notice: OwnerNotice) -> None:
        rows.tell_owner(db, notice, self._now())

    @transaction
    def recover(self, db: sqlite3.Connection) -> None:
        db.execute(
            f"UPDATE delivery SET state=CASE WHEN {_IDEMPOTENT} THEN 'planned' ELSE 'unknown' END,"
            f" error='the service ended during the call' WHERE {OPEN_DELIVERY} AND state='sending'"
        )

    @query
    def open_conversations(self, db: sqlite3.Connection) -> Sequence[tuple[int, Place]]:
        found = db.execute(f"SELECT DISTINCT conv_id FROM delivery WHERE {OPEN_DELIVERY}").fetchall()
        return [(conv_id, rows.place_of(db, conv_id)) for (conv_id,) in found]


def _settle(db: sqlite3.Connection, delivery: Delivery, result: SendResult, now: int) -> None:
    """Write what became of a send, or of the look for it. One that was given up meanwhile stays so."""
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
    settled = None if state in (DeliveryState.PLANNED, DeliveryState.UNKNOWN) else now
    # a send that certainly did not happen is no attempt: only doubtful ones are limited
    undo = int(isinstance(result, NotSent | Moved) and delivery.state is not DeliveryState.UNKNOWN)
    db.execute(
        "UPDATE delivery SET state=?, error=?, not_before=?, settled_at=?, platform_id=?, attempts=attempts-?,"
        " body=coalesce(?, body),"
        # it may have moved during the call, told by the answer or by an event
        " conv_id=(SELECT coalesce(moved_to, conv_id) FROM conversation WHERE conv_id=delivery.conv_id)"
        f" WHERE delivery_id=? AND {OPEN_DELIVERY} AND state=?",
        (state, error or None, not_before, settled, platform_id, undo, body, delivery.delivery_id, delivery.state),
    )
