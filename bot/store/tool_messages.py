"""What has become of the messages of tool calls, which after a crash only the ledger knows."""

import sqlite3
from collections.abc import Collection

from bot.persistence.deliveries import Delivered, Fate
from channels.outgoing import IDEMPOTENT
from channels.sources import tool_message

_WORDS: dict[Delivered, str] = {
    "planned": "will be sent",
    "sent": "was sent",
    "not sent": "was not sent",
    "unknown": "may have been sent, which nobody knows",
}
_CALLED = {"edit": "edit", "delete": "deletion", "react": "reaction"}


def of_call(db: sqlite3.Connection, turn_id: str, call_id: str) -> tuple[str, bool] | None:
    """Return the result of an interrupted call, and whether it is an error; None if the call sent no message."""
    pieces = _pieces(db, tool_message(turn_id, call_id).key)
    if not pieces:
        return None
    action = pieces[0][3]
    # idempotent actions are repeated
    became = _fate(["planned" if state == "sending" and action in IDEMPOTENT else state for state, *_ in pieces])
    called = _CALLED.get(action)
    told = f"Its {called} {_WORDS[became].replace('sent', 'made')}" if called else f"Its message {_WORDS[became]}"
    reason = next((f" ({error})" for _, _, error, _ in pieces if error), "")
    return (
        f"Interrupted: this call was cut off and was not repeated. {told}{reason}.",
        became in ("not sent", "unknown"),
    )


def fate(db: sqlite3.Connection, source: str) -> Fate:
    """Return what has become of a message. source: the key of its source; an unknown one was not sent."""
    found = _pieces(db, source)
    if not found:
        return Fate("not sent")
    # the service is alive, so a call under way will be settled
    states = ["planned" if state == "sending" else state for state, *_ in found]
    ids = tuple(platform_id for _, platform_id, _, _ in found if platform_id)
    reason = next((error for _, _, error, _ in found if error), "")
    return Fate(_fate(states), ids, reason, not {"planned", "unknown"}.isdisjoint(states))


def elsewhere(db: sqlite3.Connection, turn_id: str) -> int:
    """Return how many messages a turn has planned in other chats than its own, whatever became of them."""
    (count,) = db.execute(
        "SELECT count(*) FROM delivery JOIN conversation AS there USING (conv_id) JOIN turn USING (turn_id)"
        " JOIN conversation AS own ON own.conv_id=reply_conv WHERE turn_id=?"
        " AND (there.channel, there.account, there.chat) <> (own.channel, own.account, own.chat)",
        (turn_id,),
    ).fetchone()
    return int(count)


def _pieces(db: sqlite3.Connection, source: str) -> list[tuple[str, str | None, str | None, str]]:
    """Return state, platform id, reason and action of each piece of a message. reason: why it was not sent."""
    return db.execute(
        "SELECT state, platform_id, coalesce(cause, error), action FROM delivery WHERE source=? ORDER BY delivery_id",
        (source,),
    ).fetchall()


def _fate(states: Collection[str]) -> Delivered:
    """Return the state of a message by the states of its pieces."""
    found = set(states)
    if found & {"failed", "expired"}:
        return "not sent"
    if found & {"sending", "unknown", "uncertain"}:
        return "unknown"
    return "planned" if "planned" in found else "sent"
