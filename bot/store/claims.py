"""Claims turns (T2): a worker takes the next turn of a session, with its messages, under a new epoch.

A turn that was cut and waits to go on comes before the oldest message of its session.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from typing import Any, Literal

from agent.events import AgentStart, Outcome, RunRef
from agent.message import Entry, Message, Provenance, Text, ToolCall, Usage
from bot.clock import Clock
from bot.compose import overheard, overheard_files
from bot.persistence.causes import Cause
from bot.persistence.inbox import Changes
from bot.persistence.settings import AnsweredBy, SessionSettings
from bot.persistence.turns import BY_THEMSELVES, OtherPeople, Serves, Turn, TurnKind
from bot.store import approvals, codec, edits, endings, freezes, frozen, history, repair, rows, yielding
from bot.store.database import Database
from bot.store.indexes import NEXT, OPEN_TURN, WAITING
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND
from bot.store.writer import Subject, Writer, transaction
from channels.message import BACKGROUND, SEVERAL, ChatKind, InboundKind, InboundMessage, Place
from channels.session_key import beats_of, begins_anew, console_key, is_main

# Makes the user message of a transcript from an accepted message, the time of its acceptance in milliseconds, and the
# changes that the model is told first.
Compose = Callable[[InboundMessage, int, Changes], Message]
# Tells which model answers a turn, by the kind of the turn, the settings of its session and its messages. Called inside
# of the transaction of the claim, so it must have no effects and raise nothing.
Answering = Callable[[TurnKind, SessionSettings, Sequence[InboundMessage]], AnsweredBy]
# Tells whether a message begins a new transcript of its session, by the place of the message, when people last used the
# session, and when the message was accepted (both in milliseconds).
Stale = Callable[[Place, int, int], bool]
# A message of the inbox: its seq, the message, and when it was accepted (milliseconds).
_Row = tuple[int, InboundMessage, int]
# The number of gathered messages that one turn takes at most.
GATHERED = 50
# The same value for all messages that are taken together: those of a sender that are ready at the same time, and all
# that were missed in a conversation (ready_at is negative); NULL for others.
_GATHERING = "iif(gathers, iif(ready_at < 0, 'missed', sender || ' ' || ready_at), NULL)"
# What a claim takes of a session while one of its messages is the next (see `inbox.queued`): that one alone.
_IN_TURN = f"(queued IS 'next' OR NOT EXISTS (SELECT 1 FROM inbox WHERE session_key=?1 AND {NEXT}))"
# A turn (?1) with the columns that a claim needs of its session, transcript and conversation; whether it has calls that
# are not carried out; whether its steering texts can be shown, which come after the rest of a cut answer; and whether
# another message of its session is ready at ?2.
_TAKEN = (
    "SELECT epoch, turn.kind, turn.session_key, turn.transcript_id, step, usage, ran, outcome, settings, prompt,"
    " fingerprint, conv_id, channel, account, chat, thread, conversation.kind,"
    " EXISTS (SELECT 1 FROM tool_call WHERE turn_id=?1 AND state IN ('asked','waiting')),"
    " EXISTS (SELECT 1 FROM inbox WHERE turn_id=?1 AND state='steering') AND (SELECT kind FROM entry"
    " WHERE transcript_id=turn.transcript_id ORDER BY seq DESC LIMIT 1) IN ('user','tool_result'),"
    f" EXISTS (SELECT 1 FROM inbox WHERE session_key=turn.session_key AND {WAITING} AND {FOR_A_RUN} AND ready_at <= ?2)"
    f", {yielding.BEHIND}"
    " FROM turn JOIN transcript USING (transcript_id) JOIN conversation ON conv_id=reply_conv"
    " LEFT JOIN session ON session.session_key=turn.session_key WHERE turn_id=?1"
)


class Claims(Subject):
    """How a run gets its turn and the steering texts for it."""

    def __init__(self, database: Database, writer: Writer, clock: Clock, compose: Compose, stale: Stale) -> None:
        super().__init__(database, writer, clock)
        self._compose = compose
        self._stamp = clock.stamp
        # Decides which sessions begin anew.
        self.stale = stale

    @transaction
    def claim(
        self,
        db: sqlite3.Connection,
        session_key: str,
        worker: str,
        answering: Answering,
        *,
        background: bool = False,
        until: int = 0,
        newest: int | None = None,
        serves: Serves | None = None,
    ) -> Turn | None:
        """Claim the session's next turn: one that was cut and waits to go on, else a new one of the oldest message.

        worker: the worker that holds the turn until it ends or the worker dies. answering: see `Answering`. background:
        take beats, jobs and children's results instead of what people wrote. until: messages that are ready by then
        count as ready, even if the clock is behind (milliseconds). newest: no message behind this one is taken. A
        turn answers one message, or those that were gathered. Returns None if nothing is ready, or a turn runs or waits
        for a person. But a beat or a job gives way to what people wrote, see `bot/store/yielding`. Raises Frozen if a
        freeze holds what is to be run; beats and jobs that are frozen are passed over. Raises OtherPeople if it is for
        others than `serves` says.
        """
        found = db.execute(
            f"SELECT {frozen.THERE}, ({yielding.ASKERS}), turn_id, state, epoch, kind, next_calls FROM (SELECT 1)"
            f" LEFT JOIN turn ON session_key=?1 AND {OPEN_TURN} ORDER BY created_at, turn_id",
            (session_key, background),
        ).fetchall()
        now, (there, askers, *_) = self._now(), found[0]
        ready = max(now, until)
        if there and frozen.holds(there, ""):
            raise freezes.held(db, session_key, "all")
        if serves and (names := json.loads(askers)) and (who := serves[1](names)) != serves[0]:
            raise OtherPeople(who)
        cut, unasked, ends = dict[str, tuple[str, str | None]](), dict[str, tuple[str, str | None]](), ""
        for turn_id, state, epoch, *goes_on in (row[2:] for row in found if row[2] is not None):
            by_itself = goes_on[0] in BY_THEMSELVES
            held = state == "running" or (state == "parked" and approvals.still_waits(db, turn_id, now))
            if held and (background or not by_itself):
                return None
            if epoch > 0:
                (unasked if by_itself else cut)[turn_id] = (goes_on[0], goes_on[1])
        if unasked and not background:
            if not cut and not yielding.person_waits(db, session_key, ready):
                return None
            ends = "".join([yielding.give_way(db, turn_id, now) for turn_id in unasked])
        for turn_id, of in (cut | unasked if background else cut).items():
            if held_by := there and frozen.holds(there, *of):
                if held_by == "beats":
                    continue
                raise freezes.held(db, session_key, held_by)
            if turn_id in unasked and not yielding.goes_on(db, turn_id, worker, now):
                return None
            if answered := _of_turn(db, turn_id, "taken", now):
                messages = [message for _, message, _ in answered]
                return self._take(db, turn_id, messages, (), now, ready, worker, answering, ends)
        if background and yielding.person_waits(db, session_key):
            return None
        begun = self._begin(db, session_key, now, ready, background, newest)
        return None if begun is None else self._take(db, *begun, now, ready, worker, answering, ends)

    def _begin(
        self, db: sqlite3.Connection, session_key: str, now: int, ready: int, background: bool, newest: int | None
    ) -> tuple[str, list[InboundMessage], tuple[Entry, ...]] | None:
        """Make a turn of the oldest waiting messages, unless one was made with them, and write their user lines."""
        while True:
            found = db.execute(
                f"SELECT seq, payload, accepted_at, {_GATHERING}, queued, turn_id, conv_id, inbox.kind,"
                f" ({rows.COMMANDS_BEFORE}), asks_again, transcript_id, used_at, conversation.channel,"
                " conversation.account, chat, thread, conversation.kind"
                " FROM inbox LEFT JOIN conversation USING (conv_id) LEFT JOIN session USING (session_key)"
                f" WHERE session_key=?1 AND {WAITING} AND inbox.{FOR_A_RUN} AND (inbox.{IN_BACKGROUND}) = ?2"
                f" AND ready_at <= ?3 AND (?2 OR {_IN_TURN})"
                f" AND NOT (inbox.kind IN ('wake','job') AND {frozen.BEATS}) AND (?5 IS NULL OR seq <= ?5)"
                " ORDER BY seq LIMIT ?4",
                (session_key, background, ready, GATHERED, newest),
            ).fetchall()
            if not found:
                return None
            turn_id, conv_id, kind, _, asks_again, transcript_id, used_at, *place = found[0][5:]
            taken = _readable(db, [row[:3] for row in _together(found)], turn_id, now)
            if taken:
                break
        if transcript_id is None:
            transcript_id, used_at = rows.transcript_of(db, session_key, None, now, self._new_id())
        first = taken[0][2]
        stale = begins_anew(session_key) if background else self.stale(rows.to_place(*place), used_at, first)
        if stale:
            transcript_id = rows.new_transcript(db, session_key, self._new_id(), now)
        if turn_id is None:
            turn_id = self._new_id()
            rows.new_turn(db, turn_id, session_key, transcript_id, rows.TURN_OF[kind], conv_id, first)
        else:
            # /new may have begun another transcript between acceptance and claim
            db.execute("UPDATE turn SET transcript_id=? WHERE turn_id=?", (transcript_id, turn_id))
        beat = turn_id if kind == "wake" else None
        before = edits.noted(db, beats_of(session_key) or session_key, transcript_id, beat)
        lines = self._show(db, taken, turn_id, session_key, transcript_id, before)
        if asks_again is not None:
            lines += _repeated(db, turn_id, transcript_id, asks_again)
        return turn_id, [message for _, message, _ in taken], lines

    def _take(
        self,
        db: sqlite3.Connection,
        turn_id: str,
        messages: list[InboundMessage],
        entries: tuple[Entry, ...],
        now: int,
        ready: int,
        worker: str,
        answering: Answering,
        ends: str,
    ) -> Turn:
        """Set a queued turn to running under a new epoch and return it."""
        db.execute(
            "UPDATE turn SET state='running', worker=?3, epoch=epoch+1, started_at=coalesce(started_at, ?1),"
            " resumed_at=?1, next_calls=NULL WHERE turn_id=?2",
            (now, turn_id, worker),
        )
        epoch, kind, session_key, transcript_id, step, usage, ran, outcome, settings, prompt, fingerprint, *rest = (
            db.execute(_TAKEN, (turn_id, ready)).fetchone()
        )
        conv_id, *place, asked, steered, more, behind = rest
        turn_kind, set_here = TurnKind(kind), codec.SETTINGS.load(settings, SessionSettings())
        if steered and not asked:
            steering = _of_turn(db, turn_id, "steering", now)
            messages += [message for _, message, _ in steering]
            entries += self._show(db, steering, turn_id, session_key, transcript_id)
        run = rows.run_ref(turn_id, session_key, epoch)
        if outcome is not None:  # it was parked
            db.execute("UPDATE turn SET outcome=NULL WHERE turn_id=?", (turn_id,))
        if epoch == 1 or outcome is not None:
            words = _typed(messages) if epoch == 1 and session_key == console_key() else ""
            by, is_beat = answering(turn_kind, set_here, messages), turn_kind is TurnKind.BEAT
            began = AgentStart(run=run, at=now, model=by.model, thinking=by.thinking, message=words, is_beat=is_beat)
            rows.persist_events(db, (began,))
        if not asked:
            rows.begin_answer(db, run, step + 1, now)
        return Turn(
            run=run,
            kind=turn_kind,
            transcript_id=transcript_id,
            messages=tuple(messages),
            conv_id=conv_id,
            place=rows.to_place(*place),
            step=step,
            usage=codec.USAGE.load(usage, Usage()),
            ran=ran,
            entries=entries,
            prompt=codec.PROMPT.load(prompt, None),
            fingerprint=fingerprint,
            more=bool(more),
            behind=bool(behind),
            ends=ends,
            said=rows.said_by(db, turn_id) if epoch > 1 else (),
            decisions=approvals.decisions(db, turn_id) if epoch > 1 else {},
            settings=set_here,
        )

    def _take_steering(self, db: sqlite3.Connection, run: RunRef, transcript_id: str, now: int) -> tuple[Entry, ...]:
        """Append the steering texts of the turn of a run to the transcript and return the lines."""
        taken = _of_turn(db, run.turn_id, "steering", now)
        return self._show(db, taken, run.turn_id, run.session_key, transcript_id) if taken else ()

    def _show(
        self,
        db: sqlite3.Connection,
        taken: list[_Row],
        turn_id: str,
        session_key: str,
        transcript_id: str,
        before: Changes = (),
    ) -> tuple[Entry, ...]:
        """Give messages to a turn and write a user line for each; the parts of one message become one line."""
        lines = []
        shared = is_main(session_key)
        for _, found in groupby(tuple(taken), _part):
            parts = list(found)
            for seq, _, _ in parts:
                db.execute("UPDATE inbox SET state='taken', turn_id=? WHERE seq=?", (turn_id, seq))
            message = joined([message for _, message, _ in parts])
            line = replace(self._compose(message, parts[0][2], before), origins=_origins(db, message, shared, before))
            if around := history.overheard_before(db, message, transcript_id):
                origins = (*line.origins, Provenance("person", "others who wrote here"))
                if files := overheard_files(around, message):
                    origins += tuple(Provenance("file", one.name) for one in files)
                    seq, first, at = parts[0][0], replace(parts[0][1], overheard=files), parts[0][2]
                    taken[taken.index(parts[0])] = (seq, first, at)  # and after a crash as well:
                    db.execute("UPDATE inbox SET payload=? WHERE seq=?", (codec.INBOUND.dump(first), seq))
                line = replace(line, parts=(Text(overheard(around, self._stamp)), *line.parts), origins=origins)
            lines.append(rows.append_entry(db, transcript_id, "user", line, turn_id, 0))
            if any(message.kind not in BACKGROUND for _, message, _ in parts):
                db.execute(
                    "UPDATE session SET used_at=max(used_at, ?) WHERE session_key=?", (parts[-1][2], session_key)
                )
            before = ()
        return tuple(lines)


def _repeated(db: sqlite3.Connection, turn_id: str, transcript_id: str, approval_id: str) -> tuple[Entry, ...]:
    """Begin a turn with the call about which nobody decided in time, as if the model had made it again."""
    found = db.execute(
        "SELECT name, args, turn_id, step FROM approval JOIN tool_call USING (turn_id, call_id) WHERE approval_id=?",
        (approval_id,),
    ).fetchone()
    if found is None:
        return ()
    name, args, *made = found
    call = ToolCall(f"again_{approval_id[:12]}", name, args)
    # the origins of what it was made from, and of what stands before it now: a label is looked for no further
    before = db.execute(
        "SELECT body FROM entry WHERE turn_id=?2 AND step=?3 AND kind='assistant' OR transcript_id=?1 AND seq >="
        " (SELECT coalesce(max(seq), 0) FROM entry WHERE transcript_id=?1 AND kind='assistant') ORDER BY seq",
        (transcript_id, *made),
    )
    origins = codec.bears(body for (body,) in before)
    rows.ask(db, turn_id, 1, [call])
    db.execute("UPDATE turn SET step=1 WHERE turn_id=?", (turn_id,))
    line = Message("assistant", (call,), origins=origins)
    return (rows.append_entry(db, transcript_id, "assistant", line, turn_id, 1),)


def _typed(messages: Sequence[InboundMessage]) -> str:
    """Join the texts that people wrote, to be shown in every terminal."""
    return "\n\n".join(message.text for message in messages if message.kind not in BACKGROUND)


def _part(row: _Row) -> tuple[str, object]:
    """Return a key that is the same for all parts of one message, and for no other message."""
    seq, message, _ = row
    return message.origin.sender, message.part_of or seq


def joined(parts: Sequence[InboundMessage]) -> InboundMessage:
    """Join the parts of a message that the platform had split."""
    first = parts[0]
    text = "\n".join(part.text for part in parts if part.text)
    files = tuple(file for part in parts for file in part.attachments)
    if first.forwarded is not None:
        passed_on = (part.forwarded.text for part in parts if part.forwarded is not None)
        first = replace(first, forwarded=replace(first.forwarded, text="\n".join(filter(None, passed_on))))
    return replace(first, text=text, attachments=files)


def _together(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the first row and the following ones that are gathered with it, or collected with it, up to a command.

    They are of the same place and kind and have no turn of their own. What is said elsewhere does not part those that
    are collected.
    """
    gathering, queued, *where = found[0][3:]
    if queued == "collect":
        here = (row for row in found if list(row[5:]) == where)
        return list(takewhile(lambda row: row[4] == queued, here))
    alike = takewhile(lambda row: list(row[5:]) == where, found[1:])
    return [found[0], *(row for row in alike if gathering and row[3] == gathering)]


def _readable(
    db: sqlite3.Connection, found: Sequence[tuple[int, str, int]], turn_id: str | None, now: int
) -> list[_Row]:
    """Read messages; drop damaged ones, and end the turn if no other is left. found: seq, payload and acceptance."""
    read = [(seq, codec.read_inbound(payload, seq), accepted_at) for seq, payload, accepted_at in found]
    taken = [(seq, message, accepted_at) for seq, message, accepted_at in read if message is not None]
    for seq, message, _ in read:
        if message is None:
            db.execute("UPDATE inbox SET state='dropped', reason=? WHERE seq=?", (Cause.UNREADABLE, seq))
    if not taken and turn_id is not None:
        _end_unreadable(db, turn_id, now)
    return taken


def _of_turn(db: sqlite3.Connection, turn_id: str, state: Literal["taken", "steering"], now: int) -> list[_Row]:
    """Return the messages that a turn has taken, or the steering texts that no model has seen yet.

    If all taken messages are damaged, the turn is ended.
    """
    found = db.execute(
        f"SELECT seq, payload, accepted_at FROM inbox WHERE turn_id=? AND state='{state}' ORDER BY seq", (turn_id,)
    ).fetchall()
    return _readable(db, found, turn_id if state == "taken" else None, now)


def _end_unreadable(db: sqlite3.Connection, turn_id: str, now: int) -> None:
    """End a turn whose messages are damaged, so that others need not wait for it."""
    transcript_id, step = db.execute("SELECT transcript_id, step FROM turn WHERE turn_id=?", (turn_id,)).fetchone()
    repair.close_run(db, turn_id, transcript_id, step, now)
    endings.end_turn(db, turn_id, Outcome.FAILED, now, "unreadable", "the message was damaged in the store")


def _origins(
    db: sqlite3.Connection, message: InboundMessage, shared: bool, before: Changes = ()
) -> tuple[Provenance, ...]:
    """Return where the text of a message came from: a person's own words do not count in their own conversation.

    shared: the direct messages of several people are one session. before: the changes that the model is told first.
    """
    origin, found = message.origin, list[Provenance]()
    if message.origins:
        found += codec.origins(message.origins)
    for change, _, _ in before:
        found += _origins(db, change, shared)
    several = origin.place.kind in SEVERAL or (shared and origin.place.kind is ChatKind.DIRECT)
    if several and message.kind not in (*BACKGROUND, InboundKind.EVENT):
        name = origin.sender_name or origin.sender
        found.append(Provenance("person", name, origin.place.channel, origin.sender))
    if (quoted := message.replied) is not None:
        replied = edits.replied_to(db, origin.place, message.reply_to, by_me=quoted.by_me)
        if isinstance(replied, InboundMessage):
            found += _origins(db, replied, shared)
        else:
            found += [Provenance("person", quoted.author or "somebody else")] if replied is None else replied
    if (passed_on := message.forwarded) is not None:
        found.append(Provenance("person", passed_on.author or "somebody else"))
    files = message.files if message.replied or message.overheard else message.attachments
    found += [Provenance("file", one.name) for one in files if not one.spoken]
    return tuple(found)
