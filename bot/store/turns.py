"""The transactions of a running turn: step (T3), results (T4), blocks (T5), finish (T7), cut and release.

T1 to T7 are the transactions of durability.md part 2; parts 3 and 4 have the states and rules.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from agent.events import AgentEnd, Outcome, PersistedEvent, RunRef
from agent.journal import Begun, CallResult, Cut, Kept, Step
from agent.message import Entry, EntryKind, Mark, Message, Provenance, ToolResult, Usage
from agent.prompt.build import Prompt
from agent.tools.conversation import AskPersonTool
from bot.persistence.deliveries import Fate, OwnerNotice, PlanIn, ToldOf
from bot.persistence.errors import StaleRun
from bot.replies.directives import for_people
from bot.store import codec, edits, endings, frozen, repair, rows, tool_messages, usage, yielding
from bot.store.claims import Claims
from bot.store.writer import query, transaction
from channels.message import Place
from channels.outgoing import Delivery, Planned
from channels.session_key import root_of

# Whether a steering text of the turn ?1 waits that came after the last decision about its calls.
_STEERED = (
    "EXISTS (SELECT 1 FROM inbox WHERE turn_id=?1 AND state='steering'"
    " AND accepted_at > (SELECT coalesce(max(decided_at), 0) FROM approval WHERE turn_id=?1))"
)


class Turns(Claims):
    """The transactions of a turn. Each method that takes a run raises StaleRun if the run does not hold its turn."""

    @transaction
    def set_prompt(self, db: sqlite3.Connection, transcript_id: str, prompt: Prompt, fingerprint: str) -> None:
        """Store the system prompt of a transcript and its fingerprint."""
        db.execute(
            "UPDATE transcript SET prompt=?, first_meeting=?, fingerprint=? WHERE transcript_id=?",
            (codec.PROMPT.dump(prompt), prompt.first_meeting, fingerprint, transcript_id),
        )

    @transaction
    def plan(
        self, db: sqlite3.Connection, run: RunRef, where: PlanIn, blocks: Sequence[Planned]
    ) -> tuple[Delivery, ...]:
        """T5: put blocks of a streamed answer, or of a call, into the ledger."""
        now = self._now()
        rows.check_epoch(db, run, of_call=True)
        return rows.plan(db, where, blocks, run.turn_id, now)

    @transaction
    def plan_elsewhere(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        place: Place,
        blocks: Sequence[Planned],
        told: ToldOf,
        most: int = 0,
    ) -> tuple[Delivery, ...]:
        """Put blocks that a tool call sends to another place into the ledger.

        told: who is told of the message. most: the number of messages that the turn may plan in other chats than its
        own, these included; beyond it nothing is planned. 0: any number.
        """
        now = self._now()
        rows.check_epoch(db, run, of_call=True)
        if most and tool_messages.elsewhere(db, run.turn_id) + len(blocks) > most:
            return ()
        conv_id = rows.conversation(db, place)
        if told.session_key:
            first = blocks[0]
            words = "\n".join(filter(None, (first.said, f"(file {first.file.name})" if first.file else "")))
            edits.note_written(db, place, conv_id, told.session_key, first.source.key, words, now, told.origins)
        return rows.plan(db, PlanIn(conv_id), blocks, run.turn_id, now)

    @transaction
    def step(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        step: Step,
        where: PlanIn,
        blocks: Sequence[Planned],
        last: Sequence[Planned] = (),
    ) -> tuple[Kept, tuple[Delivery, ...]]:
        """T3: store an answer with its calls, last blocks, usage and event; with T7 if nothing is left to do.

        The turn goes on if the step has a note or calls, or if a steering text came; else it ends with the outcome of
        the step. A message without parts adds no line to the transcript. last: planned behind the end, if it ends.
        """
        now, message, note = self._now(), step.message, step.note
        transcript_id, number = rows.check_epoch(db, run)
        number += 1
        entries = []
        if message.parts:
            kind: EntryKind = "assistant_cut" if note is not None and note.mark is Mark.LIMIT else "assistant"
            entries.append(rows.append_entry(db, transcript_id, kind, message, run.turn_id, number))
        if note is not None:
            entries.append(rows.append_entry(db, transcript_id, "note", note, run.turn_id, number))
        rows.ask(db, run.turn_id, number, calls := message.tool_calls)
        db.execute(
            "UPDATE turn SET step=?, usage=?, model=? WHERE turn_id=?",
            (number, codec.USAGE.dump(step.usage), message.model, run.turn_id),
        )
        usage.record(db, run.turn_id, message.model, step.ended.usage, now)
        db.execute(  # never back: a summary may have been made meanwhile
            "UPDATE transcript SET context_start=max(context_start, ?1), pruned_below=max(pruned_below, ?2)"
            " WHERE transcript_id=?3 AND (context_start < ?1 OR pruned_below < ?2)",
            (step.context_start, step.pruned_below, transcript_id),
        )
        rows.persist_events(db, (step.ended,))
        deliveries = rows.plan(db, where, blocks, run.turn_id, now)
        if calls:
            return Kept(tuple(entries), None, steered=_is_steered(db, run)), deliveries
        if note is None:
            entries.extend(steering := self._take_steering(db, run, transcript_id, now))
        if note is not None or steering:
            halted = not rows.begin_answer(db, run, number + 1, now)
            return Kept(tuple(entries), None, halted), deliveries
        silent = not blocks and not for_people(message.text).strip()
        end = endings.end_turn(db, run.turn_id, step.outcome, now, silent=silent)
        return Kept(tuple(entries), end), (*deliveries, *rows.plan(db, where, last, None, now))

    @transaction
    def note(self, db: sqlite3.Connection, run: RunRef, text: Message, kind: EntryKind = "note") -> Entry:
        """Add a line to the transcript: a note of the service, or, of kind `user`, what people sent along."""
        transcript_id, step = rows.check_epoch(db, run)
        return rows.append_entry(db, transcript_id, kind, text, run.turn_id, step)

    @transaction
    def start_calls(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        call_ids: Sequence[str],
        events: Sequence[PersistedEvent],
        reach_out: bool | None = None,
        follows: Sequence[str] = (),
    ) -> Begun:
        """Mark calls as running, directly before they are executed. This uses up the decision about a call.

        reach_out: whether one of them leaves this machine; None: that is not known. Only with `Begun.YES` anything is
        begun. If a freeze holds them, the turn is queued, and the run is over. follows: see `followed`.
        """
        now = self._now()
        transcript_id, step = rows.check_epoch(db, run)
        if _is_steered(db, run):
            return Begun.STEERED
        start = (
            "UPDATE tool_call SET state='running', used_at=iif(state='waiting', ?, NULL)"
            " WHERE turn_id=? AND call_id=? AND state IN ('asked','waiting')"
        )
        calls = [(now, run.turn_id, call_id) for call_id in call_ids]
        if not db.executemany(f"{start} AND NOT EXISTS (SELECT 1 FROM freeze)", calls).rowcount:
            held_by = f"SELECT {frozen.THERE}, kind FROM turn WHERE turn_id=?"
            there, kind = db.execute(held_by, (run.turn_id,)).fetchone()
            may = frozen.may_call(there, kind, reach_out)
            if may is False:
                repair.requeue(db, run.turn_id, transcript_id, step, now, now)
                goes_on = "network" if reach_out else "tools"
                db.execute("UPDATE turn SET next_calls=? WHERE turn_id=?", (goes_on, run.turn_id))
            if not may:
                return Begun.DEPENDS if may is None else Begun.HALTED
            db.executemany(start, calls)
        counted = [(_task_of(db, run.session_key), host) for host in follows]
        db.executemany(
            "INSERT INTO kv (scope, key, value) VALUES (?,?,'1')"
            " ON CONFLICT (scope, key) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
            counted,
        )
        rows.persist_events(db, events)
        return Begun.YES

    @query
    def followed(self, db: sqlite3.Connection, session_key: str) -> Mapping[str, int]:
        """Return how often each host was followed in the task of a session: until /new, sub-agents included."""
        found = db.execute("SELECT key, CAST(value AS INTEGER) FROM kv WHERE scope=?", (_task_of(db, session_key),))
        return dict(found.fetchall())

    @transaction
    def process_started(self, db: sqlite3.Connection, run: RunRef, call_id: str, pid: int, started: str) -> None:
        """Store the process of a call, before the process may do anything."""
        rows.check_epoch(db, run, of_call=True)
        db.execute(
            "UPDATE tool_call SET pid=?, pid_started=? WHERE turn_id=? AND call_id=?",
            (pid, started, run.turn_id, call_id),
        )

    @query
    def delivered(self, db: sqlite3.Connection, source: str) -> Fate:
        """Return what has become of a message of a tool call. source: the key of its source."""
        return tool_messages.fate(db, source)

    @transaction
    def results(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        results: Sequence[CallResult],
        *,
        batch_done: bool,
        silent: bool = False,
        events: Sequence[PersistedEvent],
    ) -> Kept:
        """T4: store results of calls, in call order, and return the new lines and the event of the end, if it ended.

        batch_done: these are the last results of the step, so steering texts are taken. silent: the turn ends as
        completed (T7) unless a steering text came. The results of a turn that has given way are kept, and its run ends.
        """
        now = self._now()
        try:
            transcript_id, step = rows.check_epoch(db, run)
        except StaleRun:
            transcript_id, step = rows.check_epoch(db, run, of_call=True)
            gave_way = True
        else:
            gave_way = False
        lines = []
        for call in results:
            result, state = _with_answerer(db, run.turn_id, call.result), call.state
            message = Message("tool", (result,))
            lines.append(rows.append_entry(db, transcript_id, "tool_result", message, run.turn_id, step))
            ended = "" if call.goes_on else ", pid=NULL, pid_started=NULL"
            db.execute(
                f"UPDATE tool_call SET state=?{ended} WHERE turn_id=? AND call_id=?",
                (state, run.turn_id, result.call_id),
            )
        rows.persist_events(db, events)
        if gave_way:
            yielding.hide(db, run.turn_id, transcript_id)
            end = AgentEnd(run=run, at=now, outcome=Outcome.PARKED, model="", usage=Usage(), duration=0)
            return Kept(tuple(lines), end)
        if batch_done:
            lines.extend(steering := self._take_steering(db, run, transcript_id, now))
            if silent and not steering:
                return Kept(tuple(lines), endings.end_turn(db, run.turn_id, Outcome.COMPLETED, now, silent=True))
            return Kept(tuple(lines), None, halted=not rows.begin_answer(db, run, step + 1, now))
        return Kept(tuple(lines), None, steered=_is_steered(db, run))

    @transaction
    def cut(
        self, db: sqlite3.Connection, run: RunRef, tell: Callable[[Cut], Sequence[PersistedEvent]], *, heard: int | None
    ) -> Cut:
        """Store what was planned of an answer whose stream broke, marked cut, with the note; another try begins.

        Nothing is stored if nothing was planned. tell: makes the events about what was stored. heard: see
        `repair.close_cut_answer`.
        """
        now = self._now()
        transcript_id, step = rows.check_epoch(db, run)
        cut = repair.close_cut_answer(db, run.turn_id, transcript_id, step, now, go_on=True, heard=heard)
        rows.persist_events(db, tell(cut))
        return replace(cut, halted=not rows.begin_answer(db, run, cut.step + 1, now))

    @transaction
    def finish(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        outcome: Outcome,
        *,
        error_kind: str | None,
        error_message: str | None,
        where: PlanIn,
        blocks: Sequence[Planned],
        notice: OwnerNotice | None = None,
        last: Sequence[Planned] = (),
        heard: int | None = 0,
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
        """T7 for a run that did not end with an answer: close what is open, plan the notice (blocks), end the turn.

        last: planned behind the end. heard: see `repair.close_cut_answer`. Returns the planned deliveries and the event
        of the end.
        """
        now = self._now()
        transcript_id, step = rows.check_epoch(db, run)
        repair.close_run(db, run.turn_id, transcript_id, step, now, heard=heard)
        deliveries = rows.plan(db, where, blocks, run.turn_id, now)
        if notice is not None:
            rows.tell_owner(db, notice, now)
        end = endings.end_turn(db, run.turn_id, outcome, now, error_kind, error_message)
        return (*deliveries, *rows.plan(db, where, last, None, now)), end

    @transaction
    def release(self, db: sqlite3.Connection, run: RunRef, until: int | None = None) -> None:
        """Put a turn back into the queue without counting a crash, at a drain or after the store could not write.

        until: when the run stopped working, in milliseconds; None: now. A turn that the run does not hold any more is
        left as it is, but for calls that were to be finished apart.
        """
        now = self._now()
        try:
            transcript_id, step = rows.check_epoch(db, run)
        except StaleRun:
            yielding.give_up_calls(db, run, now)
            return
        repair.requeue(db, run.turn_id, transcript_id, step, now, now if until is None else until)


def _task_of(db: sqlite3.Connection, session_key: str) -> str:
    """Return the scope in `kv` that counts what a session and its sub-agents follow, until its next transcript."""
    found = db.execute("SELECT transcript_id FROM session WHERE session_key=?", (root_of(session_key),)).fetchone()
    return f"{rows.FOLLOWED}{found[0] if found else ''}"


def _is_steered(db: sqlite3.Connection, run: RunRef) -> bool:
    return bool(db.execute(f"SELECT {_STEERED}", (run.turn_id,)).fetchone()[0])


def _with_answerer(db: sqlite3.Connection, turn_id: str, result: ToolResult) -> ToolResult:
    """Return a result as it is; that of a question bears who has answered it, which may be anybody in a group.

    Whoever answers in the terminal or over HTTP counts as an owner.
    """
    if result.name != AskPersonTool.name:
        return result
    (by,) = db.execute(
        "SELECT decided_by FROM approval WHERE turn_id=? AND call_id=? AND state IN ('answered','denied')",
        (turn_id, result.call_id),
    ).fetchone() or ("",)
    who, _, name = (by or "").partition(" ")
    channel, _, sender = who.partition(":")
    if channel and channel not in ("console", "http"):
        result = replace(result, origins=(*result.origins, Provenance("person", name or who, channel, sender)))
    return result
