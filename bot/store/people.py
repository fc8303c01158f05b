"""Decides who may write: by one-time codes for strangers, the orders of owners, and the sender and place of a message.

The transaction that accepts a message decides about it by the stored rows. So a code is given once, and threads in
which the bot takes part are known after a restart.
"""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from bot.persistence.causes import Cause
from bot.persistence.deliveries import OwnerNotice, PlanIn
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.people import Person, Settled, Standing
from bot.persistence.settings import SessionSettings
from bot.store import codec, rows
from bot.store.history import IS_BEHIND, PART_OF
from bot.store.indexes import HELD, OPEN_TURN, SAID, WAITING
from bot.store.rows import UNSEEN
from bot.store.stops import stop_turn
from bot.store.writer import Subject, query, transaction
from channels.message import SEVERAL, ChatMoved, InboundKind, InboundMessage, Place
from channels.outgoing import Delivery, Planned
from channels.sources import sentence

# For how long a code is valid, and the time between two notices about people who got one, in milliseconds.
CODE_LIFE = HOUR = 3600 * 1000
# The number of valid codes of one account.
MOST_PENDING = 3
# The number of messages that are held of each person with a code.
MOST_HELD = 20
# The number of messages of other bots that are answered in one chat in a row, without one of a person.
MOST_BOTS = 10

# The fields of a Person.
_COLUMNS = "channel, account, sender, standing, name, coalesce(expires_at, 0), since, set_by"
_WHOSE = "channel=? AND account=? AND sender=?"
_HELD = f"{HELD} AND reason='{Cause.PAIRING}'"


class People(Subject):
    """The people about whom the store decides, and not the configuration."""

    @query
    def seen(self, db: sqlite3.Connection, place: Place) -> frozenset[str]:
        """Return the ids of all who have written to the bot in a chat."""
        found = db.execute(
            "SELECT DISTINCT sender FROM conversation JOIN inbox USING (conv_id)"
            " WHERE conversation.channel=? AND conversation.account=? AND chat=?",
            (place.channel, place.account, place.chat),
        )
        return frozenset(sender for (sender,) in found if sender)

    @query
    def known(self, db: sqlite3.Connection) -> tuple[Sequence[Person], Sequence[ChatMoved]]:
        """Return all people whose standing is stored or whose code is valid, and all moved chats in order."""
        known = f"SELECT {_COLUMNS} FROM person WHERE standing<>'pending' OR expires_at > ? ORDER BY since, sender"
        people = db.execute(known, (self._now(),))
        moved = db.execute(
            "SELECT old.channel, old.account, old.chat, new.chat FROM conversation AS old"
            " JOIN conversation AS new ON new.conv_id = old.moved_to ORDER BY old.conv_id"
        )
        chats = [ChatMoved(channel=name, account=bot, old_chat=old, new_chat=new) for name, bot, old, new in moved]
        return [Person(*row) for row in people], chats

    @query
    def pending(self, db: sqlite3.Connection) -> Sequence[Person]:
        """Return the people whose codes are valid, oldest first."""
        asked = f"SELECT {_COLUMNS} FROM person WHERE standing='pending' AND expires_at > ? ORDER BY expires_at"
        return [Person(*row) for row in db.execute(asked, (self._now(),))]

    @transaction
    def tell(self, db: sqlite3.Connection, notice: Callable[[Sequence[Person]], OwnerNotice]) -> tuple[Delivery, ...]:
        """Plan a notice to an owner about people who got a code since the last notice, at most one in an hour."""
        now = self._now()
        (last,) = db.execute("SELECT coalesce(max(told_at), 0) FROM person").fetchone()
        if 0 <= now - last < HOUR:
            return ()
        told = f"UPDATE person SET told_at=? WHERE standing='pending' AND told_at IS NULL RETURNING {_COLUMNS}"
        found = [Person(*row) for row in db.execute(told, (now,)).fetchall()]
        return rows.tell_owner(db, notice(found), now) if found else ()

    @query
    def asker(self, db: sqlite3.Connection, code: str) -> Person | None:
        """Return who was given the code with this digest, used or not; None if nobody was."""
        return _asker(db, code)

    @transaction
    def settle(
        self, db: sqlite3.Connection, code: str, standing: Standing, welcome: Sequence[Planned], by: str = ""
    ) -> Settled | None:
        """Let in (allowed, owner) or shut out (blocked) who was given the code with this digest; None: there is none.

        A code can be used once. What they had written is accepted, or dropped. welcome: what somebody who is let in is
        told. by: who says so, as "channel:id".
        """
        now = self._now()
        person = _asker(db, code)
        if person is None:
            return None
        if person.standing != "pending" or person.until <= now:
            return Settled(person=person, used=True)
        whose = (person.channel, person.account, person.sender)
        become = f"UPDATE person SET standing=?, since=?, set_by=?, expires_at=NULL WHERE {_WHOSE}"
        db.execute(become, (standing, now, by, *whose))
        person = replace(person, standing=standing, until=0, since=now, by=by)
        if standing == "blocked":
            _drop_held(db, whose, Cause.DENIED)
            return Settled(person=person)
        return self._released(db, person, whose, welcome, now)

    @transaction
    def stand(
        self,
        db: sqlite3.Connection,
        channel: str,
        sender: str,
        standing: Literal["owner", "blocked", "allowed"] | None,
        welcome: Sequence[Planned],
        by: str,
    ) -> Settled | None:
        """Make somebody an owner, let them in, shut them out, or forget what is stored of them (None), on all accounts
        of a channel.

        Of who is let in, what was held is accepted, and `welcome` is said to them. Of others it ends what they alone
        asked for and drops what waits: everywhere when they are shut out, else in direct conversations. Returns None if
        there is nothing to be forgotten. by: who says so, as "channel:id".
        """
        now, who = self._now(), (channel, sender)
        known = db.execute(f"DELETE FROM person WHERE channel=? AND sender=? RETURNING {_COLUMNS}", who).fetchall()
        if standing is None and not known:
            return None
        name = next((Person(*one).name for one in known if Person(*one).name), "")
        person = Person(channel, "", sender, standing or "pending", name, since=now, by=by)
        if standing is not None:
            db.execute(
                "INSERT INTO person (channel, account, sender, standing, name, since, set_by) VALUES (?,'',?,?,?,?,?)",
                (*who, standing, name, now, by),
            )
        if standing in ("owner", "allowed"):
            made = [self._released(db, person, (one[0], one[1], one[2]), welcome, now) for one in known]
            waiting = tuple(one for found in made for one in found.waiting)
            return Settled(person=person, waiting=waiting, said=tuple(one for found in made for one in found.said))
        return _ended(db, person, standing == "blocked", now)

    def _released(
        self, db: sqlite3.Connection, person: Person, whose: tuple[str, str, str], welcome: Sequence[Planned], now: int
    ) -> Settled:
        """Accept what was held of somebody, as if all of it had been written at once."""
        held = db.execute(
            f"UPDATE inbox SET state='waiting', reason=NULL, ready_at=1, gathers=(kind='message') WHERE {_WHOSE}"
            f" AND {_HELD} RETURNING seq, session_key, payload, conv_id",
            whose,
        ).fetchall()
        if not held:  # lost with a damaged store
            return Settled(person=person)
        waiting = list[tuple[int, str, InboundMessage]]()
        for seq, session_key, payload, conv_id in sorted(held):
            message = codec.read_inbound(payload, seq)
            outside = message is not None and message.origin.outside
            if message and outside:
                welcome = [replace(block, respond=message.respond) for block in welcome]
                db.execute("UPDATE inbox SET reason=? WHERE seq=?", (Cause.OUTSIDE, seq))
            rows.transcript_of(db, session_key, None if outside else conv_id, now, self._new_id())
            waiting += [(seq, session_key, message)] if message else []
        said = rows.plan(db, PlanIn(held[0][3]), welcome, None, now)
        return Settled(person=person, waiting=tuple(waiting), said=said)


def _asker(db: sqlite3.Connection, code: str) -> Person | None:
    found = db.execute(f"SELECT {_COLUMNS} FROM person WHERE code_hash=?", (code,)).fetchone()
    return Person(*found) if found else None


def _ended(db: sqlite3.Connection, person: Person, everywhere: bool, now: int) -> Settled:
    """Drop the messages of a person who may not write any more, and stop the turns that nobody else has a part in."""
    mine, who = "inbox.channel=? AND inbox.sender=?", (person.channel, person.sender)
    here = "" if everywhere else " AND conv_id IN (SELECT conv_id FROM conversation WHERE kind='direct')"
    dropped = db.execute(
        f"UPDATE inbox SET state='dropped', reason='{Cause.ACCESS}' WHERE {mine} AND {UNSEEN}{here}", who
    ).rowcount
    turns = db.execute(
        f"SELECT DISTINCT turn_id, ({everywhere} OR conversation.kind='direct') AND NOT EXISTS (SELECT 1 FROM inbox AS"
        " other WHERE other.turn_id=turn.turn_id AND (other.channel, other.sender) <> (inbox.channel, inbox.sender))"
        " FROM inbox JOIN turn USING (turn_id) JOIN conversation ON conversation.conv_id=reply_conv"
        f" WHERE {mine} AND turn.{OPEN_TURN}",
        who,
    ).fetchall()
    for turn_id, alone in turns:
        if alone:
            stop_turn(db, turn_id, now, Cause.ACCESS)
    sessions = db.execute(
        "SELECT DISTINCT session_key FROM inbox JOIN conversation USING (conv_id)"
        f" WHERE {mine} AND conversation.kind='direct' AND session_key IS NOT NULL",
        who,
    )
    return Settled(
        person=person,
        turns=tuple(turn_id for turn_id, _ in turns),
        dropped=dropped,
        sessions=tuple(key for (key,) in sessions),
    )


def admitted(db: sqlite3.Connection, item: AcceptedMessage, conv_id: int, now: int) -> AcceptedMessage:
    """Return a message in the state in which it is to be stored, by what is stored already."""
    if item.code:
        return _held(db, item, now)
    shared = item.message.origin.place.kind in SEVERAL
    if item.state == "waiting" and shared and not _is_for_it(db, item, conv_id):
        heard = item.message
        if heard.kind is InboundKind.COMMAND:  # a command that is not for this bot
            heard = replace(heard, kind=InboundKind.MESSAGE)
        return replace(item, message=heard, state="overheard", session_key=None, say=())
    if item.state in ("waiting", "overheard") and _too_many_bots(db, item):
        return replace(item, state="dropped", reason=Cause.BOTS, session_key=None, say=())
    return item


def _held(db: sqlite3.Connection, item: AcceptedMessage, now: int) -> AcceptedMessage:
    """Hold or drop a stranger's message. A stranger without a valid code gets one, if not too many codes are valid."""
    origin = item.message.origin
    account = (origin.place.channel, origin.place.account)
    whose = (*account, origin.sender)
    asked = f"SELECT standing, coalesce(expires_at, 0), code_hash FROM person WHERE {_WHOSE}"
    standing, until, code = db.execute(asked, whose).fetchone() or ("pending", 0, "")
    if standing in ("allowed", "owner"):  # let in after the pipeline had looked
        return replace(item, state="waiting", reason=None, say=())
    (held,) = db.execute(f"SELECT count(*) FROM inbox WHERE {_WHOSE} AND {_HELD}", whose).fetchone()
    if standing == "pending" and until > now and held < MOST_HELD:
        # an answer that only the sender sees is sent each time
        alone = (item.message.event_key,) if item.message.respond else ()
        return replace(item, say=tuple(replace(one, source=sentence("kept", code, *alone)) for one in item.kept[:1]))
    count = "SELECT count(*) FROM person WHERE channel=? AND account=? AND standing='pending' AND expires_at > ?"
    (pending,) = db.execute(count, (*account, now)).fetchone()
    if standing == "blocked" or until > now or pending >= MOST_PENDING:
        counted = replace(item.message, event_key=f"x:{origin.sender}")
        return replace(item, message=counted, session_key=None, state="dropped", reason=Cause.ACCESS, say=())
    _drop_held(db, whose, Cause.EXPIRED)
    db.execute(
        "INSERT OR REPLACE INTO person (channel, account, sender, standing, name, code_hash, expires_at, since)"
        " VALUES (?,?,?,'pending',?,?,?,?)",
        (*whose, origin.sender_name, item.code, now + CODE_LIFE, now),
    )
    return item


def _drop_held(db: sqlite3.Connection, whose: tuple[str, str, str], reason: Cause) -> None:
    db.execute(f"UPDATE inbox SET state='dropped', reason=? WHERE {_WHOSE} AND {_HELD}", (reason, *whose))


def drop_expired(db: sqlite3.Connection, now: int) -> None:
    """Delete expired codes that nobody has used, and drop the held messages of their people."""
    forget = "DELETE FROM person WHERE standing='pending' AND expires_at <= ? RETURNING channel, account, sender"
    for whose in db.execute(forget, (now,)).fetchall():
        _drop_held(db, whose, Cause.EXPIRED)


def _is_for_it(db: sqlite3.Connection, item: AcceptedMessage, conv_id: int) -> bool:
    """Return whether a message of a group is for the bot. The setting of the session comes before the configuration."""
    found = db.execute("SELECT settings FROM session WHERE session_key=?", (item.session_key,)).fetchone()
    activation = codec.SETTINGS.load(found[0], SessionSettings()).activation if found else ""
    is_word = item.message.kind is InboundKind.COMMAND and not item.message.text.lstrip().startswith(("/", "!"))
    if is_word and _has_run(db, item):  # which it stops
        return True
    if activation == "off":
        return item.follows is None and item.message.kind is not InboundKind.MESSAGE
    if item.follows is None or activation == "always" or _has_other_part(db, item, conv_id):
        return True
    if activation or item.follows == "shut":
        return False
    return item.follows == "open" or _takes_part(db, item, conv_id)


def _takes_part(db: sqlite3.Connection, item: AcceptedMessage, conv_id: int) -> bool:
    """Return whether the bot wrote the first message of a thread or, if the rule is not `started`, takes part in it.

    It takes part if it spoke there, or if a message there waits or is being answered.
    """
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


def _has_run(db: sqlite3.Connection, item: AcceptedMessage) -> bool:
    """Return whether a message of the sender is being answered in the session."""
    found = db.execute(
        f"SELECT 1 FROM turn JOIN inbox USING (turn_id) WHERE turn.session_key=? AND turn.{OPEN_TURN} AND sender=?",
        (item.session_key, item.message.origin.sender),
    ).fetchone()
    return found is not None


def _has_other_part(db: sqlite3.Connection, item: AcceptedMessage, conv_id: int) -> bool:
    """Return whether another part of the same message waits or is being answered."""
    if not item.message.part_of:
        return False
    (has,) = db.execute(
        f"SELECT EXISTS (SELECT 1 FROM inbox WHERE (session_key=?1 AND {WAITING} OR turn_id IN"
        f" (SELECT turn_id FROM turn WHERE session_key=?1 AND {OPEN_TURN})) AND +conv_id=?2 AND sender=?3"
        f" AND inbox.kind='message' AND {PART_OF}=?4)",
        (item.session_key, conv_id, item.message.origin.sender, item.message.part_of),
    ).fetchone()
    return bool(has)


def _too_many_bots(db: sqlite3.Connection, item: AcceptedMessage) -> bool:
    """Count messages of other bots in a chat; return whether there are too many. One of a person resets the count.

    The count belongs to the chat and not the thread, because an answer may open a new thread. It is stored, so that a
    restart does not begin a new loop of bots.
    """
    origin = item.message.origin
    chat = f"{origin.place.channel}:{origin.place.account}:{origin.place.chat}"
    if not origin.by_bot:
        if item.message.by_person:
            db.execute("DELETE FROM kv WHERE scope=? AND key=?", (Cause.BOTS, chat))
        return False
    if item.state == "overheard":
        return False
    (count,) = db.execute(
        "INSERT INTO kv (scope, key, value) VALUES (?,?,'1')"
        " ON CONFLICT (scope, key) DO UPDATE SET value = value + 1 RETURNING CAST(value AS INTEGER)",
        (Cause.BOTS, chat),
    ).fetchone()
    return int(count) > MOST_BOTS
