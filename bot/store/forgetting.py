"""Forgets a person: deletes their rows, and takes their words out of the transcripts of others.

A row of `kv` says from the first transaction on that somebody is being forgotten; the last one deletes it, so that a
start after a crash goes on. All rows go in one transaction. What was deleted still stands in free pages and in the
write-ahead log then; `wipe` rewrites the file.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from bot.compose import named
from bot.persistence.causes import Cause
from bot.store import balance, codec
from bot.store.gone import note_gone
from bot.store.indexes import OPEN_TURN
from bot.store.memories import take_of_person
from bot.store.rows import FOLLOWED, MISSED, set_value
from bot.store.stops import stop_turn
from bot.store.words_of import DELETED, Theirs
from bot.store.writer import Subject, query, transaction
from channels.message import InboundMessage

_SCOPE = "forget"
# Returns the path of the n-th file of a message in the room of its session.
SavedAs = Callable[[str, InboundMessage, int], str]
_OWN = "IN (SELECT value FROM json_each(?1))"
# The rows of tables, besides those that need more than a condition, that go: by their own sessions (?1).
_OF_SESSIONS = ("child", "event", "firing", "granted", "job", "session")


@dataclass(frozen=True, slots=True)
class Whom:
    """Who is to be forgotten, and what is theirs alone."""

    channel: str
    sender: str
    # The keys of the sessions in which nobody else writes.
    sessions: frozenset[str]
    # The paths of their rooms below the workspace; an empty one is the workspace itself.
    rooms: frozenset[str]

    @property
    def name(self) -> str:
        """How people name them: "channel:id"."""
        return f"{self.channel}:{self.sender}"


@dataclass(frozen=True, slots=True)
class Touched:
    """What else holds words of somebody, and is to be dropped or deleted behind the transaction."""

    # Transcripts of others that were changed.
    transcripts: Collection[str]
    # The sessions of these.
    sessions: frozenset[str] = frozenset()
    # Files that the person sent in sessions of others: the key of the session, and the path in its room.
    files: frozenset[tuple[str, str]] = frozenset()


class Forgetting(Subject):
    """Transactions that forget a person."""

    @query
    def begun(self, db: sqlite3.Connection) -> Sequence[str]:
        """Return who is being forgotten, each as "channel:id"."""
        return [key for (key,) in db.execute("SELECT key FROM kv WHERE scope=?", (_SCOPE,))]

    @query
    def session_keys(self, db: sqlite3.Connection, channel: str, sender: str) -> tuple[Sequence[str], bool]:
        """Return the keys of all sessions, and whether anything is stored of a person by their id."""
        keys = db.execute(
            "SELECT session_key FROM session UNION SELECT session_key FROM transcript UNION SELECT session_key FROM job"
            " UNION SELECT session_key FROM turn UNION SELECT session_key FROM inbox WHERE session_key IS NOT NULL"
        ).fetchall()
        (known,) = db.execute(
            "SELECT EXISTS (SELECT 1 FROM person WHERE channel=?1 AND sender=?2)"
            " OR EXISTS (SELECT 1 FROM inbox WHERE channel=?1 AND sender=?2)"
            " OR EXISTS (SELECT 1 FROM usage WHERE sender=?1 || ':' || ?2)"
            " OR EXISTS (SELECT 1 FROM kv WHERE scope=?3 AND key=?1 || ':' || ?2)"
            " OR EXISTS (SELECT 1 FROM job WHERE origin ->> '$.sender'=?2 AND origin ->> '$.place.channel'=?1)"
            " OR EXISTS (SELECT 1 FROM overheard WHERE json_valid(payload) AND payload ->> '$.origin.sender'=?2"
            " AND payload ->> '$.origin.place.channel'=?1)",
            (channel, sender, _SCOPE),
        ).fetchone()
        return [key for (key,) in keys], bool(known)

    @transaction
    def begin(self, db: sqlite3.Connection, whom: Whom) -> tuple[Whom, Sequence[str]]:
        """Note that somebody is being forgotten, and stop the turns that they have a part in; returns these.

        What an earlier attempt has noted of their sessions and rooms, whose rows may be gone, is added to them.
        """
        noted, touched = _noted(db, whom)
        whom = replace(whom, sessions=whom.sessions | noted.sessions, rooms=whom.rooms | noted.rooms)
        _note(db, whom, touched)
        found = db.execute(
            f"SELECT turn_id FROM turn WHERE {OPEN_TURN} AND (session_key {_OWN} OR EXISTS (SELECT 1 FROM inbox"
            " WHERE inbox.turn_id=turn.turn_id AND channel=?2 AND sender=?3))",
            (json.dumps([*whom.sessions]), whom.channel, whom.sender),
        ).fetchall()
        for (turn_id,) in found:
            stop_turn(db, turn_id, self._now(), Cause.ACCESS)
        return whom, [turn_id for (turn_id,) in found]

    @transaction
    def rows(self, db: sqlite3.Connection, whom: Whom, saved_as: SavedAs) -> Touched:
        """Delete all rows of somebody, and their words in the transcripts of others."""
        own, who = json.dumps([*whom.sessions]), (whom.channel, whom.sender)
        direct = json.dumps(_direct(db, whom))
        take_of_person(db, *who, own, whom.rooms)
        messages = _messages(db, whom)
        theirs = Theirs(whom.channel, whom.sender, whom.sessions, _names(db, whom, messages), messages)
        for (turn_id,) in db.execute("SELECT turn_id FROM inbox WHERE channel=? AND sender=?", who).fetchall():
            theirs.take_turn(db, turn_id)
        theirs.take_told(db)
        transcripts_of_others = theirs.delete_words(db)
        turns = json.dumps(theirs.turns)
        _delete_counted(db, whom, own, turns, direct)
        _delete_turns(db, own, turns)
        ours = "(origin ->> '$.sender'=?2 AND origin ->> '$.place.channel'=?1)"
        db.execute(f"DELETE FROM firing WHERE job_id IN (SELECT job_id FROM job WHERE {ours})", who)
        db.execute(f"DELETE FROM job WHERE {ours}", who)
        for table in _OF_SESSIONS:
            db.execute(f"DELETE FROM {table} WHERE session_key {_OWN}", (own,))
        transcripts = f"SELECT transcript_id FROM transcript WHERE session_key {_OWN}"
        db.execute(f"DELETE FROM entry WHERE transcript_id IN ({transcripts})", (own,))
        db.execute(f"DELETE FROM turn WHERE session_key {_OWN}", (own,))
        db.execute(f"DELETE FROM transcript WHERE session_key {_OWN}", (own,))
        _delete_places(db, whom, direct)
        files = _referred(db, whom, saved_as)  # which are named by the id that goes now
        _unname(db, whom, own)
        others = [(key, one) for key, one in messages if key and key not in whom.sessions]
        files |= {(key, saved_as(key, one, n)) for key, one in others for n in range(len(one.files))}
        _, before = _noted(db, whom)
        touched = Touched(transcripts_of_others, before.sessions | theirs.sessions, before.files | files)
        _note(db, whom, touched)
        return touched

    @transaction
    def end(self, db: sqlite3.Connection, who: str) -> None:
        """Note that somebody, named as "channel:id", is forgotten."""
        db.execute("DELETE FROM kv WHERE scope=? AND key=?", (_SCOPE, who))

    async def wipe(self) -> bool:
        """Rewrite the file without free pages, and empty the write-ahead log; False if a reader was in the way."""
        return await self._database.execute(_wipe)


def _wipe(db: sqlite3.Connection) -> bool:
    db.execute("PRAGMA secure_delete=ON")
    db.execute("VACUUM")
    (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _noted(db: sqlite3.Connection, whom: Whom) -> tuple[Whom, Touched]:
    """Return what an attempt to forget somebody has noted."""
    found = db.execute("SELECT value FROM kv WHERE scope=? AND key=?", (_SCOPE, whom.name)).fetchone()
    noted = json.loads(found[0]) if found else {}
    sessions, rooms, others, files = (noted.get(name, ()) for name in ("sessions", "rooms", "others", "files"))
    touched = Touched((), frozenset(others), frozenset((key, path) for key, path in files))
    return replace(whom, sessions=frozenset(sessions), rooms=frozenset(rooms)), touched


def _note(db: sqlite3.Connection, whom: Whom, touched: Touched) -> None:
    """Note what is to be deleted behind the rows."""
    noted = {"sessions": [*whom.sessions], "rooms": [*whom.rooms], "others": [*touched.sessions]}
    set_value(db, _SCOPE, whom.name, json.dumps(noted | {"files": [*touched.files]}))


def _direct(db: sqlite3.Connection, whom: Whom) -> list[int]:
    """Return the conversations in which nobody but the person writes."""
    found = db.execute(
        "SELECT conv_id FROM conversation WHERE kind='direct' AND channel=?1 AND (chat=?2 OR conv_id IN"
        " (SELECT conv_id FROM inbox WHERE channel=?1 AND sender=?2))",
        (whom.channel, whom.sender),
    )
    return [conv_id for (conv_id,) in found]


def _messages(db: sqlite3.Connection, whom: Whom) -> list[tuple[str, InboundMessage]]:
    """Return what is kept of what the person wrote, with the sessions."""
    found = db.execute(
        "SELECT coalesce(session_key, ''), payload, seq FROM inbox WHERE channel=?1 AND sender=?2"
        " UNION ALL SELECT '', payload, seq FROM overheard WHERE json_valid(payload)"
        " AND payload ->> '$.origin.sender'=?2 AND payload ->> '$.origin.place.channel'=?1",
        (whom.channel, whom.sender),
    ).fetchall()
    return [(key, message) for key, payload, seq in found if (message := codec.read_inbound(payload, seq)) is not None]


def _referred(db: sqlite3.Connection, whom: Whom, saved_as: SavedAs) -> set[tuple[str, str]]:
    """Return the files of the person that were saved for messages of others, which name them no longer."""
    found = db.execute(
        "SELECT session_key, payload, seq FROM inbox WHERE channel=? AND sender<>? AND session_key IS NOT NULL"
        " AND json_valid(payload)"
        " AND (instr(payload, '\"by\":' || json_quote(?)) OR payload ->> '$.replied_by.sender'=?)",
        (whom.channel, whom.sender, whom.sender, whom.sender),
    ).fetchall()
    files = set()
    for key, payload, seq in found:
        message = codec.read_inbound(payload, seq)
        if message is None:
            continue
        files |= {(key, saved_as(key, message, n)) for n, one in enumerate(message.files) if one.by == whom.sender}
        kept = replace(message, overheard=tuple(one for one in message.overheard if one.by != whom.sender))
        if kept.replied and kept.replied_by and kept.replied_by.sender == whom.sender:
            kept = replace(kept, replied=replace(kept.replied, attachments=()))
        db.execute("UPDATE inbox SET payload=? WHERE seq=?", (codec.INBOUND.dump(kept), seq))
    return files


def _names(db: sqlite3.Connection, whom: Whom, messages: Sequence[tuple[str, InboundMessage]]) -> set[str]:
    """Return the names of the person as lines of transcripts show them."""
    stored = db.execute("SELECT name FROM person WHERE channel=? AND sender=?", (whom.channel, whom.sender))
    names = {name for (name,) in stored} | {message.origin.sender_name for _, message in messages}
    return {named(name) for name in names if name}


# Condition for what belongs to the turns of sessions.
_MINE = "turn_id IN (SELECT turn_id FROM turn WHERE session_key IN (SELECT value FROM json_each(?1)))"


def _delete_counted(db: sqlite3.Connection, whom: Whom, own: str, turns: str, direct: str) -> None:
    """Delete messages and deliveries, and write down in the book that they are gone.

    own, turns, direct: JSON lists of sessions, of turns in other sessions, and of conversations.
    """
    told = f"SELECT source FROM delivery WHERE {_MINE} OR turn_id IN (SELECT value FROM json_each(?2))"
    messages = db.execute(
        "SELECT seq FROM inbox WHERE channel=?4 AND sender=?5 OR conv_id IN (SELECT value FROM json_each(?3))"
        f" OR session_key {_OWN} OR event_key IN ({told})",
        (own, turns, direct, whom.channel, whom.sender),
    ).fetchall()
    deliveries = db.execute(
        f"SELECT delivery_id FROM delivery WHERE {_MINE} OR conv_id IN (SELECT value FROM json_each(?2))", (own, direct)
    ).fetchall()
    balance.carry(db, [seq for (seq,) in messages])
    note_gone(db, "delivery", [delivery_id for (delivery_id,) in deliveries])
    db.executemany("DELETE FROM inbox WHERE seq=?", messages)
    db.executemany("DELETE FROM delivery WHERE delivery_id=?", deliveries)


def _delete_turns(db: sqlite3.Connection, own: str, turns: str) -> None:
    """Delete what turns have asked and called, and what they said: all of their own sessions, the words of others.

    own, turns: JSON lists of sessions, and of turns in other sessions.
    """
    others = "turn_id IN (SELECT value FROM json_each(?2))"
    requests = f"SELECT approval_id FROM approval WHERE {_MINE} OR {others}"
    blank = "body='', said='', buttons=NULL, file=NULL, respond=NULL, error=NULL"
    db.execute(f"UPDATE delivery SET {blank}, subject=NULL WHERE subject IN ({requests})", (own, turns))
    db.execute(f"UPDATE delivery SET {blank} WHERE turn_id {_OWN}", (turns,))
    db.execute(f"DELETE FROM approval WHERE {_MINE} OR {others}", (own, turns))
    db.execute(f"DELETE FROM tool_call WHERE {_MINE}", (own,))
    tasks = f"SELECT '{FOLLOWED}' || transcript_id FROM transcript WHERE session_key {_OWN}"
    db.execute(f"DELETE FROM kv WHERE scope IN ({tasks})", (own,))
    db.execute(f"UPDATE tool_call SET args='{{}}' WHERE turn_id {_OWN}", (turns,))
    db.execute(f"DELETE FROM event WHERE turn_id {_OWN}", (turns,))
    db.execute(f"UPDATE turn SET error_message=NULL WHERE turn_id {_OWN}", (turns,))
    db.execute(f"UPDATE child SET label='' WHERE by_turn {_OWN}", (turns,))
    db.execute(f"UPDATE inbox SET turn_id=NULL WHERE {_MINE}", (own,))


def _delete_places(db: sqlite3.Connection, whom: Whom, direct: str) -> None:
    """Delete conversations with the person alone, and what was overheard of them elsewhere."""
    db.execute(
        "DELETE FROM overheard WHERE json_valid(payload) AND payload ->> '$.origin.sender'=?2"
        " AND payload ->> '$.origin.place.channel'=?1",
        (whom.channel, whom.sender),
    )
    db.execute(f"DELETE FROM overheard WHERE conv_id {_OWN}", (direct,))
    db.execute(f"UPDATE session SET last_conv=NULL WHERE last_conv {_OWN}", (direct,))
    db.execute(f"UPDATE turn SET reply_conv=NULL WHERE reply_conv {_OWN}", (direct,))
    db.execute(f"UPDATE conversation SET moved_to=NULL WHERE moved_to {_OWN}", (direct,))
    missed = "scope=?2 AND key IN (SELECT CAST(value AS TEXT) FROM json_each(?1))"
    db.execute(f"DELETE FROM kv WHERE {missed}", (direct, MISSED))
    db.execute(
        "DELETE FROM kv WHERE key IN (SELECT channel || ':' || account || ':' || chat FROM conversation"
        f" WHERE conv_id {_OWN})",
        (direct,),
    )
    db.execute(f"DELETE FROM conversation WHERE conv_id {_OWN}", (direct,))


def _unname(db: sqlite3.Connection, whom: Whom, own: str) -> None:
    """Take the id of the person out of rows that are kept, and delete those about their rights and files."""
    who = (whom.channel, whom.sender)
    db.execute("DELETE FROM person WHERE channel=? AND sender=?", who)
    db.execute("UPDATE person SET set_by='' WHERE set_by=?", (whom.name,))
    db.execute(f"UPDATE usage SET sender='', session_key='' WHERE sender=?2 OR session_key {_OWN}", (own, whom.name))
    db.execute("DELETE FROM budget_raise WHERE of=?2 OR of IN (SELECT value FROM json_each(?1))", (own, whom.name))
    for table, by in (("granted", "granted_by"), ("approval", "decided_by")):  # with their name behind
        db.execute(f"UPDATE {table} SET {by}='' WHERE {by}=?1 OR instr({by}, ?1 || ' ')=1", (whom.name,))
    db.execute(
        "UPDATE approval SET approvers=(SELECT json_group_array(value) FROM json_each(approvers) WHERE value<>?1)"
        " WHERE json_valid(approvers) AND EXISTS (SELECT 1 FROM json_each(approvers) WHERE value=?1)",
        (whom.name,),
    )
    db.execute(
        "UPDATE inbox SET payload=json_set(payload, '$.replied.text', ?3, '$.replied.author', '', '$.replied_by', NULL)"
        " WHERE channel=?1 AND json_valid(payload) AND payload ->> '$.replied_by.sender'=?2",
        (*who, DELETED),
    )
    for room in filter(None, whom.rooms):
        db.execute("DELETE FROM file_origin WHERE path=?1 OR path > ?1 || '/' AND path < ?1 || '0'", (room,))
        db.execute("DELETE FROM file_writer WHERE room=?", (room,))
    for table in ("file_origin", "file_writer", "job"):
        found = db.execute(f"SELECT rowid, origins FROM {table} WHERE instr(origins, ?)", (whom.sender,)).fetchall()
        for rowid, origins in found:
            kept = codec.ORIGINS.dump(Theirs.unnamed(codec.origins(origins), *who))
            db.execute(f"UPDATE {table} SET origins=? WHERE rowid=?", (kept, rowid))
