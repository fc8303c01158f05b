"""Changes of which the next turn of a session is told: edits and deletions (durability.md part 6), and messages that
the bot wrote into its conversation from another one. Each function runs inside a unit of the writer.

An edited message is found by its own key, whatever thread the edit names. If no model has seen it, it is replaced or
withdrawn. If it is being answered, the next turn takes the edit. Else the next turn is told of the change.
"""

import sqlite3
from dataclasses import dataclass, replace

from agent.message import Provenance
from bot.persistence.causes import Cause
from bot.persistence.inbox import AcceptedMessage, Changes
from bot.persistence.schedules import TOLD
from bot.store import codec, tool_messages
from bot.store.gone import give_back
from bot.store.indexes import SAID, UNNOTED
from channels.message import ChatKind, InboundKind, InboundMessage, Origin, Place, message_key

CHANGES = (InboundKind.EDIT, InboundKind.DELETE)
# Condition for events, among the rows of which a turn is told.
IS_EVENT = f"event_key GLOB '{TOLD}*'"
NOWHERE = Place(channel="http", account="", chat="", kind=ChatKind.API)
# The states of a message that no model has seen.
UNSEEN = ("waiting", "steering", "held")


@dataclass(frozen=True, slots=True)
class Change:
    """How an edit or a deletion is stored."""

    item: AcceptedMessage
    # The state of its row in the inbox.
    state: str
    # The conversation of the changed message; None if no message was changed.
    conv_id: int | None = None
    # It has become a message of its own, and the person is told that the next turn takes it.
    told: bool = False


def change(db: sqlite3.Connection, item: AcceptedMessage) -> Change:
    """Apply an edit or a deletion by a person who is let in, and return how it is stored."""
    message = item.message
    place, edited = message.origin.place, message.kind is InboundKind.EDIT
    original = db.execute(
        "SELECT seq, conv_id, session_key, payload FROM inbox WHERE channel=? AND account=? AND event_key=?"
        " AND kind='message' AND state NOT IN ('dropped','withdrawn')",
        (place.channel, place.account, message_key(place.chat, message.origin.message_id)),
    ).fetchone()
    if original is None:
        return _dropped(item, Cause.TOO_LATE)
    seq, conv_id, session_key, _ = original
    about = (conv_id, message.origin.message_id)
    last, state, payload = db.execute(
        "SELECT seq, state, payload FROM inbox WHERE conv_id=? AND message_id=? AND kind IN ('message','edit')"
        " AND state NOT IN ('dropped','withdrawn') ORDER BY seq DESC LIMIT 1",
        about,
    ).fetchone()
    if item.state == "held" and state != "held":
        return _dropped(item, Cause.TOO_LATE)
    words = codec.read_inbound(payload, last)
    if edited and words is not None and words.text == message.text:
        return _dropped(item, Cause.NOTHING_CHANGED)
    if edited and state in UNSEEN:
        words = words or replace(message, kind=InboundKind.MESSAGE)
        words = replace(words, text=message.text, attachments=message.attachments)
        db.execute("UPDATE inbox SET payload=? WHERE seq=?", (codec.INBOUND.dump(words), last))
        return _dropped(item, Cause.REPLACED)
    if not edited and state in UNSEEN:
        db.execute("UPDATE inbox SET state='withdrawn', turn_id=NULL WHERE seq=?", (last,))
        if last == seq:
            return _dropped(item, Cause.WITHDREW)
    origin = (codec.read_inbound(original[3], seq) or message).origin
    item = replace(item, message=replace(message, origin=origin), session_key=session_key)
    if edited and state == "taken":
        return Change(item, "waiting", conv_id, told=True)
    db.execute(f"UPDATE inbox SET reason='{Cause.NOTED}' WHERE conv_id=? AND message_id=? AND {UNNOTED}", about)
    return Change(replace(item, reason=Cause.TO_BE_NOTED), "done", conv_id)


def is_new(db: sqlite3.Connection, message: InboundMessage) -> bool:
    """Return whether a message was never accepted, in whatever state."""
    place = message.origin.place
    known = "SELECT 1 FROM inbox WHERE channel=? AND account=? AND event_key=?"
    return db.execute(known, (place.channel, place.account, message.event_key)).fetchone() is None


def knows_more(copy: InboundMessage, first: InboundMessage) -> bool:
    """Return whether a copy of a message has files or words that the first one lacks, and all of its words."""
    files = len(copy.attachments) > len(first.attachments)  # their addresses may change
    more = files or len(copy.text) > len(first.text) or (copy.forwarded is not None and first.forwarded is None)
    return more and copy.text.startswith(first.text)


def _dropped(item: AcceptedMessage, reason: Cause) -> Change:
    return Change(replace(item, session_key=None, reason=reason), "dropped")


def note_written(
    db: sqlite3.Connection,
    place: Place,
    conv_id: int | None,
    session_key: str,
    source: str,
    words: str,
    now: int,
    origins: tuple[Provenance, ...],
) -> bool:
    """Let the next turn of a session be told that the bot wrote this from another conversation.

    source: the key of the delivery's source. origins: of the words. Returns False if a turn is or was told
    of it already.
    """
    told = InboundMessage(
        origin=Origin(place=place),
        event_key=source,
        kind=InboundKind.EVENT,
        text=words,
        sent_at=now,
        origins=codec.ORIGINS.dump(origins) if origins else "",
    )
    made = db.execute(
        "INSERT INTO inbox (channel, account, event_key, conv_id, session_key, kind, sent_at, accepted_at, payload,"
        " state, reason) VALUES (?,?,?,?,?,?,?,?,?,'done',?) ON CONFLICT DO NOTHING",
        (
            *(place.channel, place.account, source, conv_id, session_key, told.kind, now, now),
            *(codec.INBOUND.dump(told), Cause.TO_BE_NOTED),
        ),
    )
    if made.rowcount != 1:
        give_back(db, "inbox")
    return made.rowcount == 1


def note_event(
    db: sqlite3.Connection, session_key: str, key: str, text: str, now: int, origins: tuple[Provenance, ...] = ()
) -> bool:
    """Let the next turn of a session be told of an event; False if one with this key is known already."""
    return note_written(db, NOWHERE, None, session_key, f"{TOLD}{key}", text, now, origins)


def replied_to(
    db: sqlite3.Connection, place: Place, message_id: str, *, by_me: bool
) -> InboundMessage | tuple[Provenance, ...] | None:
    """Return the message that another one replies to; of one that the bot wrote, the origins of its words.

    None: it is somebody's message that is not kept. A message of the bot that is not kept, or that belongs to no turn,
    is not trusted.
    """
    there = (place.channel, place.account)
    if not by_me:
        found = db.execute(
            "SELECT payload, seq FROM inbox WHERE channel=? AND account=? AND event_key=?",
            (*there, message_key(place.chat, message_id)),
        ).fetchone()
        message = codec.read_inbound(*found) if found else None
        return replace(message, replied=None) if message else None
    turn_id, told = db.execute(
        "SELECT turn_id, (SELECT payload FROM inbox WHERE inbox.channel=conversation.channel"
        " AND inbox.account=conversation.account AND event_key=source) FROM delivery JOIN conversation USING (conv_id)"
        f" WHERE channel=? AND account=? AND chat=? AND platform_id=? AND {SAID}",
        (*there, place.chat, message_id),
    ).fetchone() or (None, None)
    if turn_id is None:
        return (Provenance("background", "an earlier message of the bot"),)
    event = codec.INBOUND.load(told, None)
    return (*said_from(db, turn_id), *codec.origins(event.origins if event else ""))


def said_from(db: sqlite3.Connection, turn_id: str) -> tuple[Provenance, ...]:
    """Return the origins of what a turn has said: those of its newest answer."""
    found = db.execute(
        "SELECT body FROM turn JOIN entry USING (transcript_id) WHERE turn.turn_id=?1 AND entry.turn_id=?1"
        " AND entry.kind='assistant' ORDER BY seq DESC LIMIT 1",
        (turn_id,),
    ).fetchone()
    line = codec.MESSAGE.load(found[0], None) if found else None
    return line.origins if line else codec.UNREADABLE


def noted(db: sqlite3.Connection, session_key: str, transcript_id: str, beat: str | None) -> Changes:
    """Take the changes of which a turn is told: each once, and only in the transcript that holds the changed message.

    beat: the id of the turn of a beat, which is told of events alone and may have to give them back; else None.
    """
    found = db.execute(
        f"UPDATE inbox SET reason='{Cause.NOTED}', turn_id=?1 WHERE session_key=?2 AND {UNNOTED}"
        f" AND (?1 IS NULL OR {IS_EVENT}) RETURNING seq, payload",
        (beat, session_key),
    ).fetchall()
    changed = []
    for seq, payload in sorted(found):
        change = codec.read_inbound(payload, seq)
        if change is None:
            continue
        if change.kind is InboundKind.MESSAGE:  # it was dropped for the cap
            changed.append((change, "", change.sent_at))
            continue
        if change.kind is InboundKind.EVENT:
            if change.event_key.startswith(TOLD) or tool_messages.fate(db, change.event_key).state != "not sent":
                changed.append((change, "", change.sent_at))
            continue
        place, key = change.origin.place, message_key(change.origin.place.chat, change.origin.message_id)
        shown = db.execute(
            "SELECT payload, accepted_at, seq FROM inbox WHERE channel=? AND account=? AND event_key=? AND EXISTS"
            " (SELECT 1 FROM entry WHERE transcript_id=? AND turn_id=inbox.turn_id AND hidden=0)",
            (place.channel, place.account, key, transcript_id),
        ).fetchone()
        if shown is not None and (original := codec.read_inbound(shown[0], shown[2])) is not None:
            changed.append((change, original.text, original.sent_at or shown[1]))
    return changed
