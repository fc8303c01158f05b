"""Deletes old rows in small batches, so that no other writer waits long. Turns and transcripts are kept.

Event keys in the inbox are kept for at least 30 days, so that a late redelivery is still recognised; the
Idempotency-Keys of HTTP for a day (interfaces.md).
"""

import sqlite3

from bot.store import balance
from bot.store.gone import note_gone
from bot.store.indexes import ENDED_MESSAGE, SETTLED_DELIVERY, UNNOTED
from bot.store.people import drop_expired

BATCH = 200
DAY = 24 * 3600 * 1000
KEEP_INBOX = 31 * DAY
KEEP_HTTP = DAY
KEEP_DELIVERIES = 31 * DAY
KEEP_EVENTS = DAY
KEEP_FIRINGS = 400 * DAY
KEEP_USAGE = 400 * DAY

# Condition for messages that may go: ended, and no turn has to be told of them.
_OVER = f"{ENDED_MESSAGE} AND NOT coalesce({UNNOTED}, 0)"
# The newest message of a conversation stays, because it says where the heartbeat answers.
_NOT_THE_NEWEST = (
    "(conv_id IS NULL OR session_key IS NULL OR EXISTS (SELECT 1 FROM inbox AS newer"
    " WHERE newer.conv_id=inbox.conv_id AND newer.kind=inbox.kind AND newer.seq > inbox.seq))"
)
# The table, its key, the condition for rows that are deleted, and their age in milliseconds.
_PRUNE = (
    ("inbox", "seq", f"{_OVER} AND accepted_at < ? AND {_NOT_THE_NEWEST}", KEEP_INBOX),
    ("inbox", "seq", f"{_OVER} AND channel='http' AND accepted_at < ?", KEEP_HTTP),
    ("delivery", "delivery_id", f"{SETTLED_DELIVERY} AND settled_at < ?", KEEP_DELIVERIES),
    ("firing", "rowid", "at < ?", KEEP_FIRINGS),
    ("usage", "usage_id", "at < ?", KEEP_USAGE),
    # events are stored in the order of time, so only the lowest positions are looked at
    ("event", "seq", f"seq < (SELECT min(seq) FROM event) + {BATCH} AND at < ?", KEEP_EVENTS),
)


def prune(db: sqlite3.Connection, now: int) -> int:
    """Delete one batch of each kind and return the number of deleted rows. Call again until it is 0."""
    drop_expired(db, now)
    gone = 0
    for table, key, which, keep in _PRUNE:
        found = db.execute(f"SELECT {key} FROM {table} WHERE {which} LIMIT {BATCH}", (now - keep,)).fetchall()
        numbers = [number for (number,) in found]
        if table == "inbox":
            balance.carry(db, numbers)
        elif table == "delivery":
            note_gone(db, "delivery", numbers)
        db.executemany(f"DELETE FROM {table} WHERE {key}=?", found)
        gone += len(found)
    return gone
