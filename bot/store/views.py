"""Turns, messages and deliveries as the outside sees them, and counts of all."""

import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path

from agent.events import answer_end
from agent.message import Usage
from bot.persistence.values import Exchange, LostDelivery, Totals, TurnState, TurnView
from bot.store import codec, rows
from bot.store.indexes import CUT_ANSWER, FAILED_TURN, LOST_DELIVERY, OPEN_DELIVERY, OPEN_TURN, WAITING
from bot.store.rows import FOR_A_RUN
from bot.store.subject import Subject, query
from channels.message import Place
from channels.outgoing import Delivery, DeliveryState


def look(file: Path) -> Totals:
    """Count what is in a store beside no service: nothing is locked, mended, migrated or made. Blocking.

    Raises sqlite3.Error when it cannot be read.
    """
    db = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return _count(db)
    finally:
        db.close()


class Views(Subject):
    """Queries without side effects; each uses an index, none walks a transcript from its beginning."""

    @query
    def turn(self, db: sqlite3.Connection, turn_id: str) -> TurnView | None:
        found = db.execute(
            "SELECT session_key, state, outcome, model, usage, error_kind, error_message, created_at, started_at,"
            " ended_at FROM turn WHERE turn_id=?",
            (turn_id,),
        ).fetchone()
        if found is None:
            return None
        return TurnView(
            turn_id=turn_id,
            session_key=found[0],
            state=TurnState(found[1]),
            outcome=found[2],
            text=_said(rows.said(db, turn_id), _cut_steps(db, turn_id)),
            model=found[3],
            usage=codec.USAGE.load(found[4], Usage()),
            error_kind=found[5],
            error_message=found[6],
            accepted_at=found[7],
            started_at=found[8],
            ended_at=found[9],
        )

    @query
    def offer(self, db: sqlite3.Connection, place: Place, message_id: str) -> Delivery | None:
        found = db.execute(
            f"SELECT {rows.DELIVERY_COLUMNS} FROM delivery JOIN conversation USING (conv_id)"
            " WHERE channel=? AND account=? AND chat=? AND platform_id=? AND buttons IS NOT NULL"
            " AND delivery.state='sent' AND action IN ('send','preview')",
            (place.channel, place.account, place.chat, message_id),
        ).fetchone()
        return rows.delivery(found, place) if found else None

    @query
    def last_failure(self, db: sqlite3.Connection) -> tuple[int, str] | None:
        return db.execute(  # type: ignore[no-any-return]
            "SELECT ended_at, coalesce(error_message, error_kind, '') FROM turn"
            f" WHERE {FAILED_TURN} ORDER BY ended_at DESC LIMIT 1"
        ).fetchone()

    @query
    def last_exchange(self, db: sqlite3.Connection, session_key: str, upto: int, shown: int) -> Exchange | None:
        found = db.execute(
            "SELECT turn_id FROM entry WHERE kind='user'"
            " AND transcript_id=(SELECT transcript_id FROM session WHERE session_key=?)"
            " AND NOT EXISTS (SELECT 1 FROM event WHERE event_id = entry.turn_id || '/start' AND event.seq > ?)"
            " ORDER BY seq DESC LIMIT 1",
            (session_key, upto),
        ).fetchone()
        return _exchange(db, found[0], upto, shown) if found else None

    @query
    def totals(self, db: sqlite3.Connection) -> Totals:
        return _count(db)

    @query
    def lost_deliveries(self, db: sqlite3.Connection, limit: int) -> tuple[LostDelivery, ...]:
        found = db.execute(
            "SELECT state, channel, chat, error, settled_at FROM delivery JOIN conversation USING (conv_id)"
            f" WHERE {LOST_DELIVERY} ORDER BY delivery_id DESC LIMIT ?",
            (limit,),
        ).fetchall()
        return tuple(
            LostDelivery(state=DeliveryState(state), channel=channel, chat=chat, reason=error or "", at=at)
            for state, channel, chat, error, at in found
        )


def _count(db: sqlite3.Connection) -> Totals:
    return Totals(
        *db.execute(
            "SELECT (SELECT count(*) FROM session), (SELECT max(used_at) FROM session),"
            f" (SELECT count(*) FROM turn WHERE {OPEN_TURN} AND epoch > 0),"
            f" (SELECT count(*) FROM inbox WHERE {WAITING} AND {FOR_A_RUN}),"
            f" (SELECT count(*) FROM delivery WHERE {OPEN_DELIVERY}),"
            f" (SELECT count(*) FROM delivery WHERE {LOST_DELIVERY} AND state='failed'),"
            f" (SELECT count(*) FROM delivery WHERE {LOST_DELIVERY} AND state='uncertain')"
        ).fetchone()
    )


def _exchange(db: sqlite3.Connection, turn_id: str, upto: int, shown: int) -> Exchange | None:
    asked = db.execute(
        "SELECT payload, seq FROM inbox WHERE turn_id=? AND state IN ('taken','done') ORDER BY seq", (turn_id,)
    ).fetchall()
    messages = [message for row in asked if (message := codec.read_inbound(*row)) is not None]
    if not messages:
        return None
    (is_open,) = db.execute(f"SELECT {OPEN_TURN} FROM turn WHERE turn_id=?", (turn_id,)).fetchone()
    found = db.execute(
        "SELECT step, said, source FROM delivery WHERE turn_id=? AND state='sent' ORDER BY delivery_id", (turn_id,)
    ).fetchall()
    pieces = []
    under_way = None
    for step, said, source in found:
        end = rows.said_id(turn_id, source) if step is None else answer_end(turn_id, step)
        at = db.execute("SELECT seq FROM event WHERE event_id=?", (end,)).fetchone()
        if at[0] <= upto if at else step is None or not is_open:  # one that is not kept any more has been seen
            pieces.append((step, said))
        elif step is not None and under_way in (None, step):
            under_way = step
            pieces.append((step, said[:shown]))
            shown -= min(shown, len(said))
    question = "\n\n".join(message.text for message in messages)
    return Exchange(question=question, answer=_said(pieces, _cut_steps(db, turn_id)))


def _cut_steps(db: sqlite3.Connection, turn_id: str) -> set[int]:
    """Steps of a turn whose answer the next one goes on with."""
    found = db.execute(f"SELECT step FROM entry WHERE turn_id=? AND {CUT_ANSWER}", (turn_id,))
    return {step for (step,) in found}


def _said(pieces: Sequence[tuple[int | None, str]], cut: Collection[int]) -> str:
    """Words of a turn: blocks of one answer joined as the model wrote them, answers and notices as paragraphs.

    cut: steps whose answer was cut, so that the next one is a part of it.
    """
    texts: list[str] = []
    last: int | None = None
    for step, said in pieces:
        if step is not None and last is not None and (step == last or (step == last + 1 and last in cut)):
            texts[-1] += said
        else:
            texts.append(said)
        last = step
    return "\n\n".join(stripped for text in texts if (stripped := text.strip()))
