"""Queries about transcripts, turns, deliveries, events and totals, for models, people and programs.

Each query uses an index, and none reads a transcript from its beginning.
"""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import structlog

from agent.events import answer_end, first_and_last
from agent.message import Entry, Message, ToolCall, ToolResult, Usage
from agent.prompt.build import Prompt
from bot.persistence.causes import Cause
from bot.persistence.deliveries import LostDelivery
from bot.persistence.events import StoredEvent, Totals
from bot.persistence.turns import AtWork, CallAtWork, Exchange, TurnState, TurnView
from bot.replies.directives import for_people
from bot.store import codec, delivery_rows, rows
from bot.store.endings import MET
from bot.store.indexes import CUT_ANSWER, FAILED_TURN, HELD_TURN, LOST_DELIVERY, OPEN_DELIVERY, OPEN_TURN, SAID, WAITING
from bot.store.rows import FOR_A_RUN
from bot.store.writer import Subject, query
from channels.message import InboundMessage, Origin, Place
from channels.outgoing import Delivery, DeliveryState

log = structlog.get_logger()

UNREADABLE = "(The result was damaged in the store and cannot be read.)"

_LINES = "SELECT seq, kind, body, tokens, turn_id, step, covers FROM entry WHERE transcript_id=?1 AND hidden=0"
_EVENTS = "SELECT seq, json_extract(body, '$.type'), body FROM event"

_Line = tuple[int, str, str, int, str | None, int, int | None, int]


def look(file: Path) -> Totals:
    """Return the totals of a store file without locking, repairing, migrating or creating anything. Blocking.

    Raises sqlite3.Error if the file cannot be read.
    """
    db = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return _count(db)
    finally:
        db.close()


class Reads(Subject):
    """Queries without side effects."""

    @query
    def files_named(self, db: sqlite3.Connection) -> tuple[Sequence[tuple[str, InboundMessage]], Sequence[str]]:
        """Return what still needs files: messages with attachments, each with its session, and paths of deliveries."""
        waiting = db.execute(
            "SELECT seq, session_key, payload FROM inbox WHERE session_key IS NOT NULL AND state='waiting'"
            " UNION ALL SELECT seq, inbox.session_key, payload FROM inbox JOIN turn USING (turn_id)"
            " WHERE inbox.state IN ('taken','steering') AND turn.state IN ('queued','running','parked')"
        ).fetchall()
        read = [(key, codec.read_inbound(payload, seq)) for seq, key, payload in waiting if '"attachments"' in payload]
        sent = db.execute(
            f"SELECT json_extract(file, '$.path') FROM delivery WHERE file IS NOT NULL AND {OPEN_DELIVERY}"
        ).fetchall()
        return [(key, one) for key, one in read if one is not None and one.attachments], [path for (path,) in sent]

    @query
    def transcript_before(self, db: sqlite3.Connection, session_key: str, transcript_id: str) -> str | None:
        """Return the last transcript of a session besides one; None if there is none."""
        found = db.execute(
            "SELECT transcript_id FROM transcript WHERE session_key=? AND transcript_id<>?"
            " ORDER BY created_at DESC, rowid DESC LIMIT 1",
            (session_key, transcript_id),
        ).fetchone()
        return str(found[0]) if found else None

    @query
    def acted(self, db: sqlite3.Connection, session_key: str) -> Message | None:
        """Return the newest answer in the present transcript of a session of which a call has begun; None: none has."""
        found = db.execute(
            "SELECT body FROM session JOIN entry USING (transcript_id) WHERE session_key=? AND kind='assistant'"
            " AND EXISTS (SELECT 1 FROM tool_call WHERE tool_call.turn_id=entry.turn_id AND tool_call.step=entry.step"
            " AND state IN ('running','done','failed')) ORDER BY seq DESC LIMIT 1",
            (session_key,),
        ).fetchone()
        return codec.MESSAGE.load(found[0], None) if found else None

    @query
    def context(self, db: sqlite3.Connection, transcript_id: str) -> tuple[Entry, ...]:
        """Return the lines of a transcript that are sent to the model, and the summary, in the order of writing."""
        found = db.execute(
            "SELECT *, seq < (SELECT pruned_below FROM transcript WHERE transcript_id=?1),"
            " (SELECT context_start FROM transcript WHERE transcript_id=?1) FROM"
            f" ({_LINES} AND seq = (SELECT summary FROM transcript WHERE transcript_id=?1) UNION ALL {_LINES}"
            " AND kind <> 'summary' AND seq >= (SELECT context_start FROM transcript WHERE transcript_id=?1))"
            " ORDER BY seq",
            (transcript_id,),
        ).fetchall()
        lines = _entries(transcript_id, [row[:-1] for row in found])
        first = next((line for line in lines if line.kind != "summary"), None)
        return tuple(replace(line, since=found[0][-1]) if line is first else line for line in lines)

    @query
    def has_met(self, db: sqlite3.Connection) -> bool:
        """Return whether a turn of an owner with the script of the first meeting has completed."""
        return db.execute("SELECT 1 FROM kv WHERE scope=? AND key=?", MET).fetchone() is not None

    @query
    def prompt(self, db: sqlite3.Connection, session_key: str) -> tuple[str, Prompt | None] | None:
        """Return the current transcript of a session with its system prompt, if it has one; None: no such session."""
        found = db.execute(
            "SELECT transcript_id, prompt FROM session JOIN transcript USING (transcript_id)"
            " WHERE session.session_key=?",
            (session_key,),
        ).fetchone()
        return (found[0], codec.PROMPT.load(found[1], None)) if found else None

    @query
    def turn(self, db: sqlite3.Connection, turn_id: str) -> TurnView | None:
        """Return a turn by its id, with all that it has said; None if it is unknown."""
        found = db.execute(
            "SELECT session_key, state, outcome, model, usage, error_kind, error_message, created_at, started_at,"
            " ended_at FROM turn WHERE turn_id=?",
            (turn_id,),
        ).fetchone()
        if found is None:
            return None
        session_key, state, outcome, model, usage, *failure_and_times = found
        text, used = _said(_pieces(db, turn_id), _cut_steps(db, turn_id)), codec.USAGE.load(usage, Usage())
        return TurnView(turn_id, session_key, TurnState(state), outcome, text, model, used, *failure_and_times)

    @query
    def offer(self, db: sqlite3.Connection, place: Place, message_id: str) -> Delivery | None:
        """Return a message with buttons by its place and platform id; None if it is not kept."""
        found = db.execute(
            f"SELECT {delivery_rows.COLUMNS} FROM delivery JOIN conversation USING (conv_id)"
            " WHERE channel=? AND account=? AND chat=? AND platform_id=? AND buttons IS NOT NULL"
            f" AND {SAID}",
            (place.channel, place.account, place.chat, message_id),
        ).fetchone()
        return delivery_rows.read(found, place) if found else None

    @query
    def own_message(self, db: sqlite3.Connection, place: Place, message_id: str) -> Place | None:
        """Return the place of a message of the model by its chat and platform id; None if it is not kept."""
        found = db.execute(
            "SELECT conv_id FROM delivery JOIN conversation USING (conv_id)"
            f" WHERE channel=? AND account=? AND chat=? AND platform_id=? AND {SAID}"
            f" AND (step IS NOT NULL OR {rows.OF_TOOL})",
            (place.channel, place.account, place.chat, message_id),
        ).fetchone()
        return rows.place_of(db, found[0]) if found else None

    @query
    def directory(self, db: sqlite3.Connection, channel: str, account: str) -> Sequence[Origin]:
        """Return the origin of the newest accepted message of each conversation, newest first."""
        found = db.execute(
            "SELECT seq, payload, coalesce(moved_to, conv_id) FROM inbox JOIN conversation USING (conv_id)"
            " WHERE seq IN (SELECT max(seq) FROM inbox WHERE channel=? AND account=? AND inbox.kind='message'"
            " AND session_key IS NOT NULL AND state<>'held' GROUP BY conv_id) ORDER BY seq DESC",
            (channel, account),
        ).fetchall()
        read = ((codec.read_inbound(payload, seq), conv_id) for seq, payload, conv_id in found)
        return [replace(one.origin, place=rows.place_of(db, conv_id)) for one, conv_id in read if one is not None]

    @query
    def last_failure(self, db: sqlite3.Connection) -> tuple[int, str] | None:
        """Return when the newest failed turn ended, in milliseconds, and why; None if no turn failed."""
        return db.execute(  # type: ignore[no-any-return]
            "SELECT ended_at, coalesce(error_message, error_kind, '') FROM turn"
            f" WHERE {FAILED_TURN} ORDER BY ended_at DESC LIMIT 1"
        ).fetchone()

    @query
    def last_exchange(self, db: sqlite3.Connection, session_key: str, upto: int) -> Exchange | None:
        """Return the newest exchange in the session's current transcript that began at or before event `upto`."""
        found = db.execute(
            "SELECT turn_id FROM entry WHERE kind='user' AND hidden=0"
            " AND NOT EXISTS (SELECT 1 FROM firing WHERE firing.turn_id = entry.turn_id)"  # the prompt of a job
            " AND transcript_id=(SELECT transcript_id FROM session WHERE session_key=?)"
            " AND NOT EXISTS (SELECT 1 FROM event WHERE event_id = entry.turn_id || '/start' AND event.seq > ?)"
            " ORDER BY seq DESC LIMIT 1",
            (session_key, upto),
        ).fetchone()
        return _exchange(db, found[0], upto) if found else None

    @query
    def totals(self, db: sqlite3.Connection) -> Totals:
        """Return the totals for /status and `hark status`."""
        return _count(db)

    @query
    def lost_deliveries(self, db: sqlite3.Connection, limit: int) -> tuple[LostDelivery, ...]:
        """Return messages that did not arrive or may not have, newest first."""
        found = db.execute(
            "SELECT state, channel, chat, coalesce(error, ''), cause, settled_at FROM delivery"
            f" JOIN conversation USING (conv_id) WHERE {LOST_DELIVERY} AND {rows.MESSAGE}"
            " ORDER BY delivery_id DESC LIMIT ?",
            (limit,),
        ).fetchall()
        return tuple(
            LostDelivery(DeliveryState(state), channel, chat, error, Cause(cause) if cause else None, at)
            for state, channel, chat, error, cause, at in found
        )

    @query
    def events_after(
        self,
        db: sqlite3.Connection,
        seq: int,
        upto: int,
        session_key: str | None,
        run_id: str | None,
        limit: int,
        sessions: str = "",
    ) -> Sequence[StoredEvent]:
        """Return events with seq < position <= upto, oldest first, of sessions whose keys begin with `sessions`."""
        found = db.execute(
            f"{_EVENTS} WHERE seq > ?1 AND seq <= ?2 AND json_valid(body) AND (?3 IS NULL OR session_key = ?3)"
            " AND (?4 IS NULL OR turn_id = ?4) AND instr(session_key, ?5) = 1 ORDER BY seq LIMIT ?6",
            (seq, upto, session_key, run_id, sessions, limit),
        ).fetchall()
        return [StoredEvent(*row) for row in found]

    @query
    def under_way(
        self, db: sqlite3.Connection, session_key: str | None, sessions: str
    ) -> tuple[int, Sequence[StoredEvent]]:
        """Return the newest event's position, and the message_start events of answers that are being written."""
        db.execute("BEGIN")  # both queries see the same state
        try:
            found = db.execute(
                f"{_EVENTS} WHERE seq IN (SELECT (SELECT max(seq) FROM event"  # '0' follows '/'
                "   WHERE event_id >= turn.turn_id || '/' AND event_id < turn.turn_id || '0') FROM turn"
                f"  WHERE {HELD_TURN} AND state='running')"
                " AND iif(json_valid(body), json_extract(body, '$.type')='message_start', 0)"
                " AND (?1 IS NULL OR session_key = ?1) AND instr(session_key, ?2) = 1 ORDER BY seq",
                (session_key, sessions),
            ).fetchall()
            return rows.newest_event(db), [StoredEvent(*row) for row in found]
        finally:
            db.execute("COMMIT")

    @query
    def at_work(self, db: sqlite3.Connection, turn_id: str) -> AtWork | None:
        """Return since when a turn runs, and the calls that run in it; None if it does not run."""
        runs = "SELECT resumed_at, ran FROM turn WHERE turn_id=? AND state='running' AND resumed_at IS NOT NULL"
        found = db.execute(runs, (turn_id,)).fetchone()
        if found is None:
            return None
        calls = db.execute(
            "SELECT name, at FROM tool_call JOIN event ON event_id = ?1 || '/' || step || '/' || call_id || '/start'"
            " WHERE tool_call.turn_id=?1 AND state='running' ORDER BY ordinal",
            (turn_id,),
        ).fetchall()
        return AtWork(found[0], found[1], tuple(CallAtWork(*one) for one in calls))

    @query
    def first_event(self, db: sqlite3.Connection, run_id: str) -> int | None:
        """Return the position of the first persisted event of a run; None if none is kept."""
        # a run that was dropped before it began has only an end
        ids = first_and_last(run_id)
        return db.execute("SELECT min(seq) FROM event WHERE event_id IN (?,?)", ids).fetchone()[0]  # type: ignore[no-any-return]

    @query
    def end_of(self, db: sqlite3.Connection, run_id: str) -> int | None:
        """Return the position of the last event of a run; None if it is not kept."""
        found = db.execute("SELECT seq FROM event WHERE event_id=?", (first_and_last(run_id)[1],)).fetchone()
        return int(found[0]) if found else None

    @query
    def last_event(self, db: sqlite3.Connection) -> int:
        """Return the position of the newest persisted event; 0 if there is none."""
        return rows.newest_event(db)


def _entries(transcript_id: str, found: Sequence[_Line]) -> tuple[Entry, ...]:
    """Make entries of lines. Damaged ones are left out, but a tool result is replaced, since its call needs one."""
    messages = [codec.MESSAGE.load(row[2], None) for row in found]
    lost = [row[0] for row, message in zip(found, messages, strict=True) if message is None]
    if lost:
        log.error("lines of a transcript cannot be read", transcript=transcript_id, lines=lost)
    results = {result.call_id for message in messages if message for result in message.tool_results}
    unanswered: list[ToolCall] = []
    entries = []
    for (seq, kind, _, tokens, turn_id, step, covers, pruned), read in zip(found, messages, strict=True):
        message = read
        if read is not None and read.tool_calls:
            unanswered = [call for call in read.tool_calls if call.call_id not in results]
        elif read is None and kind == "tool_result" and unanswered:  # results are written in call order
            call = unanswered.pop(0)
            message = Message("tool", (ToolResult(call.call_id, call.name, UNREADABLE, is_error=True),))
        if message is not None:
            entries.append(
                Entry(
                    seq=seq,
                    kind=kind,  # type: ignore[arg-type]
                    message=message,
                    tokens=tokens,
                    turn_id=turn_id,
                    step=step,
                    covers=covers or 0,
                    pruned=bool(pruned),
                )
            )
    return tuple(entries)


def _count(db: sqlite3.Connection) -> Totals:
    return Totals(
        *db.execute(
            "SELECT (SELECT count(*) FROM session), (SELECT max(used_at) FROM session),"
            f" (SELECT count(*) FROM turn WHERE {OPEN_TURN} AND epoch > 0),"
            f" (SELECT count(*) FROM inbox WHERE {WAITING} AND {FOR_A_RUN}),"
            f" (SELECT count(*) FROM delivery WHERE {OPEN_DELIVERY}),"
            f" (SELECT count(*) FROM delivery WHERE {LOST_DELIVERY} AND {rows.MESSAGE} AND state='failed'),"
            f" (SELECT count(*) FROM delivery WHERE {LOST_DELIVERY} AND state='uncertain'),"
            f" (SELECT count(*) FROM delivery WHERE {LOST_DELIVERY} AND state='expired')"
        ).fetchone()
    )


def _exchange(db: sqlite3.Connection, turn_id: str, upto: int) -> Exchange | None:
    asked = db.execute(
        "SELECT payload, seq FROM inbox WHERE turn_id=? AND state IN ('taken','done') ORDER BY seq", (turn_id,)
    ).fetchall()
    messages = [message for row in asked if (message := codec.read_inbound(*row)) is not None]
    if not messages:
        return None
    (is_open,) = db.execute(f"SELECT {OPEN_TURN} FROM turn WHERE turn_id=?", (turn_id,)).fetchone()
    found = db.execute(
        "SELECT step, said, source, piece FROM delivery WHERE turn_id=? AND state='sent' AND said<>''"
        " ORDER BY delivery_id",
        (turn_id,),
    ).fetchall()
    pieces = []
    for step, said, source, piece in found:
        end = rows.said_id(turn_id, source, piece) if step is None else answer_end(turn_id, step)
        at = db.execute("SELECT seq FROM event WHERE event_id=?", (end,)).fetchone()
        if at[0] <= upto if at else step is None or not is_open:  # a deleted event is old enough to have been seen
            pieces.append((step, said))
    question = "\n\n".join(message.text for message in messages)
    return Exchange(question=question, answer=_said(pieces, _cut_steps(db, turn_id)))


def _pieces(db: sqlite3.Connection, turn_id: str) -> list[tuple[int | None, str]]:
    """Return step and text of each delivery of a turn that was, may have been or will be seen, in order.

    Messages that a tool sent to a platform are left out: they are not part of the answer and may be in another chat.
    """
    return db.execute(
        "SELECT step, said FROM delivery JOIN conversation USING (conv_id) WHERE turn_id=? AND said<>''"
        f" AND {rows.STANDS} AND (kind IN ('api','console') OR NOT {rows.OF_TOOL})"
        " ORDER BY delivery_id",
        (turn_id,),
    ).fetchall()


def _cut_steps(db: sqlite3.Connection, turn_id: str) -> set[int]:
    """Return the steps of a turn whose answers were cut and are continued by the next answer."""
    found = db.execute(f"SELECT step FROM entry WHERE turn_id=? AND {CUT_ANSWER}", (turn_id,))
    return {step for (step,) in found}


def _said(pieces: Sequence[tuple[int | None, str]], cut: Collection[int]) -> str:
    """Join the text of a turn: the blocks of one answer without a break, answers and notices as paragraphs.

    cut: the steps whose answers were cut, so that the next answer continues them.
    """
    texts: list[str] = []
    last: int | None = None
    for step, said in pieces:
        if step is not None and last is not None and (step == last or (step == last + 1 and last in cut)):
            texts[-1] += said
        else:
            texts.append(said)
        last = step
    return "\n\n".join(words for text in texts if (words := for_people(text).strip()))
