"""How far conversations were heard, what waits behind a history that is being read, and what was overheard in groups.

A cursor never goes back. What waits there is `held` for the reason BEHIND, and gets a new `seq` when its turn comes.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from bot.persistence.values import OVERHEARD, AccountHistory, ConversationHistory, Heard
from bot.store import codec, rows
from bot.store.indexes import SAID
from bot.store.writer import Subject, transaction
from channels.message import ChatKind, InboundKind, InboundMessage, Place, id_order

BEHIND = "catch-up"
# Characters kept of what was overheard.
LINE_LIMIT = 500
IS_BEHIND = f"state='held' AND reason='{BEHIND}'"
# Of a message the thread in whose history it stands: one whose answer opens a thread on it stands in none.
_HEARD_IN = "CASE WHEN thread=message_id THEN '' ELSE thread END"
_SHARED = (ChatKind.GROUP, ChatKind.CHANNEL, ChatKind.THREAD)


class History(Subject):
    """Transactions of who catches up."""

    @transaction
    def known(self, db: sqlite3.Connection, channel: str, account: str, since: int) -> AccountHistory:
        mark = (f"history:{channel}:{account}", "first")
        begin = "INSERT INTO kv (scope, key, value) VALUES (?,?,?) ON CONFLICT DO NOTHING"
        fresh = db.execute(begin, (*mark, str(self._now()))).rowcount
        (first,) = db.execute("SELECT value FROM kv WHERE scope=? AND key=?", mark).fetchone()
        listed = (
            "kind='direct' OR thread='' AND cursor IS NOT NULL OR thread<>'' AND EXISTS"
            f" (SELECT 1 FROM delivery WHERE delivery.conv_id=conversation.conv_id AND {SAID} AND settled_at >= ?3)"
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

    @transaction
    def release(self, db: sqlite3.Connection, place: Place) -> Sequence[str]:
        found = db.execute(
            "SELECT seq, session_key, message_id FROM inbox JOIN conversation USING (conv_id)"
            f" WHERE {IS_BEHIND} AND inbox.channel=? AND inbox.account=? AND chat=? AND {_HEARD_IN}=?"
            " ORDER BY length(message_id), message_id",
            (place.channel, place.account, place.chat, place.thread),
        ).fetchall()
        for seq, _, _ in found:
            (anew,) = db.execute("UPDATE sqlite_sequence SET seq=seq+1 WHERE name='inbox' RETURNING seq").fetchone()
            db.execute("UPDATE inbox SET seq=?, state='waiting', reason=NULL, ready_at=0 WHERE seq=?", (anew, seq))
        if found:
            move_cursor(db, Heard(place, found[-1][2]))
        return tuple(dict.fromkeys(session_key for _, session_key, _ in found))


def move_cursor(db: sqlite3.Connection, heard: Heard) -> None:
    """Nothing is missing up to there; a cursor that is further stays."""
    db.execute(
        "UPDATE conversation SET cursor=?1 WHERE conv_id=?2"
        " AND (cursor IS NULL OR (length(cursor), cursor) < (length(?1), ?1))",
        (heard.cursor, rows.conversation(db, heard.place)),
    )


def take_anew(db: sqlite3.Connection, seq: int) -> bool:
    """Forget a message that waits behind a history, because it is found there; False when it does not."""
    return db.execute(f"DELETE FROM inbox WHERE seq=? AND {IS_BEHIND}", (seq,)).rowcount == 1


def overhear(db: sqlite3.Connection, conv_id: int, message: InboundMessage) -> None:
    """Keep what was said and not to the bot, once, shortened; the oldest line goes for it where there are many."""
    if message.kind is not InboundKind.MESSAGE:
        return
    line = replace(message, text=message.text[:LINE_LIMIT], attachments=(), replied=None, forwarded=None)
    keep = "INSERT INTO overheard (conv_id, message_id, payload) VALUES (?,?,?) ON CONFLICT DO NOTHING"
    db.execute(keep, (conv_id, message.origin.message_id, codec.INBOUND.dump(line)))
    db.execute(
        "DELETE FROM overheard WHERE conv_id=?1 AND seq NOT IN (SELECT seq FROM overheard WHERE conv_id=?1"
        " ORDER BY length(message_id) DESC, message_id DESC LIMIT ?2)",
        (conv_id, OVERHEARD),
    )


def change_overheard(db: sqlite3.Connection, message: InboundMessage) -> None:
    """An edit or a deletion of something overheard changes or removes its line, whatever thread it names."""
    place = message.origin.place
    lines = "message_id=? AND conv_id IN (SELECT conv_id FROM conversation WHERE channel=? AND account=? AND chat=?)"
    which = (message.origin.message_id, place.channel, place.account, place.chat)
    if message.kind is InboundKind.DELETE:
        db.execute(f"DELETE FROM overheard WHERE {lines}", which)
    elif message.kind is InboundKind.EDIT:
        change = f"UPDATE overheard SET payload=json_set(payload, '$.text', ?) WHERE json_valid(payload) AND {lines}"
        db.execute(change, (message.text[:LINE_LIMIT], *which))


def overheard_before(db: sqlite3.Connection, message: InboundMessage, transcript_id: str) -> list[InboundMessage]:
    """What was overheard where a message was written, up to it: told to the model once.

    One that begins a session of its own, in a thread that its answer opens, leaves the lines for the next such.
    """
    place = message.origin.place
    if message.kind is not InboundKind.MESSAGE or place.kind not in _SHARED:
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
    return sorted((line for line in read if line), key=lambda line: id_order(line.origin.message_id))
