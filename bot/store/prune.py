"""Forgetting, in small batches so that no writer waits long: settled deliveries, ended inbox rows, old events.

Inbox keys are kept at least 30 days, so that a late redelivery is still known; HTTP's Idempotency-Keys a day
(interfaces.md). Turns and transcripts are kept.
"""

import sqlite3

from bot.store.indexes import ENDED_MESSAGE, SETTLED_DELIVERY
from bot.store.people import drop_expired

BATCH = 200
DAY = 24 * 3600 * 1000
KEEP_INBOX = 31 * DAY
KEEP_HTTP = DAY
KEEP_DELIVERIES = 31 * DAY
KEEP_EVENTS = DAY

_PRUNE = (
    (
        f"DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE {ENDED_MESSAGE} AND accepted_at < ? LIMIT ?)",
        KEEP_INBOX,
    ),
    (
        f"DELETE FROM inbox WHERE seq IN (SELECT seq FROM inbox WHERE {ENDED_MESSAGE} AND channel='http'"
        " AND accepted_at < ? LIMIT ?)",
        KEEP_HTTP,
    ),
    (
        "DELETE FROM delivery WHERE delivery_id IN (SELECT delivery_id FROM delivery"
        f" WHERE {SETTLED_DELIVERY} AND settled_at < ? LIMIT ?)",
        KEEP_DELIVERIES,
    ),
    # events are in the order of time: only the lowest need to be looked at
    ("DELETE FROM event WHERE at < ? AND seq < (SELECT min(seq) FROM event) + ?", KEEP_EVENTS),
)


def prune(db: sqlite3.Connection, now: int) -> int:
    """One small batch of each; returns how many rows went. Call again while it is not 0."""
    drop_expired(db, now)
    return sum(db.execute(sql, (now - keep, BATCH)).rowcount for sql, keep in _PRUNE)
