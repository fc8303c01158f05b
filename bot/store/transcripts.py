"""Reading what is kept: the lines a model is shown, turns as the outside sees them, and kept events."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import structlog
from pydantic import ValidationError

from agent.events import first_and_last
from agent.message import Entry, Message, ToolCall, ToolResult
from bot.store import codec, rows
from bot.store.database import Database
from bot.store.values import DeliveryState, LostDelivery, StoredEvent, TurnState, TurnView

log = structlog.get_logger()

UNREADABLE = "(The result was damaged in the store and cannot be read.)"

_LOST = "state IN ('failed','uncertain')"

_Line = tuple[int, str, str, int, str | None, int]
"""seq, kind, body, tokens, turn, step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A message and what was delivered of its answer so far. event_key: of the message."""

    event_key: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts for /status."""

    waiting: int
    running: int
    undelivered: int
    failed_deliveries: int
    uncertain_deliveries: int


class Reads:
    """Queries without side effects; each uses an index, none walks a transcript from its beginning."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def context(self, transcript_id: str) -> tuple[Entry, ...]:
        """The lines of a transcript that still go to the model, in order."""

        def work(db: sqlite3.Connection) -> list[_Line]:
            return db.execute(
                "SELECT seq, kind, body, tokens, turn_id, step FROM entry WHERE transcript_id=?"
                " AND seq >= (SELECT context_start FROM transcript WHERE transcript_id=?) ORDER BY seq",
                (transcript_id, transcript_id),
            ).fetchall()

        return _entries(transcript_id, await self._database.read(work))

    async def transcript(self, transcript_id: str, after: int, limit: int) -> tuple[Entry, ...]:
        """Lines of any transcript, old ones too: those after a seq, at most limit."""

        def work(db: sqlite3.Connection) -> list[_Line]:
            return db.execute(
                "SELECT seq, kind, body, tokens, turn_id, step FROM entry WHERE transcript_id=? AND seq>?"
                " ORDER BY seq LIMIT ?",
                (transcript_id, after, limit),
            ).fetchall()

        return _entries(transcript_id, await self._database.read(work))

    async def transcripts(self, session_key: str) -> tuple[str, ...]:
        """The transcripts of a session, oldest first; the last is the present one."""

        def work(db: sqlite3.Connection) -> tuple[str, ...]:
            found = db.execute(
                "SELECT transcript_id FROM transcript WHERE session_key=? ORDER BY rowid",
                (session_key,),
            ).fetchall()
            return tuple(row[0] for row in found)

        return await self._database.read(work)

    async def turn(self, turn_id: str) -> TurnView | None:
        """A turn by its id, with what it said so far."""

        def work(db: sqlite3.Connection) -> TurnView | None:
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
                usage=codec.load_usage(found[4]),
                error_kind=found[5],
                error_message=found[6],
                accepted_at=found[7],
                started_at=found[8],
                ended_at=found[9],
            )

        return await self._database.read(work)

    async def last_failure(self) -> tuple[int, str] | None:
        """When the newest failed turn ended, in milliseconds, and why."""

        def work(db: sqlite3.Connection) -> tuple[int, str] | None:
            return db.execute(  # type: ignore[no-any-return]
                "SELECT ended_at, coalesce(error_message, error_kind, '') FROM turn WHERE state='failed'"
                " ORDER BY ended_at DESC LIMIT 1"
            ).fetchone()

        return await self._database.read(work)

    async def exchange(self, turn_id: str) -> Exchange | None:
        """The message that began a turn, and what was delivered of its answer; None when it is not kept any more."""
        return await self._database.read(_exchange, turn_id)

    async def last_exchange(self, session_key: str) -> Exchange | None:
        """The newest exchange in a session's present transcript, None when there is none."""

        def work(db: sqlite3.Connection) -> Exchange | None:
            found = db.execute(
                "SELECT turn_id FROM entry WHERE kind='user'"
                " AND transcript_id=(SELECT transcript_id FROM session WHERE session_key=?) ORDER BY seq DESC LIMIT 1",
                (session_key,),
            ).fetchone()
            return _exchange(db, found[0]) if found else None

        return await self._database.read(work)

    async def events_after(
        self, seq: int, session_key: str | None, run_id: str | None, limit: int, sessions: str = ""
    ) -> Sequence[StoredEvent]:
        """Kept events after a position, oldest first; of sessions whose keys begin with `sessions`."""

        def work(db: sqlite3.Connection) -> list[StoredEvent]:
            found = db.execute(
                "SELECT seq, event_id, json_extract(body, '$.type'), body FROM event WHERE seq > ?1"
                " AND json_valid(body) AND (?2 IS NULL OR session_key = ?2) AND (?3 IS NULL OR turn_id = ?3)"
                " AND instr(session_key, ?5) = 1 ORDER BY seq LIMIT ?4",
                (seq, session_key, run_id, limit, sessions),
            ).fetchall()
            return [StoredEvent(seq=row[0], event_id=row[1], type=row[2], body=row[3]) for row in found]

        return await self._database.read(work)

    async def events(self, event_ids: Sequence[str]) -> Sequence[StoredEvent]:
        """Those of these kept events that are stored, in any order."""

        def work(db: sqlite3.Connection) -> list[StoredEvent]:
            found = db.execute(
                "SELECT seq, event_id, json_extract(body, '$.type'), body FROM event"
                f" WHERE event_id IN ({','.join('?' * len(event_ids))})",
                event_ids,
            ).fetchall()
            return [StoredEvent(seq=row[0], event_id=row[1], type=row[2], body=row[3]) for row in found]

        return await self._database.read(work)

    async def before_step(self, run_id: str, step: int) -> int | None:
        """Where a run's last kept event before a step stands; None when none is kept."""

        def work(db: sqlite3.Connection) -> int | None:
            return db.execute(  # type: ignore[no-any-return]
                "SELECT max(seq) FROM event WHERE event_id >= ?1 || '/' AND event_id < ?1 || '0'"  # '0' follows '/'
                " AND (event_id = ?1 || '/start' OR json_extract(body, '$.step') < ?2)",
                (run_id, step),
            ).fetchone()[0]

        return await self._database.read(work)

    async def event_position(self, event_id: str) -> int | None:
        """Where a kept event stands; None when it is not known (any more)."""

        def work(db: sqlite3.Connection) -> int | None:
            found = db.execute("SELECT seq FROM event WHERE event_id=?", (event_id,)).fetchone()
            return int(found[0]) if found else None

        return await self._database.read(work)

    async def first_event(self, run_id: str) -> int | None:
        """Where a run's first kept event stands; None when none is kept (yet, or any more)."""

        def work(db: sqlite3.Connection) -> int | None:
            # a run that was dropped before it began has an end alone
            ids = first_and_last(run_id)
            return db.execute("SELECT min(seq) FROM event WHERE event_id IN (?,?)", ids).fetchone()[0]  # type: ignore[no-any-return]

        return await self._database.read(work)

    async def last_event(self) -> int:
        """The position of the newest kept event, 0 when there is none."""

        def work(db: sqlite3.Connection) -> int:
            return int(db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])

        return await self._database.read(work)

    async def totals(self) -> Totals:
        """What is open, for /status and `hark status`."""

        def work(db: sqlite3.Connection) -> Totals:
            def count(sql: str) -> int:
                return int(db.execute(sql).fetchone()[0])

            return Totals(
                waiting=count(f"SELECT count(*) FROM inbox WHERE state='waiting' AND {rows.IS_CLAIMED}"),
                running=count("SELECT count(*) FROM turn WHERE state IN ('running','parked') AND state='running'"),
                undelivered=count("SELECT count(*) FROM delivery WHERE state IN ('planned','sending','unknown')"),
                failed_deliveries=count(f"SELECT count(*) FROM delivery WHERE {_LOST} AND state='failed'"),
                uncertain_deliveries=count(f"SELECT count(*) FROM delivery WHERE {_LOST} AND state='uncertain'"),
            )

        return await self._database.read(work)

    async def lost_deliveries(self, limit: int) -> tuple[LostDelivery, ...]:
        """What did not arrive, or may not have, newest first."""

        def work(db: sqlite3.Connection) -> tuple[LostDelivery, ...]:
            found = db.execute(
                "SELECT state, channel, chat, error, settled_at FROM delivery JOIN conversation USING (conv_id)"
                f" WHERE {_LOST} ORDER BY delivery_id DESC LIMIT ?",
                (limit,),
            ).fetchall()
            return tuple(
                LostDelivery(state=DeliveryState(state), channel=channel, chat=chat, reason=error or "", at=at)
                for state, channel, chat, error, at in found
            )

        return await self._database.read(work)


def _exchange(db: sqlite3.Connection, turn_id: str) -> Exchange | None:
    asked = db.execute("SELECT payload, seq FROM inbox WHERE turn_id=? ORDER BY seq LIMIT 1", (turn_id,)).fetchone()
    message = codec.read_inbound(*asked) if asked else None
    if message is None:
        return None
    pieces = db.execute(
        "SELECT step, said FROM delivery WHERE turn_id=? AND state='sent' ORDER BY delivery_id", (turn_id,)
    ).fetchall()
    return Exchange(event_key=message.event_key, question=message.text, answer=_said(pieces, _cut_steps(db, turn_id)))


def _cut_steps(db: sqlite3.Connection, turn_id: str) -> set[int]:
    """Steps of a turn whose answer the next one goes on with."""
    found = db.execute("SELECT step FROM entry WHERE turn_id=? AND kind='assistant_cut'", (turn_id,))
    return {step for (step,) in found}


def _entries(transcript_id: str, found: Sequence[_Line]) -> tuple[Entry, ...]:
    """Lines as values. Damaged ones are left out; but a result gets a stand-in, so that its call is not run again."""
    messages = [_message(row[2]) for row in found]
    lost = [row[0] for row, message in zip(found, messages, strict=True) if message is None]
    if lost:
        log.error("lines of a transcript cannot be read", transcript=transcript_id, lines=lost)
    results = {part.call_id for m in messages if m for part in m.parts if isinstance(part, ToolResult)}
    unanswered: list[ToolCall] = []
    entries = []
    for (seq, kind, _, tokens, turn_id, step), read in zip(found, messages, strict=True):
        message = read
        if read is not None and read.tool_calls:
            unanswered = [call for call in read.tool_calls if call.call_id not in results]
        elif read is None and kind == "tool_result" and unanswered:  # results are written in call order
            call = unanswered.pop(0)
            message = Message("tool", (ToolResult(call.call_id, call.name, UNREADABLE, is_error=True),))
        if message is not None:
            entries.append(
                Entry(seq=seq, kind=kind, message=message, tokens=tokens, turn_id=turn_id, step=step)  # type: ignore[arg-type]
            )
    return tuple(entries)


def _message(body: str) -> Message | None:
    try:
        return codec.load_message(body)
    except ValidationError:
        return None


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
