"""Which request a message without a command is about: a reply to what shows one, or plain words where one waits."""

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
from channels.message import ChatKind, InboundKind, InboundMessage, Place, id_order

# Milliseconds by which the clock of a platform may be behind ours: what was sent before is about something else.
_CLOCKS = 10_000


def meant_by(
    db: sqlite3.Connection, message: InboundMessage, conv_id: int, now: int
) -> tuple[InboundMessage | None, str | None]:
    """The command that a message is where something is asked, None for none; then also the request that was shown last
    where it was written, if who wrote it may decide about that.

    A reply to the message that shows a request, or what stands in the thread below, decides it if it is a plain word,
    else they are asked what is to become of it; to a question it is the answer. Without a reply an answer is what
    `plain` takes for one, unless it is older, or there are several questions; and a plain word decides in a direct chat
    alone, about what was shown last there, if that came before it and is the only one that waits there.
    """
    place, said = message.origin.place, message.text.strip()
    if not said or message.attachments or message.origin.by_bot:  # files would be lost
        return None, None
    typed = place.kind is ChatKind.CONSOLE
    word = None if message.forwarded else plain.decision(said, typed=typed)
    if (target := message.reply_to or place.thread) and (shown := _shown_by(db, place, target, now)):
        for approval_id, question in _theirs(shown, message):
            order = f"/approve {approval_id} {word or f'ask {said}'}"
            return _as_command(message, f"/answer {approval_id} {said}" if question else order), None
        return None, None
    asked = _theirs(_questions_in(db, conv_id, message.sent_at + _CLOCKS if message.sent_at else now, now), message)
    if len(asked) == 1:
        (ask,) = db.execute("SELECT ask FROM approval WHERE approval_id=?", (asked[0][0],)).fetchone()
        if plain.answers(codec.ASK.load(ask, Ask(digest="", subject="")), said):
            return _as_command(message, f"/answer {asked[0][0]} {said}"), None
    last = (
        None
        if message.reply_to or not (typed or place.kind is ChatKind.DIRECT)
        else _last_in(db, message, conv_id, now)
    )
    return (_as_command(message, f"/approve {last} {word}"), None) if last and word else (None, last)


def _as_command(message: InboundMessage, text: str) -> InboundMessage:
    return replace(message, kind=InboundKind.COMMAND, text=text)


def _theirs(found: Sequence[tuple[str, int, str]], message: InboundMessage) -> list[tuple[str, bool]]:
    """Of approvals (id, whether it is a question, who may decide) those that are for who wrote a message."""
    place = message.origin.place
    whose = {ANYONE, f"{place.channel}:{message.origin.sender}"}
    local = place.kind is ChatKind.CONSOLE
    return [(one[0], bool(one[1])) for one in found if local or not whose.isdisjoint(json.loads(one[2]))]


def _shown_by(db: sqlite3.Connection, place: Place, target: str, now: int) -> list[tuple[str, int, str]]:
    """What is open of what a message shows."""
    return db.execute(
        "SELECT approval_id, question, approvers FROM delivery JOIN conversation USING (conv_id)"
        f" JOIN approval ON {OF_IT}"
        " WHERE channel=? AND account=? AND chat=? AND platform_id=?"
        f" AND delivery.{SAID} AND approval.{OPEN_APPROVAL} AND expires_at > ?",
        (place.channel, place.account, place.chat, target, now),
    ).fetchall()


def _questions_in(db: sqlite3.Connection, conv_id: int, until: int, now: int) -> list[tuple[str, int, str]]:
    """The questions that are open in a conversation, asked until then."""
    return db.execute(
        "SELECT approval_id, question, approvers FROM approval INDEXED BY approval_question"
        " WHERE state='open' AND question=1 AND expires_at > ?1 AND asked_at <= ?3 AND EXISTS (SELECT 1 FROM"
        f" delivery WHERE conv_id=?2 AND {OF_IT})",
        (now, conv_id, until),
    ).fetchall()


def _last_in(db: sqlite3.Connection, message: InboundMessage, conv_id: int, now: int) -> str | None:
    """The request that is the last thing shown in a conversation, and the only one that waits there, if who wrote the
    message may decide and wrote it later: by the platform's order of messages, which no clock disturbs."""
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
