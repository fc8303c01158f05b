"""What a freeze holds, as parts of the statements that start something: nothing can start beside them.

The row of a freeze is read in the transaction that writes the start, so neither a race nor a crash passes it.
"""

from bot.persistence.freezes import What
from bot.persistence.turns import BY_THEMSELVES

# The names of all freezes that there are, joined; NULL where nothing is frozen.
THERE = "(SELECT group_concat(what) FROM freeze)"
_ALL = "EXISTS (SELECT 1 FROM freeze WHERE what='all')"
# Condition: no beat or job begins.
BEATS = "EXISTS (SELECT 1 FROM freeze WHERE what IN ('all','beats'))"
# Condition for deliveries that do not go out now: what turns say. What was shown of an answer may be taken away.
HELD_BACK = f"(turn_id IS NOT NULL AND action<>'delete' AND {_ALL})"
# Condition: no block of a turn (its id is ?2) begins to be sent now.
SAYS_NOTHING = f"(?2 IS NOT NULL AND {_ALL})"
_KINDS = tuple(kind.value for kind in BY_THEMSELVES)
# Condition: no model call of a turn (its id is ?2) begins.
ASKS_NOTHING = (
    "EXISTS (SELECT 1 FROM freeze WHERE what='all' OR what='beats'"
    f" AND (SELECT kind FROM turn WHERE turn_id=?2) IN {_KINDS})"
)


def holds(there: str, kind: str, calls: str | None = None) -> What | None:
    """Return which freeze keeps a turn from going on; None: none does.

    there: `THERE`, which is not NULL. kind: of the turn. calls: what it goes on with, see `turn.next_calls`; None: a
    model call.
    """
    frozen = there.split(",")
    if "all" in frozen:
        return "all"
    if "beats" in frozen and kind in _KINDS:
        return "beats"
    if "tools" in frozen and calls is not None:
        return "tools"
    return "network" if "network" in frozen and calls == "network" else None


def may_call(there: str | None, kind: str, reach_out: bool | None) -> bool | None:
    """Return whether a turn may start calls now; None if that depends on whether they reach out, which is not known."""
    if not there or not holds(there, kind, "network"):
        return True
    if holds(there, kind, "network" if reach_out else "tools"):
        return False
    return None if reach_out is None else True
