"""How far histories of conversations were read, which messages wait for that, and what was overheard in groups.

A cursor never goes back. A message that waits for a history is `held` for the cause BEHIND, and gets a new `seq` when
it is released.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from bot.persistence.causes import Cause
from bot.persistence.inbox import OVERHEARD, AccountHistory, ConversationHistory, Heard
from bot.store import codec, rows
from bot.store.gone import note_gone
from bot.store.indexes import SAID
from bot.store.writer import Subject, transaction
from channels.message import SEVERAL, ChatKind, InboundKind, InboundMessage, Place, id_order

# The number of characters that are kept of an overheard message.
LINE_LIMIT = 500
# The same for the first message of a thread, which says what the thread is about.
ROOT_LIMIT = 8000
IS_BEHIND = f"state='held' AND reason='{Cause.BEHIND}'"
# The value that the parts of one message have in common.
PART_OF = "iif(json_valid(payload), json_extract(payload, '$.part_of'), '')"
# The thread in whose history a message is; empty for one whose answer opens a thread.
_HEARD_IN = "CASE WHEN thread=message_id THEN '' ELSE thread END"


class History(Subject):
    """How far histories were read, on platforms that have one.

    A message that came live, waits for a history (`behind`) and is found in it gets its place in the order of the
    history then, so that `seq` follows the order of the platform.
    """

    @transaction
    def known(self, db: sqlite3.Connection, channel: str, account: str, since: int) -> AccountHistory:
        """Return the conversations of an account whose histories may have to be read.

        since: threads in which the bot has said nothing since then (milliseconds) are not listed.
        """
        mark = (f"history:{channel}:{account}", "first")
        begin = "INSERT INTO kv (scope, key, value) VALUES (?,?,?) ON CONFLICT DO NOTHING"
        fresh = db.execute(begin, (*mark, str(self._now()))).rowcount
        (first,) = db.execute("SELECT value FROM kv WHERE scope=? AND key=?", mark).fetchone()
        listed = (
            "kind='direct' AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.conv_id=conversation.conv_id"
            f" AND message_id='' AND reason='{Cause.OUTSIDE}') OR thread='' AND cursor IS NOT NULL OR thread<>''"
            " AND EXISTS (SELECT 1 FROM delivery WHERE delivery.conv_id=conversation.conv_id"
            f" AND {SAID} AND settled_at >= ?3)"
        )
        found = db.execute(
            "SELECT chat, thread, kind, max(cursor), max(held), max(listed) FROM ("
            f" SELECT chat, thread, kind, coalesce(cursor, '') AS cursor, 0 AS held, ({listed}) AS listed"
            " FROM conversation WHERE channel=?1 AND account=?2 AND moved_to IS NULL"
            f" UNION ALL SELECT chat, {_HEARD_IN}, conversation.kind, '', 1, 1 FROM inbox"
            f" JOIN conversation USING (conv_id) WHERE {IS_BEHIND} AND inbox.channel=?1 AND inbox.account=?2"
            ") WHERE listed OR cursor<>'' GROUP BY chat, thread",
            (channel, account, since),
        ).fetchall()
        conversations = []
        for chat, thread, kind, cursor, held, is_listed in found:
            place = Place(channel=channel, account=account, chat=chat, thread=thread, kind=ChatKind(kind))
            conversations.append(ConversationHistory(place, cursor, bool(held), bool(is_listed)))
        return AccountHistory(int(first), bool(fresh), conversations)

    @transaction  # not a query, because it must see messages that are being stored
    def begins(self, db: sqlite3.Connection, place: Place) -> str:
        """Return the id of the first held message of a thread of which no turn took any yet; else an empty text."""
        found = db.execute(
            "SELECT conv_id, session_key, message_id FROM inbox JOIN conversation USING (conv_id)"
            f" WHERE {IS_BEHIND} AND inbox.channel=? AND inbox.account=? AND chat=? AND thread=? AND thread<>message_id"
            " ORDER BY length(message_id), message_id LIMIT 1",
            (place.channel, place.account, place.chat, place.thread),
        ).fetchone()
        return found[2] if found and is_new_in(db, *found[:2]) else ""

    @transaction
    def release(self, db: sqlite3.Connection, place: Place, around: Sequence[InboundMessage] = ()) -> Sequence[str]:
        """Release the messages that wait for the history of a place, in the platform's order; return their sessions.

        The cursor moves to the last of them. around: earlier messages of a thread, which count as overheard.
        """
        for line in around:
            overhear(db, rows.conversation(db, place), line)
        found = db.execute(
            "SELECT seq, session_key, message_id, gathers FROM inbox JOIN conversation USING (conv_id)"
            f" WHERE {IS_BEHIND} AND inbox.channel=? AND inbox.account=? AND chat=? AND {_HEARD_IN}=?"
            " ORDER BY length(message_id), message_id",
            (place.channel, place.account, place.chat, place.thread),
        ).fetchall()
        for seq, _, _, read in found:
            anew = seq  # one found in the history keeps its place among the commands found there
            if not read:
                (anew,) = db.execute("UPDATE sqlite_sequence SET seq=seq+1 WHERE name='inbox' RETURNING seq").fetchone()
                note_gone(db, "inbox", (seq,))
            db.execute(
                "UPDATE inbox SET seq=?, state='waiting', reason=NULL, ready_at=-gathers WHERE seq=?", (anew, seq)
            )
        if found:
            move_cursor(db, Heard(place, found[-1][2]))
        return tuple(dict.fromkeys(session_key for _, session_key, _, _ in found))


def move_cursor(db: sqlite3.Connection, heard: Heard) -> None:
    """Set the cursor of a conversation, unless it is further already."""
    db.execute(
        "UPDATE conversation SET cursor=?1 WHERE conv_id=?2"
        " AND (cursor IS NULL OR (length(cursor), cursor) < (length(?1), ?1))",
        (heard.cursor, rows.conversation(db, heard.place)),
    )


def is_new_in(db: sqlite3.Connection, conv_id: int, session_key: str | None) -> bool:
    """Return whether no turn of a session has taken a message of a conversation."""
    taken = "SELECT 1 FROM inbox WHERE conv_id=? AND session_key=? AND turn_id IS NOT NULL LIMIT 1"
    return db.execute(taken, (conv_id, session_key)).fetchone() is None


def take_anew(db: sqlite3.Connection, seq: int) -> bool:
    """Delete a message that waits for a history, because it was found there; False if it does not wait."""
    waited = db.execute(f"DELETE FROM inbox WHERE seq=? AND {IS_BEHIND}", (seq,)).rowcount == 1
    if waited:
        note_gone(db, "inbox", (seq,))
    return waited


def overhear(db: sqlite3.Connection, conv_id: int, message: InboundMessage) -> None:
    """Store an overheard message once and shortened; delete the oldest beyond OVERHEARD, but no first one of a thread.

    A part of a message is stored whole, because another part may be for the bot.
    """
    if message.kind is not InboundKind.MESSAGE:
        return
    (thread,) = db.execute("SELECT thread FROM conversation WHERE conv_id=?", (conv_id,)).fetchone()
    text = _shortened(message, thread)
    line = replace(message, text=text, replied=None, replied_by=None, forwarded=None)
    line = message if message.part_of else line
    keep = "INSERT INTO overheard (conv_id, message_id, payload) VALUES (?,?,?) ON CONFLICT DO NOTHING"
    db.execute(keep, (conv_id, message.origin.message_id, codec.INBOUND.dump(line)))
    db.execute(
        "DELETE FROM overheard WHERE conv_id=?1 AND message_id<>?3"
        " AND seq NOT IN (SELECT seq FROM overheard WHERE conv_id=?1"
        " ORDER BY length(message_id) DESC, message_id DESC LIMIT ?2)",
        (conv_id, OVERHEARD, thread),
    )


def other_parts(db: sqlite3.Connection, conv_id: int, message: InboundMessage) -> list[InboundMessage]:
    """Remove and return the overheard parts of a message of which another part is for the bot."""
    found = db.execute(
        f"DELETE FROM overheard WHERE conv_id=? AND {PART_OF}=? RETURNING seq, payload", (conv_id, message.part_of)
    ).fetchall()
    read = (codec.read_inbound(payload, seq) for seq, payload in sorted(found))
    return [part for part in read if part and part.origin.sender == message.origin.sender]


def change_overheard(db: sqlite3.Connection, message: InboundMessage) -> None:
    """Apply an edit or a deletion to overheard messages, in whatever thread of the chat they are."""
    place = message.origin.place
    lines = "message_id=? AND conv_id IN (SELECT conv_id FROM conversation WHERE channel=? AND account=? AND chat=?)"
    which = (message.origin.message_id, place.channel, place.account, place.chat)
    if message.kind is InboundKind.DELETE:
        db.execute(f"DELETE FROM overheard WHERE {lines}", which)
    elif message.kind is InboundKind.EDIT:
        change = f"UPDATE overheard SET payload=json_set(payload, '$.text', ?) WHERE json_valid(payload) AND {lines}"
        db.execute(change, (message.text[:LINE_LIMIT], *which))


def overheard_before(db: sqlite3.Connection, message: InboundMessage, transcript_id: str) -> list[InboundMessage]:
    """Take and return what was overheard in the conversation before a message; the model is told of it once.

    A message that begins a session in a thread of its own does not remove the lines, so that the next one gets them.
    """
    place = message.origin.place
    if message.kind is not InboundKind.MESSAGE or not (place.thread or place.kind in SEVERAL):
        return []
    own = place.thread == message.origin.message_id
    conv_id = rows.conversation(db, replace(place, thread="") if own else place)
    found = db.execute(
        "SELECT seq, payload FROM overheard WHERE conv_id=?1 AND (length(message_id), message_id) < (length(?2), ?2)",
        (conv_id, message.origin.message_id),
    ).fetchall()
    begun = db.execute("SELECT 1 FROM entry WHERE transcript_id=? LIMIT 1", (transcript_id,)).fetchone()
    if begun or not own:
        db.executemany("DELETE FROM overheard WHERE seq=?", [(seq,) for seq, _ in found])
    read = (codec.read_inbound(payload, seq) for seq, payload in found)
    lines = (replace(line, text=_shortened(line, place.thread)) for line in read if line)
    return sorted(lines, key=lambda line: id_order(line.origin.message_id))


def _shortened(message: InboundMessage, thread: str) -> str:
    """Return the text of an overheard message, or what it passes on, shortened. thread: empty outside of threads."""
    text = message.text or (message.forwarded.text if message.forwarded else "")
    return text[: ROOT_LIMIT if message.origin.message_id == thread else LINE_LIMIT]
