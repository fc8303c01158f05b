"""What becomes of a message that comes while a run is active or others wait, in the transaction that accepts it.

A run is active while its turn is claimed and has not ended, also while it is parked or waits to go on after a crash.
All of it is read from rows, so it is the same whether a process has died in between or not. A message that neither
joins a run nor ends one waits in the inbox, as any other.
"""

import sqlite3
from dataclasses import dataclass, replace
from typing import Literal

from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import AcceptedMessage, QueueRule
from bot.store import endings, repair, rows
from bot.store.indexes import NEXT, OPEN_TURN, WAITING
from bot.store.rows import CARRIED_OUT, IN_BACKGROUND
from bot.store.stops import stop_turn
from channels.message import InboundKind
from channels.outgoing import Delivery
from channels.settings import QueueDrop
from channels.sources import Source, sentence

# Condition for messages that count for the cap: those that were written during a run.
_COUNTS = f"{WAITING} AND queued IS NOT NULL"
# The session ?1, to which ?2 writes in the conversation ?3: the mode that people have set; its active run, if any, and
# whether that is one of the background, and of messages of others; how many messages count for the cap, whether others
# wrote any that wait, and whether ?2 must not pass one of them or a command.
_SESSION = (
    "SELECT iif(json_valid(settings), json_extract(settings, '$.queue'), ''),"
    f" turn_id, reply_conv, epoch, turn.{IN_BACKGROUND},"
    " EXISTS (SELECT 1 FROM inbox WHERE inbox.turn_id=turn.turn_id AND sender<>?2),"
    f" (SELECT count(*) FROM inbox WHERE session_key=?1 AND {_COUNTS}),"
    f" EXISTS (SELECT 1 FROM inbox WHERE session_key=?1 AND {WAITING} AND kind='message' AND sender<>?2),"
    f" EXISTS (SELECT 1 FROM inbox WHERE session_key=?1 AND {WAITING}"
    f" AND ({CARRIED_OUT} OR kind='message' AND sender=?2 AND conv_id=?3))"
    f" FROM session LEFT JOIN turn ON turn.session_key=session.session_key AND turn.{OPEN_TURN} AND epoch > 0"
    " WHERE session.session_key=?1 ORDER BY turn.state='queued' LIMIT 1"
)
# Whether the attempt ?2 of the turn ?1 is making a summary.
_COMPACTING = (
    "SELECT 1 FROM event AS began WHERE event_id > ?1 || '/c' AND event_id < ?1 || '/d'"
    " AND event_id GLOB '*.' || ?2 || '/start'"
    " AND NOT EXISTS (SELECT 1 FROM event WHERE event_id=replace(began.event_id, '/start', '/end'))"
)


@dataclass(frozen=True, slots=True)
class Queued:
    """How a message is stored."""

    item: AcceptedMessage
    # What it is to its session while it waits, see the column.
    queued: Literal["collect", "followup", "next"] | None = None
    # What others, or its sender, are told.
    said: tuple[Delivery, ...] = ()
    # The turn that it has ended.
    stopped: tuple[str, ...] = ()


def place(db: sqlite3.Connection, item: AcceptedMessage, conv_id: int, now: int) -> Queued:
    """Find out what becomes of a message that waits, and end the run that it interrupts."""
    rule, message = item.queue, item.message
    missed = item.gathers and not item.delay
    if rule is None or item.state != "waiting" or missed or message.kind not in (InboundKind.MESSAGE, InboundKind.EDIT):
        return Queued(item)
    sender = message.origin.sender
    own, turn_id, in_conv, epoch, background, of_others, waiting, others_wait, behind = db.execute(
        _SESSION, (item.session_key, sender, conv_id)
    ).fetchone()
    mode = own or rule.mode
    may = turn_id is not None and not background and not (rule.only_own and of_others)
    if (
        mode == "steer"
        and rule.joins
        and may
        and in_conv == conv_id
        and not (behind or message.attachments or (message.replied and message.replied.attachments))
    ):
        summing_up = db.execute(_COMPACTING, (turn_id, epoch)).fetchone() is not None
        if not summing_up:
            return Queued(replace(item, state="steering", turn_id=turn_id, delay=0, gathers=False))
    found = Queued(item, None if turn_id is None else "collect" if mode == "collect" else "followup")
    if mode == "interrupt":
        if may:
            ended, said = _interrupt(db, rule, turn_id, in_conv if of_others else None, now)
            found = replace(found, said=said, stopped=ended)
        if (may or turn_id is None) and not (rule.only_own and others_wait):
            db.execute(f"UPDATE inbox SET queued='followup' WHERE session_key=? AND {NEXT}", (item.session_key,))
            found = replace(found, queued="next")
    if found.queued is None or waiting < rule.cap:
        return found
    burst = turn_id or now // 60_000
    if rule.drop == "new" and not found.stopped and found.queued != "next":
        dropped = replace(item, state="dropped", reason=Cause.CAP, say=())
        said = _tell(db, rule, "new", sentence("cap", item.session_key, conv_id, burst), conv_id, now)
        return replace(found, item=dropped, queued=None, said=said)
    said = _drop_oldest(db, rule, str(item.session_key), waiting + 1 - rule.cap, burst, now)
    return replace(found, said=found.said + said)


def _interrupt(
    db: sqlite3.Connection, rule: QueueRule, turn_id: str, others_in: int | None, now: int
) -> tuple[tuple[str, ...], tuple[Delivery, ...]]:
    """End a turn; texts that it has not read wait as messages of their own. others_in: where others are told of it.

    Returns what `stop_turn` does, and what is planned.
    """
    repair.release_messages(db, turn_id)
    ended = stop_turn(db, turn_id, now, Cause.INTERRUPT)
    db.execute("UPDATE inbox SET reason=? WHERE turn_id=? AND state='done'", (Cause.INTERRUPT, turn_id))
    if others_in is None:
        return ended, ()
    return ended, _tell(db, rule, "interrupt", sentence("interrupt", turn_id), others_in, now)


def _drop_oldest(
    db: sqlite3.Connection, rule: QueueRule, session_key: str, count: int, burst: str | int, now: int
) -> tuple[Delivery, ...]:
    """Drop the messages that wait longest, and tell people where they wrote them, once in a burst.

    Of what is dropped with `summarise`, the next turn of the session is told in short. burst: names the run behind
    which messages pile up, or the minute.
    """
    in_short = rule.drop == "summarise"
    reason = Cause.TO_BE_NOTED if in_short else Cause.CAP
    found = db.execute(
        "UPDATE inbox SET state='dropped', reason=?, queued=NULL WHERE seq IN (SELECT seq FROM inbox"
        f" WHERE session_key=? AND {_COUNTS} ORDER BY seq LIMIT ?) RETURNING seq, conv_id",
        (reason, session_key, count),
    ).fetchall()
    for seq, _ in found:
        endings.take_acknowledgements_away(db, "seq=?", seq, now)
    said = list[Delivery]()
    for conv_id in sorted({conv_id for _, conv_id in found}):
        source = sentence("cap", session_key, conv_id, burst)
        said += _tell(db, rule, "summarise" if in_short else "old", source, conv_id, now)
    return tuple(said)


def _tell(
    db: sqlite3.Connection,
    rule: QueueRule,
    what: Literal[QueueDrop, "interrupt"],
    source: Source,
    conv_id: int,
    now: int,
) -> tuple[Delivery, ...]:
    """Plan what people in a conversation are told; nothing if it was planned before."""
    return rows.plan(db, PlanIn(conv_id), rule.tells(source, rows.place_of(db, conv_id), what), None, now)
