"""Finds the request that a message without a command is about, and what its words decide.

A message is about a request when it replies to the delivery that shows it, or when it is a plain word in a conversation
where a request waits. Everything here runs inside a unit of the writer.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from agent.tools.base import Ask
from bot import plain_words as plain
from bot.persistence.approvals import ANYONE
from bot.store import codec
from bot.store.approvals import OF_IT
from bot.store.indexes import OPEN_APPROVAL, SAID
from channels.message import ChatKind, InboundKind, InboundMessage, Place, ReplyDecision, RequestReply, id_order

# Milliseconds by which the clock of a platform may be behind ours. A message that was sent longer before a question was
# asked is not its answer.
_CLOCKS = 10_000


def meant_by(
    db: sqlite3.Connection, message: InboundMessage, conv_id: int, now: int
) -> tuple[InboundMessage | None, str | None]:
    """Return the message as the command that it is, with its decision in `decides`; None when it decides nothing.

    With None also return the id of the request that was shown last in the conversation, if the sender may decide it.

    A reply to the delivery that shows a request, or a message in the thread below it, decides the request if it is a
    plain word; with any other words the sender is asked what is to become of them. A reply to a question answers it.
    A message that is no reply answers a question if `plain_words.answers` says so, the question is the only one open in
    the conversation, and the message is not older than it. A plain word that is no reply decides in a direct chat or
    the terminal only: the request that was shown last there, if it is the only one that waits and is older.
    """
    place, said = message.origin.place, message.text.strip()
    if not said or message.attachments or message.origin.by_bot:  # files would be lost
        return None, None
    typed = place.kind is ChatKind.CONSOLE
    # what is passed on is somebody else's words
    word, numbers = (None, ()) if message.forwarded else (plain.decision(said, typed=typed), plain.picked(said))
    if (target := message.reply_to or place.thread) and (shown := _shown_by(db, place, target, now)):
        for approval_id, question in _theirs(shown, message):
            if numbers and not question and _of_several(db, approval_id):
                return _as_command(message, approval_id, "once", numbers), None
            return _as_command(message, approval_id, "answered" if question else word or "ask"), None
        return None, None
    asked = _theirs(_questions_in(db, conv_id, message.sent_at + _CLOCKS if message.sent_at else now, now), message)
    if len(asked) == 1:
        (ask,) = db.execute("SELECT ask FROM approval WHERE approval_id=?", (asked[0][0],)).fetchone()
        if plain.answers(codec.ASK.load(ask, Ask(digest="", subject="")), said):
            return _as_command(message, asked[0][0], "answered"), None
    last = (
        None
        if message.reply_to or not (typed or place.kind is ChatKind.DIRECT)
        else _last_in(db, message, conv_id, now)
    )
    if last and numbers and _of_several(db, last):
        return _as_command(message, last, "once", numbers), None
    return (_as_command(message, last, word), None) if last and word else (None, last)


def waited_for(db: sqlite3.Connection, session_key: str, now: int) -> str | None:
    """Return the id of the request on which the turn of a session is parked; None if it is not parked.

    A beat or a job keeps nobody waiting.
    """
    found = db.execute(
        "SELECT parked_on FROM turn JOIN approval ON approval_id=parked_on WHERE session_key=?"
        " AND turn.state IN ('running','parked') AND turn.state='parked' AND turn.kind NOT IN ('beat','job')"
        " AND approval.state='open' AND expires_at > ?",
        (session_key, now),
    ).fetchone()
    return str(found[0]) if found else None


def _of_several(db: sqlite3.Connection, approval_id: str) -> bool:
    """Return whether a request is about several calls, whose numbers may be said."""
    (ask,) = db.execute("SELECT ask FROM approval WHERE approval_id=?", (approval_id,)).fetchone()
    return bool(codec.ASK.load(ask, Ask(digest="", subject="")).calls)


def _as_command(
    message: InboundMessage, approval_id: str, decision: ReplyDecision, picked: tuple[int, ...] = ()
) -> InboundMessage:
    decides = RequestReply(request_id=approval_id, decision=decision, picked=picked)
    return replace(message, kind=InboundKind.COMMAND, decides=decides)


def _theirs(found: Sequence[tuple[str, int, str]], message: InboundMessage) -> list[tuple[str, bool]]:
    """Keep the approvals that the sender of a message may decide; returns the id of each and whether it is a question.

    found: id, whether it is a question, and the approvers as JSON.
    """
    place = message.origin.place
    whose = {ANYONE, f"{place.channel}:{message.origin.sender}"}
    local = place.kind is ChatKind.CONSOLE
    return [(one[0], bool(one[1])) for one in found if local or not whose.isdisjoint(json.loads(one[2]))]


def _shown_by(db: sqlite3.Connection, place: Place, target: str, now: int) -> list[tuple[str, int, str]]:
    """Return the open requests that the delivery with a platform id shows, as `_theirs` takes them."""
    return db.execute(
        "SELECT approval_id, question, approvers FROM delivery JOIN conversation USING (conv_id)"
        f" JOIN approval ON {OF_IT}"
        " WHERE channel=? AND account=? AND chat=? AND platform_id=?"
        f" AND delivery.{SAID} AND approval.{OPEN_APPROVAL} AND expires_at > ?",
        (place.channel, place.account, place.chat, target, now),
    ).fetchall()


def _questions_in(db: sqlite3.Connection, conv_id: int, until: int, now: int) -> list[tuple[str, int, str]]:
    """Return the open questions of a conversation that were asked until a moment (milliseconds)."""
    return db.execute(
        "SELECT approval_id, question, approvers FROM approval INDEXED BY approval_question"
        " WHERE state='open' AND question=1 AND expires_at > ?1 AND asked_at <= ?3 AND EXISTS (SELECT 1 FROM"
        f" delivery WHERE conv_id=?2 AND {OF_IT})",
        (now, conv_id, until),
    ).fetchall()


def _last_in(db: sqlite3.Connection, message: InboundMessage, conv_id: int, now: int) -> str | None:
    """Return the id of the request that was shown last in a conversation and is the only one that waits there.

    Return None if the sender may not decide it, something else was said since, or the message is older than the
    request. Which is older is told by the platform's order of message ids where there is one, for clocks differ.
    """
    shown = db.execute(
        "SELECT approval_id, question, approvers, delivery_id, platform_id, settled_at FROM approval"
        f" INDEXED BY approval_expires CROSS JOIN delivery WHERE approval.{OPEN_APPROVAL} AND expires_at > ?"
        f" AND {OF_IT} AND conv_id=? AND buttons IS NOT NULL AND delivery.{SAID} ORDER BY delivery_id",
        (now, conv_id),
    ).fetchall()
    if len({one[0] for one in shown}) != 1 or shown[0][1] or not _theirs([shown[0][:3]], message):
        return None
    approval_id, *_, delivery_id, platform_id, settled_at = shown[-1]
    later = db.execute(
        "SELECT 1 FROM delivery WHERE delivery_id > ? AND conv_id=? AND action IN ('send','preview','file')"
        " AND state IN ('sent','sending','unknown','uncertain')",
        (delivery_id, conv_id),
    ).fetchone()
    ours = message.origin.message_id
    after = id_order(ours) > id_order(platform_id) if ours and platform_id else message.sent_at >= settled_at
    return str(approval_id) if after and not later else None
