"""Forgetting, in small batches so that no writer waits long: settled deliveries, ended inbox rows, old events.

Inbox keys are kept at least 30 days, so that a late redelivery is still known; HTTP's Idempotency-Keys a day
(interfaces.md). Turns and transcripts are kept.
"""

import sqlite3

from bot.store.indexes import ENDED_MESSAGE, SETTLED_DELIVERY, UNNOTED
from bot.store.people import drop_expired

BATCH = 200
DAY = 24 * 3600 * 1000
KEEP_INBOX = 31 * DAY
KEEP_HTTP = DAY
KEEP_DELIVERIES = 31 * DAY
KEEP_EVENTS = DAY
KEEP_FIRINGS = 400 * DAY

# Of messages: not those of which a next turn is to be told.
_OVER = f"{ENDED_MESSAGE} AND NOT coalesce({UNNOTED}, 0)"
# The newest of a conversation says where the heartbeat beats, however long ago that was.
_NOT_THE_NEWEST = (
    "(conv_id IS NULL OR session_key IS NULL OR EXISTS (SELECT 1 FROM inbox AS newer"
    " WHERE newer.conv_id=inbox.conv_id AND newer.kind=inbox.kind AND newer.seq > inbox.seq))"
)
# Table, its key, which of its rows are to go, and after how many milliseconds.
_PRUNE = (
    ("inbox", "seq", f"{_OVER} AND accepted_at < ? AND {_NOT_THE_NEWEST}", KEEP_INBOX),
    ("inbox", "seq", f"{_OVER} AND channel='http' AND accepted_at < ?", KEEP_HTTP),
    ("delivery", "delivery_id", f"{SETTLED_DELIVERY} AND settled_at < ?", KEEP_DELIVERIES),
    ("firing", "rowid", "at < ?", KEEP_FIRINGS),
    # events are in the order of time: only the lowest need to be looked at
    ("event", "seq", f"seq < (SELECT min(seq) FROM event) + {BATCH} AND at < ?", KEEP_EVENTS),
)


def prune(db: sqlite3.Connection, now: int) -> int:
    """One small batch of each; returns how many rows went. Call again while it is not 0."""
    drop_expired(db, now)
    gone = 0
    for table, key, which, keep in _PRUNE:
        old = f"SELECT {key} FROM {table} WHERE {which} LIMIT {BATCH}"
        gone += db.execute(f"DELETE FROM {table} WHERE {key} IN ({old})", (now - keep,)).rowcount
    return gone
