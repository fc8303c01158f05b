"""What the partial indexes hold, in the words of the schema: SQLite uses one only for a query that says the same.

`state='planned'` does not find the index of `state IN ('planned','sending','unknown')`, so a query that wants less than
all of it says both: `f"{OPEN_DELIVERY} AND state='planned'"`.
"""

from bot.persistence.causes import Cause

OPEN_DELIVERY = "state IN ('planned','sending','unknown')"
SAID = "state='sent' AND action IN ('send','preview','file')"
LOST_DELIVERY = f"(state IN ('failed','uncertain') OR state='expired' AND cause='{Cause.AGE}')"
SETTLED_DELIVERY = "state IN ('sent','uncertain','failed','expired')"
OPEN_TURN = "state IN ('queued','running','parked')"
# Of these a session has at most one.
HELD_TURN = "state IN ('running','parked')"
FAILED_TURN = "state='failed'"
WAITING = "state='waiting'"
HELD = "state='held'"
# Of these some are ready meanwhile.
DELAYED = "state='waiting' AND ready_at > 0"
# Edits and deletions of messages that the model had seen, until it is told of them.
UNNOTED = f"reason='{Cause.TO_BE_NOTED}'"
ENDED_MESSAGE = "state IN ('unread','done','withdrawn','dropped')"
CUT_ANSWER = "kind='assistant_cut'"
WITH_PROCESS = "pid IS NOT NULL"
OPEN_APPROVAL = "state='open'"
UNTOLD_APPROVAL = "state<>'open' AND told=0"
