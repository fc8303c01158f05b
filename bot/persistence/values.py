"""What goes into the store and comes out of it: frozen values, no rows, no transactions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from agent.events import RunRef
from agent.message import Entry, Usage
from agent.tools.base import Decision
from bot.persistence.causes import Cause
from bot.persistence.settings import SessionSettings
from channels.message import ChatMoved, InboundMessage, Place, UnreadEvent
from channels.outgoing import Delivery, DeliveryState, Planned
from channels.sources import Source


class TurnState(StrEnum):
    """States of a turn (durability.md part 3)."""

    QUEUED = "queued"
    RUNNING = "running"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


# What decides whether a message that does not name the bot is for it, unless something is set for its session: that it
# began the thread or spoke there, or that it always is or never. A message is, too, where another part of it is.
Follows = Literal["started", "joined", "open", "shut"]
# What becomes of a message as it is accepted. Held: until its sender is let in, or what was said before it is read.
# Overheard: said where the bot is, and not to it.
MessageState = Literal["waiting", "held", "overheard", "dropped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedMessage:
    """A message the inbound pipeline let in, only overheard, or dropped by a stated rule.

    session_key: None for an overheard or dropped one. turn_id: set when somebody must be able to ask for the turn by
    its id from the start (HTTP); the turn is made with it. digest: of the HTTP request's body. delay: milliseconds for
    which no run takes it. gathers: it waits for more of its sender in its conversation: each moves the moment for all
    that wait, at most to GATHER_MOST delays behind the first, and one run takes them together; anything else that they
    write there ends the wait. Without a delay it was missed: one run takes it with all of its conversation that were.
    say: planned with it in its own conversation, unless it was there already; with an edit, only if its message is just
    being answered. behind: what was said before it is not read yet, and no run takes it until it is released.
    asks_around: the same, where no turn of its session has taken anything of its thread yet. follows: it does not name
    the bot, see `Follows`; else it is overheard. code: of a held one, digest of the code that its sender is given by
    `say`, unless as many are pending as may be. kept: said instead while their code is good. notice: to an owner.
    """

    message: InboundMessage
    session_key: str | None
    state: MessageState = "waiting"
    reason: Cause | None = None
    turn_id: str | None = None
    digest: str | None = None
    delay: int = 0
    gathers: bool = False
    say: tuple[Planned, ...] = ()
    follows: Follows | None = None
    code: str = ""
    kept: tuple[Planned, ...] = ()
    notice: "OwnerNotice | None" = None
    behind: bool = False
    asks_around: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """Up to this message of the platform's history nothing of a conversation is missing."""

    place: Place
    cursor: str


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """A conversation as far as it was heard. cursor: see `Heard`, empty where there is none. held: messages wait there.

    listed: something may have been said to the bot there while it did not listen.
    """

    place: Place
    cursor: str
    held: bool
    listed: bool


@dataclass(frozen=True, slots=True)
class AccountHistory:
    """first: when the account was heard of for the first time, in milliseconds; fresh: that is now."""

    first: int
    fresh: bool
    conversations: Sequence[ConversationHistory]


Accepted = AcceptedMessage | UnreadEvent | ChatMoved | Heard

GATHER_MOST = 5
# Lines kept of what was said in a conversation and not to the bot.
OVERHEARD = 50


@dataclass(frozen=True, slots=True)
class Fresh:
    """Stored. seq: its place in the order of acceptance. ready_at: from when on a run takes it, 0: at once.

    said: what was planned with it. state, reason: what became of it. wait: how long ready_at is from now, in
    milliseconds. wake: the session in which something else has become ready by it. became: as what it was stored, where
    it answers what was asked. waits_for: the approval that the turn before it waits for.
    """

    seq: int
    ready_at: int = 0
    said: tuple[Delivery, ...] = ()
    state: MessageState = "waiting"
    reason: Cause | None = None
    wait: int = 0
    wake: str | None = None
    became: InboundMessage | None = None
    waits_for: str | None = None
    # When it was stored, in milliseconds; of a message of which a turn or a command is made.
    at: int = 0


Standing = Literal["pending", "allowed", "owner", "blocked"]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has asked to write to an account, or of whom an owner has said something, then for all accounts of
    the channel: account is empty. name: as the platform shows it, never compared.

    until: when the code of somebody pending expires. since: when they became what they are; both in milliseconds. by:
    who made them that, as "channel:id"; empty where that is not recorded.
    """

    channel: str
    account: str
    sender: str
    standing: Standing
    name: str = ""
    until: int = 0
    since: int = 0
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a code or an order of an owner did. used: nothing, because the code had been used or was too old. waiting:
    what they had written, now accepted: seq, session key, message. said: what is to be delivered.

    turns: theirs that had begun or were asked for; what is left of one goes on with the rights that they have now.
    dropped: how many messages of theirs are not answered any more. sessions: in which they wrote directly.
    """

    person: Person
    used: bool = False
    waiting: tuple[tuple[int, str, InboundMessage], ...] = ()
    said: tuple[Delivery, ...] = ()
    turns: tuple[str, ...] = ()
    dropped: int = 0
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The event key was there already. turn_id and digest: of the row that is there."""

    seq: int
    turn_id: str | None
    digest: str | None


# What the model is told in front of the message that begins a turn: edits and deletions of messages that had been seen
# by then, each with what that message said and when it was sent (milliseconds); as events, what it wrote there itself
# from another conversation.
Changes = Sequence[tuple[InboundMessage, str, int]]


class TurnKind(StrEnum):
    """What caused a turn."""

    REPLY = "reply"
    API = "api"
    BEAT = "beat"
    JOB = "job"
    CHILD = "child"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a turn has said where it answers: a whole answer by its step, or one message of a tool, a sentence of the
    service. file: path of what was sent."""

    source: Source
    text: str
    step: int | None = None
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The work that a message causes, claimed by this worker: what everything about it is tied together by.

    run: named by every write; its attempt is the epoch of the claim. messages: what the turn answers, oldest first,
    with what steered it. entries: user lines written by this claim: one per message, unless the turn is resumed, and
    steering texts that came before its next answer. step: answers of the model so far. ran: milliseconds of earlier
    attempts. prompt and fingerprint: of the transcript, None before its first turn. more: something else of the
    session is ready. said: what the ledger has of it already. decisions: about calls that it was parked on, by
    their ids. settings: of the session.
    """

    run: RunRef
    kind: TurnKind
    transcript_id: str
    messages: tuple[InboundMessage, ...]
    conv_id: int
    place: Place
    step: int
    usage: Usage
    ran: int
    entries: tuple[Entry, ...]
    prompt: str | None
    fingerprint: str | None
    more: bool
    said: tuple[Said, ...] = ()
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    settings: SessionSettings = field(default_factory=SessionSettings)
    # As the run has them: asked for all along the way.
    turn_id: str = field(init=False)
    session_key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "turn_id", self.run.turn_id)
        object.__setattr__(self, "session_key", self.run.session_key)


# Makes what a conversation is told of messages that did not arrive there, or may not have. It is given the moment
# (milliseconds) from which on they are missed. None: nothing is told.
Missed = Callable[[int], Sequence[Planned]] | None


@dataclass(frozen=True, slots=True)
class OwnerNotice:
    """Something an owner is to be told: where they wrote last, else at `otherwise`.

    owners: channel and id of each. blocks: makes the deliveries for a place; their source is the notice's own. both: it
    is said at `otherwise` in any case.
    """

    owners: Sequence[tuple[str, str]]
    otherwise: Place
    blocks: Callable[[Place], Sequence[Planned]]
    both: bool = False


@dataclass(frozen=True, slots=True)
class LostDelivery:
    """What did not arrive, or may not have. state: failed, uncertain or expired; at: milliseconds."""

    state: DeliveryState
    channel: str
    chat: str
    # What the platform or the connection said, and why it was given up if it was; empty and None where nothing did.
    error: str
    cause: Cause | None
    at: int


@dataclass(frozen=True, slots=True)
class PlanIn:
    """Into which conversation blocks are planned, and how the first begins.

    sending: the conversation is idle and its rate limit was passed, so the first may be sent as soon as it is stored.
    In a conversation of kind `api` or `console` every block counts as sent: programs and terminals read the store.
    """

    conv_id: int
    sending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What a stop did. running: a run was cut; dropped: how many messages waited; turns: those that ended; sessions:
    theirs."""

    running: bool = False
    dropped: int = 0
    turns: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as the outside sees it. text: what was said, joined. Times in milliseconds."""

    turn_id: str
    session_key: str
    state: TurnState
    outcome: str | None
    text: str
    model: str | None
    usage: Usage
    error_kind: str | None
    error_message: str | None
    accepted_at: int
    started_at: int | None
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class PersistedAt:
    """That an agent event was kept, and where. seq: its position, which is never given to another one."""

    seq: int
    session_key: str
    run_id: str
    ended: bool


# Told of the events that a commit has kept, in order, before those who wrote them are answered.
Ring = Callable[[Sequence[PersistedAt]], None]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A kept agent event. seq: its position; body: its JSON."""

    seq: int
    type: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The messages of a turn and what was said to them."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Totals:
    """What a store holds. used_at: milliseconds, None when there is no session; begun: turns that run or go on."""

    sessions: int
    used_at: int | None
    begun: int
    waiting: int
    undelivered: int
    failed_deliveries: int
    uncertain_deliveries: int
    expired_deliveries: int


# Makes the answer to a command from what it did.
Reply = Callable[[Stopped], Sequence[Planned]]


@dataclass(frozen=True, slots=True)
class CommandKept:
    """What a command did, and what is to be delivered. resumed: the session whose turn goes on, and whether that is of
    the background."""

    stopped: Stopped
    deliveries: tuple[Delivery, ...]
    resumed: tuple[str, bool] | None = None


# What has become of a message. planned: it will be sent, also after a crash, or is being sent.
Delivered = Literal["planned", "sent", "not sent", "unknown"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What has become of a message of a call. ids: of the platform, one per piece. reason: why not, where it is told.

    open: more will become of it.
    """

    state: Delivered
    ids: tuple[str, ...] = ()
    reason: str = ""
    open: bool = False
