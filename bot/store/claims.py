"""Taking a turn (T2): its message is the run's from here on, under a new epoch.

One that was cut and waits to go on comes before the oldest message of its session.
"""

import sqlite3
from collections.abc import Callable

from agent.events import AgentStart, Outcome
from agent.message import Entry, Message
from bot.clock import Clock
from bot.persistence.values import Turn, TurnKind
from bot.store import codec, repair, rows
from bot.store.database import Database
from bot.store.indexes import OPEN_TURN, WAITING
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND
from bot.store.subject import Subject, transaction
from bot.store.writer import Writer
from channels.message import InboundMessage
from channels.session_key import console_key

Compose = Callable[[InboundMessage, int], Message]
"""Makes the user message of a transcript from what was accepted, and when."""

_TURN_OF = {"wake": "beat", "job": "job", "child": "child", "api": "api"}
"""Kinds of turns by those of their messages; what people write is a reply."""


class Claims(Subject):
    """How a run gets its turn, and what people wrote while it works."""

    def __init__(self, database: Database, writer: Writer, clock: Clock, compose: Compose) -> None:
        super().__init__(database, writer, clock)
        self._compose = compose

    @transaction
    def claim(self, db: sqlite3.Connection, session_key: str, model: str, *, background: bool = False) -> Turn | None:
        """Take the session's next turn: one that was cut and waits to go on, else the oldest message.

        model: which one will answer, for the event. background: take beats, jobs and children's results instead of what
        people wrote. None when nothing waits, or one runs or is parked.
        """
        turns = db.execute(
            f"SELECT turn_id, state, epoch, {IN_BACKGROUND} FROM turn"
            f" WHERE session_key=? AND {OPEN_TURN} ORDER BY created_at, turn_id",
            (session_key,),
        ).fetchall()
        if any(state != "queued" for _, state, _, _ in turns):
            return None
        now = self._now()
        for turn_id in [turn for turn, _, epoch, kind in turns if epoch > 0 and bool(kind) == background]:
            if (message := _answered(db, turn_id, now)) is not None:
                return self._take(db, turn_id, message, (), now, model)
        begun = self._begin(db, session_key, now, background)
        return None if begun is None else self._take(db, *begun, now, model)

    def _begin(
        self, db: sqlite3.Connection, session_key: str, now: int, background: bool
    ) -> tuple[str, InboundMessage, tuple[Entry, ...]] | None:
        """Make the oldest waiting message a turn (or take the one made with it) and write its user line."""
        while True:
            found = db.execute(
                "SELECT seq, turn_id, conv_id, payload, accepted_at, kind FROM inbox"
                f" WHERE session_key=? AND {WAITING} AND {FOR_A_RUN} AND ({IN_BACKGROUND}) = ?"
                " ORDER BY seq LIMIT 1",
                (session_key, background),
            ).fetchone()
            if found is None:
                return None
            seq, turn_id, conv_id, payload, accepted_at, kind = found
            inbound = codec.read_inbound(payload, seq)
            if inbound is not None:
                break
            _drop_unreadable(db, seq, turn_id, now)
        transcript_id = rows.transcript_of(db, session_key, None, now, self._new_id())
        if turn_id is None:
            turn_id = self._new_id()
            db.execute(
                "INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, reply_conv, created_at)"
                " VALUES (?,?,?,?,'queued',?,?)",
                (turn_id, session_key, transcript_id, _TURN_OF.get(kind, "reply"), conv_id, accepted_at),
            )
        else:
            # a /new between acceptance and claim began another transcript: the turn belongs to the present one
            db.execute("UPDATE turn SET transcript_id=? WHERE turn_id=?", (transcript_id, turn_id))
        db.execute("UPDATE inbox SET state='taken', turn_id=? WHERE seq=?", (turn_id, seq))
        line = rows.append_entry(db, transcript_id, "user", self._compose(inbound, accepted_at), turn_id, 0)
        return turn_id, inbound, (line,)

    def _take(
        self,
        db: sqlite3.Connection,
        turn_id: str,
        message: InboundMessage,
        entries: tuple[Entry, ...],
        now: int,
        model: str,
    ) -> Turn:
        """Put a queued turn to running under a new epoch."""
        epoch, kind, session_key, transcript_id, conv_id, step, usage, ran = db.execute(
            "UPDATE turn SET state='running', epoch=epoch+1, started_at=coalesce(started_at, ?1), resumed_at=?1"
            " WHERE turn_id=?2 RETURNING epoch, kind, session_key, transcript_id, reply_conv, step, usage, ran",
            (now, turn_id),
        ).fetchone()
        asked = db.execute("SELECT 1 FROM tool_call WHERE turn_id=? AND state='asked' LIMIT 1", (turn_id,)).fetchone()
        if asked is None and not _goes_on(db, transcript_id):
            entries += self._take_steering(db, turn_id, transcript_id)
        prompt, fingerprint = db.execute(
            "SELECT prompt, fingerprint FROM transcript WHERE transcript_id=?", (transcript_id,)
        ).fetchone()
        run = rows.run_ref(turn_id, session_key, epoch)
        if epoch == 1:
            words = message.text if session_key == console_key() else ""  # every terminal shows what was typed
            rows.keep_events(db, (AgentStart(run=run, at=now, model=model, message=words),))
        if asked is None:
            rows.begin_answer(db, run, step + 1, now)
        more = db.execute(
            f"SELECT 1 FROM inbox WHERE session_key=? AND {WAITING} AND {FOR_A_RUN} LIMIT 1", (session_key,)
        ).fetchone()
        return Turn(
            run=run,
            kind=TurnKind(kind),
            transcript_id=transcript_id,
            message=message,
            conv_id=conv_id,
            place=rows.place_of(db, conv_id),
            step=step,
            usage=codec.load_usage(usage),
            ran=ran,
            entries=entries,
            prompt=prompt,
            fingerprint=fingerprint,
            more=more is not None,
        )

    def _take_steering(self, db: sqlite3.Connection, turn_id: str, transcript_id: str) -> tuple[Entry, ...]:
        """Show the model what was written meanwhile: lines behind its last."""
        found = db.execute(
            "SELECT seq, payload, accepted_at FROM inbox WHERE turn_id=? AND state='steering' ORDER BY seq", (turn_id,)
        ).fetchall()
        lines = []
        for seq, payload, accepted_at in found:
            inbound = codec.read_inbound(payload, seq)
            if inbound is None:
                _drop_unreadable(db, seq, None, 0)
                continue
            message = self._compose(inbound, accepted_at)
            lines.append(rows.append_entry(db, transcript_id, "user", message, turn_id, 0))
            db.execute("UPDATE inbox SET state='taken' WHERE seq=?", (seq,))
        return tuple(lines)


def _answered(db: sqlite3.Connection, turn_id: str, now: int) -> InboundMessage | None:
    """The message that a turn answers; when that is damaged, the turn is ended."""
    seq, payload = db.execute(
        "SELECT seq, payload FROM inbox WHERE turn_id=? ORDER BY seq LIMIT 1", (turn_id,)
    ).fetchone()
    message = codec.read_inbound(payload, seq)
    if message is None:
        _drop_unreadable(db, seq, turn_id, now)
    return message


def _drop_unreadable(db: sqlite3.Connection, seq: int, turn_id: str | None, now: int) -> None:
    """A damaged message must not keep others waiting. A turn of it that was begun, or is asked for, ends."""
    db.execute("UPDATE inbox SET state='dropped', reason='unreadable' WHERE seq=?", (seq,))
    if turn_id is not None:
        transcript_id, step = db.execute("SELECT transcript_id, step FROM turn WHERE turn_id=?", (turn_id,)).fetchone()
        repair.close_run(db, turn_id, transcript_id, step, now)
        rows.end_turn(db, turn_id, Outcome.FAILED, now, "unreadable", "the message was damaged in the store")


def _goes_on(db: sqlite3.Connection, transcript_id: str) -> bool:
    """Whether the next answer is the rest of a cut one."""
    (last,) = db.execute(
        "SELECT kind FROM entry WHERE transcript_id=? ORDER BY seq DESC LIMIT 1", (transcript_id,)
    ).fetchone()
    return last not in ("user", "tool_result")
