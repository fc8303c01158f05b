"""What becomes of edits and deletions (durability.md part 6). Everything here runs inside a unit of the writer.

The message is found by its own key, whatever thread the edit names. One that no model has seen is replaced or
withdrawn. The edit of one that is just being answered is taken by the next turn. What has been answered is only
mentioned there.
"""

import sqlite3
from dataclasses import dataclass, replace

from bot.persistence.values import AcceptedMessage, Before
from bot.store import codec
from bot.store.indexes import UNNOTED
from channels.message import InboundKind, InboundMessage, message_key

CHANGES = (InboundKind.EDIT, InboundKind.DELETE)
_UNSEEN = ("waiting", "steering", "held")


@dataclass(frozen=True, slots=True)
class Change:
    """How the event itself is kept. conv_id, session_key: of its message; None where there is none to change.

    message: what is stored; kind: as what. told: the person is told that the next turn looks at it.
    """

    message: InboundMessage
    state: str
    reason: str | None
    kind: str
    conv_id: int | None = None
    session_key: str | None = None
    told: bool = False


def change(db: sqlite3.Connection, item: AcceptedMessage) -> Change:
    """Apply an edit or a deletion; its author has been let in."""
    message = item.message
    place, edited = message.origin.place, message.kind is InboundKind.EDIT
    original = db.execute(
        "SELECT seq, conv_id, session_key, payload FROM inbox WHERE channel=? AND account=? AND event_key=?"
        " AND kind='message' AND state NOT IN ('dropped','withdrawn')",
        (place.channel, place.account, message_key(place.chat, message.origin.message_id)),
    ).fetchone()
    if original is None:
        return Change(message, "dropped", "too late", message.kind.value)
    seq, conv_id, session_key, _ = original
    about = (conv_id, message.origin.message_id)
    last, state, payload = db.execute(
        "SELECT seq, state, payload FROM inbox WHERE conv_id=? AND message_id=? AND kind IN ('message','edit')"
        " AND state NOT IN ('dropped','withdrawn') ORDER BY seq DESC LIMIT 1",
        about,
    ).fetchone()
    if item.state == "held" and state != "held":
        return Change(message, "dropped", "too late", message.kind.value)
    words = codec.read_inbound(payload, last)
    if edited and words is not None and words.text == message.text:
        return Change(message, "dropped", "nothing changed", message.kind.value)
    if edited and state in _UNSEEN:
        words = words or replace(message, kind=InboundKind.MESSAGE)
        words = replace(words, text=message.text, attachments=message.attachments)
        db.execute("UPDATE inbox SET payload=? WHERE seq=?", (codec.INBOUND.dump(words), last))
        return Change(message, "dropped", "replaced the message", message.kind.value)
    if not edited and state in _UNSEEN:
        db.execute("UPDATE inbox SET state='withdrawn', turn_id=NULL WHERE seq=?", (last,))
        if last == seq:
            return Change(message, "dropped", "withdrew the message", message.kind.value)
    origin = (codec.read_inbound(original[3], seq) or message).origin
    message = replace(message, origin=origin)
    if edited and state == "taken":
        return Change(message, "waiting", None, "message", conv_id, session_key, told=True)
    db.execute(f"UPDATE inbox SET reason='noted' WHERE conv_id=? AND message_id=? AND {UNNOTED}", about)
    return Change(message, "done", "to be noted", message.kind.value, conv_id, session_key)


def noted(db: sqlite3.Connection, session_key: str, transcript_id: str) -> Before:
    """What is to be said in front of the next message of a session; said once, and only where its message stands."""
    found = db.execute(
        f"UPDATE inbox SET reason='noted' WHERE session_key=? AND {UNNOTED} RETURNING seq, payload", (session_key,)
    ).fetchall()
    changed = []
    for seq, payload in sorted(found):
        change = codec.read_inbound(payload, seq)
        if change is None:
            continue
        place, key = change.origin.place, message_key(change.origin.place.chat, change.origin.message_id)
        shown = db.execute(
            "SELECT payload, accepted_at, seq FROM inbox JOIN turn USING (turn_id)"
            " WHERE channel=? AND account=? AND event_key=? AND transcript_id=?",
            (place.channel, place.account, key, transcript_id),
        ).fetchone()
        if shown is not None and (original := codec.read_inbound(shown[0], shown[2])) is not None:
            changed.append((change, original.text, original.sent_at or shown[1]))
    return Before(changed=tuple(changed))
