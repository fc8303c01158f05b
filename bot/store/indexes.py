"""The conditions of the partial indexes. SQLite uses such an index only for a query that repeats its condition.

`state='planned'` alone does not use the index of `state IN ('planned','sending','unknown')`, so a query that wants only
a part of an index names both conditions: `f"{OPEN_DELIVERY} AND state='planned'"`.
"""

from bot.persistence.causes import Cause

OPEN_DELIVERY = "state IN ('planned','sending','unknown')"
SAID = "state='sent' AND action IN ('send','preview','file')"
LOST_DELIVERY = f"(state IN ('failed','uncertain') OR state='expired' AND cause='{Cause.AGE}')"
SETTLED_DELIVERY = "state IN ('sent','uncertain','failed','expired')"
OPEN_TURN = "state IN ('queued','running','parked')"
# A session has at most one such turn.
HELD_TURN = "state IN ('running','parked')"
FAILED_TURN = "state='failed'"
WAITING = "state='waiting'"
# The message that is answered before all others of its session.
NEXT = "state='waiting' AND queued='next'"
HELD = "state='held'"
# Some of these messages may be ready by this time.
DELAYED = "state='waiting' AND ready_at > 0"
# Edits, deletions and events of which the next turn is told.
UNNOTED = f"reason='{Cause.TO_BE_NOTED}'"
ENDED_MESSAGE = "state IN ('unread','done','withdrawn','dropped')"
CUT_ANSWER = "kind='assistant_cut'"
WITH_PROCESS = "pid IS NOT NULL"
OPEN_APPROVAL = "state='open'"
UNTOLD_APPROVAL = "state<>'open' AND told=0"
OPEN_MEMORY = "state<>'kept'"
