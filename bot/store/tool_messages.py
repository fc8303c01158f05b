"""What a call has sent: the ledger knows more of a messaging tool than the tool itself, above all after a crash."""

import re
import sqlite3
from collections.abc import Iterable

from agent.tools.base import Delivered
from bot.persistence.values import tool_message

_WORDS: dict[Delivered, str] = {
    "planned": "will be sent",
    "sent": "was sent",
    "not sent": "was not sent",
    "unknown": "may have been sent, which nobody knows",
}
_NUMBER = re.compile(r"\d+(?=(\.\d+)?$)")
"""What follows a call's name in the source of a message: its number, and that of a piece, if it is one of several."""


def of_call(db: sqlite3.Connection, turn_id: str, call_id: str) -> tuple[str, bool] | None:
    """What the model is told of an interrupted call's messages, and whether it is an error; None when it sent none."""
    name = tool_message(turn_id, call_id, 0).removesuffix(":0")
    found = db.execute(
        "SELECT source, state, error FROM delivery WHERE source >= ?1 || ':' AND source < ?1 || ';'"  # ';' follows ':'
        " ORDER BY delivery_id",
        (name,),
    ).fetchall()
    pieces: dict[int, list[tuple[str, str | None]]] = {}
    for row_source, state, error in found:
        if match := _NUMBER.match(row_source[len(name) + 1 :]):  # else of a call whose id only begins like this one's
            pieces.setdefault(int(match[0]), []).append((state, error))
    if not pieces:
        return None
    said, failed = [], False
    for number, states in sorted(pieces.items()):
        became = _fate(state for state, _ in states)
        reason = next((f" ({error})" for _, error in states if error), "")
        said.append(f"message {number + 1} {_WORDS[became]}{reason}")
        failed = failed or became in ("not sent", "unknown")
    return f"Interrupted: this call was cut off and was not repeated. Of what it sent, {'; '.join(said)}.", failed


def fate(db: sqlite3.Connection, name: str) -> Delivered:
    """What has become of a message, by its name; nothing was sent under one that is not known."""
    found = db.execute(
        "SELECT state FROM delivery WHERE source=?1 OR source > ?1 || '.' AND source < ?1 || '/'",  # '/' follows '.'
        (name,),
    ).fetchall()
    # whoever can ask is alive to see a call to its end
    return _fate("planned" if state == "sending" else state for (state,) in found) if found else "not sent"


def _fate(states: Iterable[str]) -> Delivered:
    """Of all pieces of a message together."""
    found = set(states)
    if found & {"failed", "expired"}:
        return "not sent"
    if found & {"sending", "unknown", "uncertain"}:
        return "unknown"
    return "planned" if "planned" in found else "sent"
