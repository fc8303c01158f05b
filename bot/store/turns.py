"""The life of a turn: claim (T2), step (T3), calls and results (T4), blocks (T5), finish (T7), cut, release.

Every method is one transaction and names the run's epoch; a run that lost its turn gets StaleRun. States and rules
are those of durability.md parts 2 to 4.
"""

import sqlite3
from collections.abc import Callable, Sequence

from agent.events import AgentEnd, AgentStart, KeptEvent, Outcome, RunRef
from agent.journal import CallResult, Cut, Kept
from agent.message import Entry, EntryKind, Message, ToolCall, Usage
from bot.store import codec, repair, rows
from bot.store.errors import StaleRun
from bot.store.values import Delivery, PlanIn, Planned, Turn, TurnKind
from bot.store.writer import Writer
from channels.message import InboundMessage

Compose = Callable[[InboundMessage, int], Message]
"""Makes the user message of a transcript from what was accepted, and when."""


class Turns:
    """Transactions of a run."""

    def __init__(self, writer: Writer, now: Callable[[], int], new_id: Callable[[], str], compose: Compose) -> None:
        self._writer = writer
        self._now = now
        self._new_id = new_id
        self._compose = compose

    async def claim(self, session_key: str, model: str, *, background: bool = False) -> Turn | None:
        """Take the session's next turn: one that was cut and waits to go on, else the oldest message.

        model: which one will answer, for the event. background: take beats, jobs and children's results instead of what
        people wrote. None when nothing waits, or one runs or is parked.
        """
        now, new_id = self._now(), self._new_id()

        def work(db: sqlite3.Connection) -> Turn | None:
            turns = db.execute(
                f"SELECT turn_id, state, epoch, {rows.IN_BACKGROUND} FROM turn"
                " WHERE session_key=? AND state IN ('queued','running','parked')"
                " ORDER BY created_at, turn_id",
                (session_key,),
            ).fetchall()
            if any(state != "queued" for _, state, _, _ in turns):
                return None
            for turn_id in [turn for turn, _, epoch, kind in turns if epoch > 0 and bool(kind) == background]:
                if (message := _answered(db, turn_id, now)) is not None:
                    return _take(db, turn_id, message, (), self._compose, now, model)
            begun = _begin(db, session_key, self._compose, now, new_id, background)
            return None if begun is None else _take(db, *begun, self._compose, now, model)

        return await self._writer.write(work)

    async def set_prompt(self, transcript_id: str, prompt: str, fingerprint: str) -> None:
        """Fix the system prompt of a transcript."""

        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE transcript SET prompt=?, fingerprint=? WHERE transcript_id=?",
                (prompt, fingerprint, transcript_id),
            )

        await self._writer.write(work)

    async def plan(self, run: RunRef, where: PlanIn, blocks: Sequence[Planned]) -> tuple[Delivery, ...]:
        """T5: put blocks of the answer that is being streamed into the ledger."""
        now = self._now()

        def work(db: sqlite3.Connection) -> tuple[Delivery, ...]:
            rows.check_epoch(db, run)
            return rows.plan(db, where, blocks, run.turn_id, now)

        return await self._writer.write(work)

    async def step(
        self,
        run: RunRef,
        message: Message,
        *,
        note: Message | None = None,
        where: PlanIn,
        blocks: Sequence[Planned],
        usage: Usage,
        context_start: int,
        events: Sequence[KeptEvent],
        outcome: Outcome,
    ) -> tuple[Kept, tuple[Delivery, ...]]:
        """T3: an answer with its calls, its last blocks, usage and events; with T7 when nothing is open.

        note: the answer was cut, and this line for the model follows it: the turn goes on. outcome applies only if
        the turn is finished: no note, no calls, and no steering text came.
        usage: of the whole turn so far. A message without parts leaves no line.
        """
        now = self._now()

        def work(db: sqlite3.Connection) -> tuple[Kept, tuple[Delivery, ...]]:
            _, transcript_id, _, step = rows.check_epoch(db, run)
            step += 1
            entries = []
            if message.parts:
                kind: EntryKind = "assistant" if note is None else "assistant_cut"
                entries.append(rows.append_entry(db, transcript_id, kind, message, run.turn_id, step))
            if note is not None:
                entries.append(rows.append_entry(db, transcript_id, "note", note, run.turn_id, step))
            _ask(db, run.turn_id, step, message.tool_calls)
            db.execute(
                "UPDATE turn SET step=?, usage=?, model=? WHERE turn_id=?",
                (step, codec.dump_usage(usage), message.model, run.turn_id),
            )
            db.execute(
                "UPDATE transcript SET context_start=? WHERE transcript_id=? AND context_start<>?",
                (context_start, transcript_id, context_start),
            )
            deliveries = rows.plan(db, where, blocks, run.turn_id, now)
            rows.keep_events(db, events)
            if message.tool_calls or note is not None:
                return Kept(tuple(entries), None), deliveries
            steering = _take_steering(db, run.turn_id, transcript_id, self._compose)
            if steering:
                return Kept((*entries, *steering), None), deliveries
            return Kept(tuple(entries), rows.end_turn(db, run.turn_id, outcome, now)), deliveries

        return await self._writer.write(work)

    async def note(self, run: RunRef, text: Message) -> Entry:
        """Add a note of the service to the transcript, for the model to read."""

        def work(db: sqlite3.Connection) -> Entry:
            _, transcript_id, _, step = rows.check_epoch(db, run)
            return rows.append_entry(db, transcript_id, "note", text, run.turn_id, step)

        return await self._writer.write(work)

    async def start_calls(self, run: RunRef, call_ids: Sequence[str], events: Sequence[KeptEvent]) -> None:
        """Mark calls as running, directly before they are executed."""

        def work(db: sqlite3.Connection) -> None:
            rows.check_epoch(db, run)
            db.executemany(
                "UPDATE tool_call SET state='running' WHERE turn_id=? AND call_id=? AND state='asked'",
                [(run.turn_id, call_id) for call_id in call_ids],
            )
            rows.keep_events(db, events)

        await self._writer.write(work)

    async def process_started(self, run: RunRef, call_id: str, pid: int, started: str) -> None:
        """Remember the process of a call, before it may do anything."""

        def work(db: sqlite3.Connection) -> None:
            rows.check_epoch(db, run)
            db.execute(
                "UPDATE tool_call SET pid=?, pid_started=? WHERE turn_id=? AND call_id=?",
                (pid, started, run.turn_id, call_id),
            )

        await self._writer.write(work)

    async def results(
        self,
        run: RunRef,
        results: Sequence[CallResult],
        *,
        batch_done: bool,
        events: Sequence[KeptEvent],
    ) -> tuple[Entry, ...]:
        """T4: results of calls, in call order; with batch_done also the steering texts that came meanwhile.

        Returns the lines written.
        """

        def work(db: sqlite3.Connection) -> tuple[Entry, ...]:
            _, transcript_id, _, step = rows.check_epoch(db, run)
            lines = []
            for call in results:
                result, state = call.result, call.state
                message = Message("tool", (result,))
                lines.append(rows.append_entry(db, transcript_id, "tool_result", message, run.turn_id, step))
                db.execute(  # what a tool began has ended when it returns
                    "UPDATE tool_call SET state=?, pid=NULL, pid_started=NULL WHERE turn_id=? AND call_id=?",
                    (state, run.turn_id, result.call_id),
                )
            rows.keep_events(db, events)
            if batch_done:
                lines.extend(_take_steering(db, run.turn_id, transcript_id, self._compose))
            return tuple(lines)

        return await self._writer.write(work)

    async def cut(self, run: RunRef, events: Sequence[KeptEvent]) -> Cut:
        """The stream broke: store what was planned of the answer as the assistant's words, marked cut, with the note.

        Nothing is written when nothing had been planned.
        """
        now = self._now()

        def work(db: sqlite3.Connection) -> Cut:
            _, transcript_id, _, step = rows.check_epoch(db, run)
            rows.keep_events(db, events)
            return repair.close_cut_answer(db, run.turn_id, transcript_id, step, now, go_on=True)

        return await self._writer.write(work)

    async def finish(
        self,
        run: RunRef,
        outcome: Outcome,
        *,
        error_kind: str | None,
        error_message: str | None,
        where: PlanIn,
        blocks: Sequence[Planned],
        events: Sequence[KeptEvent],
    ) -> tuple[tuple[Delivery, ...], tuple[KeptEvent, ...], AgentEnd]:
        """T7 for a run that did not end with an answer: repair, one plain sentence (blocks), the end.

        Returns what is to be delivered, the events of the repair, and the end.
        """
        now = self._now()

        def work(db: sqlite3.Connection) -> tuple[tuple[Delivery, ...], tuple[KeptEvent, ...], AgentEnd]:
            _, transcript_id, _, step = rows.check_epoch(db, run)
            rows.keep_events(db, events)
            closed = repair.close_run(db, run.turn_id, transcript_id, step, now)
            deliveries = rows.plan(db, where, blocks, run.turn_id, now)
            return deliveries, closed, rows.end_turn(db, run.turn_id, outcome, now, error_kind, error_message)

        return await self._writer.write(work)

    async def release(self, run: RunRef, until: int | None = None) -> tuple[KeptEvent, ...]:
        """Give a turn back to the queue without counting a crash (drain, or a store that could not write).

        until: when the run ceased to work, in milliseconds; now, if nothing is said. A turn that is not the
        run's any more (stopped) stays as it is. Returns the events of the repair.
        """
        now = self._now()

        def work(db: sqlite3.Connection) -> tuple[KeptEvent, ...]:
            try:
                _, transcript_id, _, step = rows.check_epoch(db, run)
            except StaleRun:
                return ()
            return repair.requeue(db, run.turn_id, transcript_id, step, now, now if until is None else until)

        return await self._writer.write(work)


def _begin(
    db: sqlite3.Connection, session_key: str, compose: Compose, now: int, new_id: str, background: bool
) -> tuple[str, InboundMessage, tuple[Entry, ...]] | None:
    """Make the oldest waiting message a turn (or take the one made with it) and write its user line."""
    while True:
        found = db.execute(
            "SELECT seq, turn_id, conv_id, payload, accepted_at, kind FROM inbox"
            f" WHERE session_key=? AND state='waiting' AND {rows.IS_CLAIMED} AND ({rows.IN_BACKGROUND}) = ?"
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
    transcript_id = rows.transcript_of(db, session_key, None, now, new_id)
    if turn_id is None:
        turn_id = new_id
        turn_kind = {"wake": "beat", "job": "job", "child": "child", "api": "api"}.get(kind, "reply")
        db.execute(
            "INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, reply_conv, created_at)"
            " VALUES (?,?,?,?,'queued',?,?)",
            (turn_id, session_key, transcript_id, turn_kind, conv_id, accepted_at),
        )
    else:
        # a /new between acceptance and claim began another transcript: the turn belongs to the present one
        db.execute("UPDATE turn SET transcript_id=? WHERE turn_id=?", (transcript_id, turn_id))
    db.execute("UPDATE inbox SET state='taken', turn_id=? WHERE seq=?", (turn_id, seq))
    line = rows.append_entry(db, transcript_id, "user", compose(inbound, accepted_at), turn_id, 0)
    return turn_id, inbound, (line,)


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


def _take(
    db: sqlite3.Connection,
    turn_id: str,
    message: InboundMessage,
    entries: tuple[Entry, ...],
    compose: Compose,
    now: int,
    model: str,
) -> Turn:
    """Put a queued turn to running under a new epoch."""
    epoch, kind, session_key, transcript_id, conv_id, step, usage, ran = db.execute(
        "UPDATE turn SET state='running', epoch=epoch+1, started_at=coalesce(started_at, ?1), resumed_at=?1"
        " WHERE turn_id=?2 RETURNING epoch, kind, session_key, transcript_id, reply_conv, step, usage, ran",
        (now, turn_id),
    ).fetchone()
    if _before_an_answer(db, turn_id, transcript_id):
        entries += _take_steering(db, turn_id, transcript_id, compose)
    prompt, fingerprint = db.execute(
        "SELECT prompt, fingerprint FROM transcript WHERE transcript_id=?", (transcript_id,)
    ).fetchone()
    run = rows.run_ref(turn_id, session_key, epoch)
    start = None
    if epoch == 1:
        start = AgentStart(run=run, at=now, model=model)
        rows.keep_events(db, (start,))
    more = db.execute(
        f"SELECT 1 FROM inbox WHERE session_key=? AND state='waiting' AND {rows.IS_CLAIMED} LIMIT 1", (session_key,)
    ).fetchone()
    return Turn(
        run=run,
        kind=TurnKind(kind),
        session_key=session_key,
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
        start=start,
        more=more is not None,
    )


def _before_an_answer(db: sqlite3.Connection, turn_id: str, transcript_id: str) -> bool:
    """Whether a new answer comes next, and not the rest of a cut one or calls that were asked for."""
    asked = db.execute("SELECT 1 FROM tool_call WHERE turn_id=? AND state='asked' LIMIT 1", (turn_id,)).fetchone()
    (last,) = db.execute(
        "SELECT kind FROM entry WHERE transcript_id=? ORDER BY seq DESC LIMIT 1", (transcript_id,)
    ).fetchone()
    return asked is None and last in ("user", "tool_result")


def _ask(db: sqlite3.Connection, turn_id: str, step: int, calls: Sequence[ToolCall]) -> None:
    db.executemany(
        "INSERT INTO tool_call (turn_id, call_id, step, ordinal, name, args, state) VALUES (?,?,?,?,?,?,'asked')",
        [(turn_id, call.call_id, step, n, call.name, call.arguments) for n, call in enumerate(calls)],
    )


def _take_steering(db: sqlite3.Connection, turn_id: str, transcript_id: str, compose: Compose) -> tuple[Entry, ...]:
    found = db.execute(
        "SELECT seq, payload, accepted_at FROM inbox WHERE turn_id=? AND state='steering' ORDER BY seq", (turn_id,)
    ).fetchall()
    lines = []
    for seq, payload, accepted_at in found:
        inbound = codec.read_inbound(payload, seq)
        if inbound is None:
            _drop_unreadable(db, seq, None, 0)
            continue
        message = compose(inbound, accepted_at)
        lines.append(rows.append_entry(db, transcript_id, "user", message, turn_id, 0))
        db.execute("UPDATE inbox SET state='taken' WHERE seq=?", (seq,))
    return tuple(lines)
