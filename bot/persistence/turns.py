"""A turn as a worker claims it, as programs ask for it, and as commands end it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from agent.events import RunRef
from agent.message import Entry, Usage
from agent.tools.base import Decision
from bot.persistence.settings import SessionSettings
from channels.message import InboundMessage, Place
from channels.outgoing import Delivery, Planned
from channels.sources import Source


class TurnState(StrEnum):
    """States of a turn (durability.md part 3)."""

    QUEUED = "queued"
    RUNNING = "running"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class TurnKind(StrEnum):
    """What caused a turn."""

    REPLY = "reply"
    API = "api"
    BEAT = "beat"
    JOB = "job"
    CHILD = "child"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a turn has said where it answers: a whole answer, one message of a tool, or a sentence of the service."""

    # Of an answer, that of its first block.
    source: Source
    text: str
    # Of an answer: which one in the turn.
    step: int | None = None
    # Path of the file that was sent.
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The work that a message causes, claimed by this worker: what everything about it is tied together by."""

    # Named by every write; its attempt is the epoch of the claim.
    run: RunRef
    kind: TurnKind
    transcript_id: str
    # What the turn answers, oldest first, with what steered it.
    messages: tuple[InboundMessage, ...]
    conv_id: int
    place: Place
    # Answers of the model so far.
    step: int
    usage: Usage
    # Milliseconds of earlier attempts.
    ran: int
    # User lines written by this claim: one per message, unless the turn is resumed, and steering texts that came before
    # its next answer.
    entries: tuple[Entry, ...]
    # Of the transcript; None before its first turn.
    prompt: str | None
    fingerprint: str | None
    # Something else of the session is ready.
    more: bool
    # What the ledger has of it already.
    said: tuple[Said, ...] = ()
    # About calls that it was parked on, by their ids.
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    # Of the session.
    settings: SessionSettings = field(default_factory=SessionSettings)
    # As the run has them: asked for all along the way.
    turn_id: str = field(init=False)
    session_key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "turn_id", self.run.turn_id)
        object.__setattr__(self, "session_key", self.run.session_key)


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as the outside sees it. Times are in milliseconds."""

    turn_id: str
    session_key: str
    state: TurnState
    outcome: str | None
    # What was said, joined.
    text: str
    model: str | None
    usage: Usage
    error_kind: str | None
    error_message: str | None
    accepted_at: int
    started_at: int | None
    ended_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The messages of a turn and what was said to them."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What a stop did."""

    # A run was cut.
    running: bool = False
    # How many messages waited.
    dropped: int = 0
    # Those that ended, and their sessions.
    turns: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()


# Makes the answer to a command from what it did.
Reply = Callable[[Stopped], Sequence[Planned]]


@dataclass(frozen=True, slots=True)
class CommandKept:
    """What a command did, and what is to be delivered."""

    stopped: Stopped
    deliveries: tuple[Delivery, ...]
    # The session whose turn goes on, and whether that is of the background.
    resumed: tuple[str, bool] | None = None
