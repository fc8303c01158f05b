"""Who may write: one-time codes for strangers, and what becomes of a message whose sender or place decides about it.

Decided in the transaction that accepts the message, by what is stored then: so a code is given once, and who takes part
in a thread is known after a restart, too.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace

from bot.persistence.values import BOTS, AcceptedMessage, Person, PlanIn, Settled, Standing
from bot.store import codec, rows
from bot.store.history import IS_BEHIND
from bot.store.indexes import HELD, OPEN_TURN, SAID, WAITING
from bot.store.writer import Subject, query, transaction
from channels.message import ChatMoved
from channels.outgoing import Planned

# Milliseconds for which a code is good.
CODE_LIFE = 3600 * 1000
# Codes that are good at the same time, of one account.
MOST_PENDING = 3
# Messages of other bots that are answered in one chat before a person has to write there.
MOST_BOTS = 10

# The fields of a Person.
_COLUMNS = "channel, account, sender, standing, name, coalesce(expires_at, 0)"
_WHOSE = "channel=? AND account=? AND sender=?"
_HELD = f"{HELD} AND reason='pairing'"


class People(Subject):
    """Transactions about people."""

    @query
    def known(self, db: sqlite3.Connection) -> tuple[Sequence[Person], Sequence[ChatMoved]]:
        people = db.execute(f"SELECT {_COLUMNS} FROM person WHERE standing IN ('allowed','owner')")
        moved = db.execute(
            "SELECT old.channel, old.account, old.chat, new.chat FROM conversation AS old"
            " JOIN conversation AS new ON new.conv_id = old.moved_to ORDER BY old.conv_id"
        )
        chats = [ChatMoved(channel=name, account=bot, old_chat=old, new_chat=new) for name, bot, old, new in moved]
        return [Person(*row) for row in people], chats

    @query
    def pending(self, db: sqlite3.Connection) -> Sequence[Person]:
        asked = f"SELECT {_COLUMNS} FROM person WHERE standing='pending' AND expires_at > ? ORDER BY expires_at"
        return [Person(*row) for row in db.execute(asked, (self._now(),))]

    @transaction
    def settle(
        self, db: sqlite3.Connection, code: str, standing: Standing, tell: Callable[[str], Sequence[Planned]]
    ) -> Settled | None:
        now = self._now()
        found = db.execute(f"SELECT {_COLUMNS} FROM person WHERE code_hash=?", (code,)).fetchone()
        if found is None:
            return None
        person = Person(*found)
        if person.standing != "pending" or person.until <= now:
            return Settled(person=person, used=True)
        whose = (person.channel, person.account, person.sender)
        db.execute(f"UPDATE person SET standing=?, since=?, expires_at=NULL WHERE {_WHOSE}", (standing, now, *whose))
        person = replace(person, standing=standing, until=0)
        if standing == "blocked":
            _drop_held(db, whose, "denied")
            return Settled(person=person)
        held_by = f"SELECT seq, conv_id, session_key, payload FROM inbox WHERE {_WHOSE} AND {_HELD}"
        held = db.execute(held_by, whose).fetchone()
        if held is None:  # lost with a damaged store
            return Settled(person=person)
        seq, conv_id, session_key, payload = held
        rows.transcript_of(db, session_key, conv_id, now, self._new_id())
        db.execute("UPDATE inbox SET state='waiting', reason=NULL WHERE seq=?", (seq,))
        said = rows.plan(db, PlanIn(conv_id), tell(person.channel), None, now)
        message = codec.read_inbound(payload, seq)
        return Settled(person=person, waiting=(seq, session_key, message) if message else None, said=said)


def admitted(db: sqlite3.Connection, item: AcceptedMessage, conv_id: int, now: int) -> AcceptedMessage:
    """What becomes of a message that is about to be stored, where that depends on what is stored."""
    if item.code:
        return _held(db, item, now)
    if item.follows and not _takes_part(db, item, conv_id):
        return replace(item, state="overheard", session_key=None, say=())
    if item.state in ("waiting", "overheard") and _too_many_bots(db, item):
        return replace(item, state="dropped", reason=BOTS, session_key=None, say=())
    return item


def _held(db: sqlite3.Connection, item: AcceptedMessage, now: int) -> AcceptedMessage:
    """A stranger's message waits for their approval, and they are given a code: once in its life, and few at once."""
    origin = item.message.origin
    account = (origin.place.channel, origin.place.account)
    whose = (*account, origin.sender)
    found = db.execute(f"SELECT standing, coalesce(expires_at, 0) FROM person WHERE {_WHOSE}", whose).fetchone()
    standing, until = found or ("pending", 0)
    if standing in ("allowed", "owner"):  # let in since it was looked at
        return replace(item, state="waiting", reason=None, say=())
    count = "SELECT count(*) FROM person WHERE channel=? AND account=? AND standing='pending' AND expires_at > ?"
    (pending,) = db.execute(count, (*account, now)).fetchone()
    if standing == "blocked" or until > now or pending >= MOST_PENDING:
        counted = replace(item.message, event_key=f"x:{origin.sender}")
        return replace(item, message=counted, session_key=None, state="dropped", reason="access", say=())
    _drop_held(db, whose, "expired")
    db.execute(
        "INSERT OR REPLACE INTO person (channel, account, sender, standing, name, code_hash, expires_at, since)"
        " VALUES (?,?,?,'pending',?,?,?,?)",
        (*whose, origin.sender_name, item.code, now + CODE_LIFE, now),
    )
    return item


def _drop_held(db: sqlite3.Connection, whose: tuple[str, str, str], reason: str) -> None:
    db.execute(f"UPDATE inbox SET state='dropped', reason=? WHERE {_WHOSE} AND {_HELD}", (reason, *whose))


def drop_expired(db: sqlite3.Connection, now: int) -> None:
    """Codes that nobody used go, and with them what their people had written."""
    forget = "DELETE FROM person WHERE standing='pending' AND expires_at <= ? RETURNING channel, account, sender"
    for whose in db.execute(forget, (now,)).fetchall():
        _drop_held(db, whose, "expired")


def _takes_part(db: sqlite3.Connection, item: AcceptedMessage, conv_id: int) -> bool:
    """Whether the bot wrote the message that a thread hangs on; if that is enough, also whether it spoke there, or is
    about to: what asked it waits or is worked on."""
    place = item.message.origin.place
    began = db.execute(
        "SELECT 1 FROM delivery WHERE conv_id=(SELECT conv_id FROM conversation"
        f" WHERE channel=? AND account=? AND chat=? AND thread='') AND {SAID} AND platform_id=? LIMIT 1",
        (place.channel, place.account, place.chat, place.thread),
    ).fetchone()
    if began or item.follows == "started":
        return began is not None
    (joined,) = db.execute(
        f"SELECT EXISTS (SELECT 1 FROM delivery WHERE conv_id=?1 AND {SAID})"
        f" OR EXISTS (SELECT 1 FROM turn WHERE session_key=?2 AND {OPEN_TURN} AND reply_conv=?1)"
        f" OR EXISTS (SELECT 1 FROM inbox WHERE session_key=?2 AND {WAITING} AND conv_id=?1)"
        f" OR EXISTS (SELECT 1 FROM inbox WHERE session_key=?2 AND {IS_BEHIND} AND conv_id=?1)",
        (conv_id, item.session_key),
    ).fetchone()
    return bool(joined)


def _too_many_bots(db: sqlite3.Connection, item: AcceptedMessage) -> bool:
    """Whether a message is one too many of those that bots write to each other; a person begins the count anew.

    By the chat and not the thread, since an answer may open a new one. It is kept, so a restart begins no new loop.
    """
    origin = item.message.origin
    chat = f"{origin.place.channel}:{origin.place.account}:{origin.place.chat}"
    if not origin.by_bot:
        if item.message.by_person:
            db.execute("DELETE FROM kv WHERE scope=? AND key=?", (BOTS, chat))
        return False
    if item.state == "overheard":
        return False
    (count,) = db.execute(
        "INSERT INTO kv (scope, key, value) VALUES (?,?,'1')"
        " ON CONFLICT (scope, key) DO UPDATE SET value = value + 1 RETURNING CAST(value AS INTEGER)",
        (BOTS, chat),
    ).fetchone()
    return int(count) > MOST_BOTS
