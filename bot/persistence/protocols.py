"""What the parts of the service ask of a store: one protocol per subject, one method one transaction.

A call that has returned is on disk; one that raised StoreUnavailable changed nothing. Nothing of how it is kept crosses
this wall: `bot/store` does it with SQLite, and any other store must pass the same suite (`tests/bot/persistence`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from agent.events import AgentEnd, Outcome, PersistedEvent, RunRef
from agent.journal import CallResult, Cut, Kept, Step
from agent.message import Entry, EntryKind, Message
from agent.tools.base import Verdict
from bot.persistence.approvals import Approvals
from bot.persistence.found import CutTurn, Leftover, Salvage
from bot.persistence.people import People
from bot.persistence.schedules import Schedules
from bot.persistence.settings import Change, SessionSettings
from bot.persistence.values import (
    Accepted,
    AccountHistory,
    CommandKept,
    Duplicate,
    Exchange,
    Fate,
    Fresh,
    LostDelivery,
    Missed,
    OwnerNotice,
    PlanIn,
    Reply,
    StoredEvent,
    Totals,
    Turn,
    TurnView,
)
from channels.base import Mark
from channels.message import InboundMessage, Origin, Place
from channels.outgoing import Delivery, Planned, SendResult


class Inbox(Protocol):
    """What people wrote. Order of acceptance is order within a session: `seq` is given by the store."""

    async def accept(self, batch: Sequence[Accepted], mark: Mark | None = None) -> Sequence[Fresh | Duplicate]:
        """Store a batch and the mark behind it; one answer per item, in order.

        An edit or a deletion finds its message by `message_key`. No model has seen it: it is replaced, or withdrawn. It
        is being answered: an edit is a message of its own to the next turn, and what it says (`say`) is planned. Else
        it is mentioned in front of the next turn of that session. The last edit counts; the same words change nothing.
        Raises StoreUnavailable when nothing of it was stored.
        """

    async def steer(self, turn_id: str, what: InboundMessage | int, *, only_own: bool = False) -> bool:
        """Let a turn that has not ended read a text before its next answer: a new one, or one that waits (its seq).

        only_own: a new one that may join only what its sender alone has asked for, since a run that is under way has
        the rights of those who wrote its turn before. False, and nothing is stored or changed, when the turn has
        ended or is of others; and when the message does not wait any more, came to another place than the turn
        answers, or stands behind a command that is not carried out.
        """

    async def mark(self, scope: str) -> str | None:
        """The value of the last mark of a scope."""

    async def waiting_sessions(self, limit: int) -> Sequence[tuple[str, bool]]:
        """Sessions with something to run, those that wait longest first; True for work in the background."""

    async def open_commands(self) -> Sequence[tuple[int, str, InboundMessage]]:
        """Commands that are not carried out, oldest first: seq, session key, message. Damaged ones are passed over."""

    async def count_waiting(self, session_key: str) -> int:
        """How many messages wait in a session, ready or not: those that a stop would drop."""


class History(Protocol):
    """How far conversations were heard, where their platform can be asked for what is missing.

    A message is accepted once, but one that came live, waits behind a history (`behind`) and is then found there takes
    its place in the order of acceptance then: `seq` follows the order of the platform.
    """

    async def known(self, channel: str, account: str, since: int) -> AccountHistory:
        """The conversations of an account, for who has to look what was said there meanwhile.

        since: threads in which the bot has said nothing since that moment (milliseconds) are not listed.
        """

    async def begins(self, place: Place) -> str:
        """The id of the first message that waits in this thread, if no turn of its session took any there; or empty."""

    async def release(self, place: Place, around: Sequence[InboundMessage] = ()) -> Sequence[str]:
        """What waits behind the history of this place comes next, in the order of the platform; returns its sessions.
        Nothing is missing up to the last of it. around: what was said in a thread before, which counts as overheard."""


class Turns(Protocol):
    """The life of a turn: claim (T2), blocks (T5), step (T3), calls and results (T4), finish (T7), cut, release.

    All but the claim name the run: one that lost its turn gets StaleRun.
    """

    async def claim(
        self,
        session_key: str,
        worker: str,
        model: str,
        *,
        background: bool = False,
        beats: str = "",
        most: int = 1,
        until: int = 0,
    ) -> Turn | None:
        """Take the session's next turn: one that was cut and waits to go on, else the oldest message.

        worker: who takes it, and has it until it is settled or its lease is gone. model: which one will answer, for the
        event. background: take beats, jobs and children's results instead of what people wrote. beats: which model
        answers a beat, if that is another one. most: messages that one new turn answers, if they came one after the
        other into one conversation; those that waited for each other (`AcceptedMessage.gathers`) are taken together
        anyway. until: messages that are ready by then count as ready, also when the clock says less (milliseconds).
        None when nothing is ready, or one runs or waits for a person.
        """

    async def plan_elsewhere(
        self, run: RunRef, place: Place, blocks: Sequence[Planned], session_key: str, most: int = 0
    ) -> tuple[Delivery, ...]:
        """Put what a call of a tool sends to another place into the ledger; its conversation is made if need be.

        session_key: whose next turn is told that this was written there; empty: nobody's. most: how many messages the
        turn may have put into other chats than its own, these included, or nothing is planned; 0: any number.
        """

    async def set_prompt(self, transcript_id: str, prompt: str, fingerprint: str) -> None:
        """Fix the system prompt of a transcript."""

    async def plan(self, run: RunRef, where: PlanIn, blocks: Sequence[Planned]) -> tuple[Delivery, ...]:
        """T5: put blocks of the answer that is being streamed into the ledger."""

    async def step(
        self, run: RunRef, step: Step, where: PlanIn, blocks: Sequence[Planned]
    ) -> tuple[Kept, tuple[Delivery, ...]]:
        """T3: an answer with its calls, its last blocks, usage and event; with T7 when nothing is open.

        With a note the turn goes on. The outcome applies only if the turn is finished: no note, no calls, and no
        steering text came. A message without parts leaves no line.
        """

    async def note(self, run: RunRef, text: Message, kind: EntryKind = "note") -> Entry:
        """Add a note of the service to the transcript, for the model to read; as kind user, what people sent along."""

    async def start_calls(self, run: RunRef, call_ids: Sequence[str], events: Sequence[PersistedEvent]) -> None:
        """Mark calls as running, directly before they are executed: a decision about one is used up by that."""

    async def process_started(self, run: RunRef, call_id: str, pid: int, started: str) -> None:
        """Remember the process of a call, before it may do anything."""

    async def delivered(self, name: str) -> Fate:
        """What has become of a message that a call has planned, by its source."""

    async def results(
        self,
        run: RunRef,
        results: Sequence[CallResult],
        *,
        batch_done: bool,
        silent: bool = False,
        events: Sequence[PersistedEvent],
    ) -> Kept:
        """T4: results of calls, in call order; with batch_done also the steering texts that came meanwhile.

        silent: with T7 (completed), unless such a text came.
        """

    async def cut(self, run: RunRef, tell: Callable[[Cut], Sequence[PersistedEvent]]) -> Cut:
        """The stream broke: store what was planned of the answer as the assistant's words, marked cut, with the note.

        Nothing of it is kept when nothing had been planned. tell: makes events of what was kept. Another try begins.
        """

    async def finish(
        self,
        run: RunRef,
        outcome: Outcome,
        *,
        error_kind: str | None,
        error_message: str | None,
        where: PlanIn,
        blocks: Sequence[Planned],
        notice: OwnerNotice | None = None,
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
        """T7 for a run that did not end with an answer: repair, one plain sentence (blocks), the end.

        Returns what is to be delivered, and the end.
        """

    async def release(self, run: RunRef, until: int | None = None) -> None:
        """Give a turn back to the queue without counting a crash (drain, or a store that could not write).

        until: when the run ceased to work, in milliseconds; now, if nothing is said. A turn that is not the
        run's any more (stopped) stays as it is.
        """


class Deliveries(Protocol):
    """The ledger of deliveries: begin and settle (T6), in the order of planning within a conversation."""

    async def next(self, conv_id: int) -> Delivery | None:
        """The oldest open delivery of a conversation."""

    async def begin(self, delivery_id: int, conv_id: int, max_age: int, missed: Missed = None) -> Delivery | None:
        """planned → sending, directly before the call; None when it is not planned any more.

        conv_id: the conversation that is served; None also when it has moved, for then another worker serves it.
        max_age: milliseconds after planning when a delivery expires instead. missed: makes what is told of that.
        """

    async def settle(
        self, delivery: Delivery, result: SendResult, notice: OwnerNotice | None, missed: Missed = None
    ) -> None:
        """T6: what became of a call. A chat that moved takes its conversation along; notice: of a refused message."""

    async def tell_owner(self, notice: OwnerNotice) -> None:
        """Plan a notice to an owner."""

    async def recover(self) -> None:
        """What a crash left in `sending` has an unknown outcome, or is simply repeated. Before the outbox runs."""

    async def open_conversations(self) -> Sequence[tuple[int, Place]]:
        """Conversations with something to deliver."""


class Commands(Protocol):
    """Commands of people (TC): effect, reply and the end of the command at once. seq: of its own row in the inbox.

    chosen: the edit of the message whose button the command is; when it is planned already, somebody was first, and
    nothing else is done.
    """

    async def answer(self, seq: int, blocks: Sequence[Planned], chosen: Sequence[Planned] = ()) -> CommandKept:
        """A command that only says something."""

    async def set(self, seq: int, session_key: str, change: Change, blocks: Sequence[Planned]) -> CommandKept:
        """Change a setting of the session."""

    async def take_up(
        self, seq: int, message: InboundMessage, chosen: Sequence[Planned], again: str = ""
    ) -> CommandKept:
        """A press of a button that is no command becomes a message of who pressed it.

        again: an approval that has expired: the turn of that message begins with the same call.
        """

    async def decide(
        self,
        seq: int,
        approval_id: str,
        state: Verdict,
        by: str,
        reason: str,
        reply: Callable[[bool], Sequence[Planned]],
        passed_on: int = 0,
    ) -> CommandKept:
        """Settle an approval (see `Approvals.decide`). reply: made of whether it was this command that did. passed_on:
        a message whose words are the reason; while it still waits, no run takes it any more."""

    async def stop(
        self, seq: int, session_key: str, reply: Reply, chosen: Sequence[Planned] = (), renew: str = "", below: str = ""
    ) -> CommandKept:
        """End the session's run and drop what waited before the command was written; below: also in the sessions whose
        keys begin so, and say it there. renew: the session goes on with a new, empty transcript of that id.
        """

    async def abort(self, turn_id: str) -> bool:
        """End one turn, queued or running; False when it has ended already or is not known."""


class Recovery(Protocol):
    """What a crash left, before lanes and intake open."""

    async def leftovers(self, worker: str) -> Sequence[Leftover]:
        """Processes of turns whose lease is gone that nobody has seen end: the turn may run, or was over before."""

    async def forget(self, ended: Sequence[Leftover]) -> None:
        """These processes are known to have ended; their sessions are told what there is to tell, with a next turn."""

    async def cut_turns(self, worker: str) -> Sequence[CutTurn]:
        """Turns that run and whose lease is gone, oldest first: none of `worker`'s own, whose lease holds."""

    async def ready(self) -> None:
        """Messages that waited for their moment, or for more of their sender, wait no longer."""

    async def recover(self, turn_id: str, worker: str, give_up: Callable[[str], Sequence[Planned]]) -> bool:
        """Repair one of those turns and put it back into the queue; after a second crash end it instead.

        give_up: makes the notice to the person. Returns whether the turn goes on: not, when its lease holds. Beats are
        stopped, not repeated. The attempt counts as having run until its last sign.
        """


class Reads(Protocol):
    """Queries without side effects."""

    async def context(self, transcript_id: str) -> tuple[Entry, ...]:
        """The lines of a transcript that still go to the model, in order."""

    async def settings(self, session_key: str) -> SessionSettings:
        """What is set for a session."""

    async def turn(self, turn_id: str) -> TurnView | None:
        """A turn by its id, with what it said so far."""

    async def offer(self, place: Place, message_id: str) -> Delivery | None:
        """A message with buttons, by its place and platform id; None when it is not known (any more)."""

    async def own_message(self, place: Place, message_id: str) -> Place | None:
        """Where in its chat the model has sent this message, by an answer or a tool; None: not known (any more)."""

    async def directory(self, channel: str, account: str) -> Sequence[Origin]:
        """The conversations in which somebody who was let in has written: the origin of the newest message of each."""

    async def last_failure(self) -> tuple[int, str] | None:
        """When the newest failed turn ended, in milliseconds, and why."""

    async def last_exchange(self, session_key: str, upto: int) -> Exchange | None:
        """The newest exchange in a session's present transcript of which a reader up to that position has seen some."""

    async def totals(self) -> Totals:
        """What is open, for /status and `hark status`."""

    async def lost_deliveries(self, limit: int) -> tuple[LostDelivery, ...]:
        """What did not arrive, or may not have, newest first."""

    async def events_after(
        self, seq: int, upto: int, session_key: str | None, run_id: str | None, limit: int, sessions: str = ""
    ) -> Sequence[StoredEvent]:
        """Kept events after a position up to another, oldest first; of sessions whose keys begin with `sessions`."""

    async def under_way(self, session_key: str | None, sessions: str) -> tuple[int, Sequence[StoredEvent]]:
        """The position of the newest kept event, and the beginnings of the answers that are being written at it."""

    async def first_event(self, run_id: str) -> int | None:
        """Where a run's first kept event stands; None when none is kept (yet, or any more)."""

    async def end_of(self, run_id: str) -> int | None:
        """Where the end of a run stands; None when it is not kept (yet, or any more)."""

    async def last_event(self) -> int:
        """The position of the newest kept event, 0 when there is none."""


class Store(Protocol):
    """All of it, opened, checked and closed together. salvage: what the check at the start found and recovered."""

    inbox: Inbox
    history: History
    people: People
    turns: Turns
    approvals: Approvals
    deliveries: Deliveries
    commands: Commands
    recovery: Recovery
    schedules: Schedules
    reads: Reads
    salvage: Salvage | None

    @property
    def failure(self) -> str | None:
        """Why it cannot read or write, None while it can."""

    async def open(self) -> None:
        """Check what is kept, all of it unless it was closed in order, and begin to work.

        Raises StoreUnavailable when that may work later; StoreTooNew or another error when it will not.
        """

    async def try_write(self) -> bool:
        """Find out whether it can write, and read, again."""

    async def prune(self) -> None:
        """Forget what is old, a small batch at a time."""

    async def close(self) -> None:
        """Write what waits and let go."""
