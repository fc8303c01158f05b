"""Values of the store about turns: as a worker claims them, as programs ask for them, and as commands end them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from agent.events import RunRef
from agent.message import Entry, Usage
from agent.prompt.build import Prompt
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


# Kinds of turns that no person asked for just now.
BY_THEMSELVES = (TurnKind.BEAT, TurnKind.JOB)
# For whom a turn is to be claimed, and what tells that by the names of those who wrote what its session has to run.
Serves = tuple[str, Callable[[Sequence[str]], str]]


class OtherPeople(Exception):
    """The next turn of a session is not for those for whom it was to be claimed, but for `who`."""

    def __init__(self, who: str) -> None:
        super().__init__(who)
        self.who = who


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One thing that a turn has said in its own conversation: an answer, a message of a tool, or one of the service."""

    # The source of the delivery; of an answer, that of its first block.
    source: Source
    text: str
    # Of an answer: its number in the turn.
    step: int | None = None
    # The path of the file that was sent, or empty.
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The work that a message causes, as this worker has claimed it."""

    # Names the run at every write; its attempt is the epoch of the claim.
    run: RunRef
    kind: TurnKind
    transcript_id: str
    # The messages that the turn answers and those that steered it, oldest first.
    messages: tuple[InboundMessage, ...]
    conv_id: int
    place: Place
    # The number of answers of the model so far.
    step: int
    usage: Usage
    # The running time of earlier attempts, in milliseconds.
    ran: int
    # The transcript lines that this claim has written: one per message unless the turn is resumed, and one per steering
    # text that came before the next answer.
    entries: tuple[Entry, ...]
    # The system prompt of the transcript and its fingerprint; None before the first turn of the transcript.
    prompt: Prompt | None
    fingerprint: str | None
    # Another message of the session is ready.
    more: bool
    # A turn or a message of the background waits in the session.
    behind: bool = False
    # The beat or job that has given way and whose run ends at once; empty if a call of it is to be finished.
    ends: str = ""
    # What the ledger already holds of the turn.
    said: tuple[Said, ...] = ()
    # The decisions about calls on which the turn was parked, by call id.
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    # The settings of the session.
    settings: SessionSettings = field(default_factory=SessionSettings)
    # Copies of the fields of the run, because they are read very often.
    turn_id: str = field(init=False)
    session_key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "turn_id", self.run.turn_id)
        object.__setattr__(self, "session_key", self.run.session_key)


@dataclass(frozen=True, slots=True)
class TurnView:
    """A turn as programs see it. Times are in milliseconds."""

    turn_id: str
    session_key: str
    state: TurnState
    outcome: str | None
    # All that the turn has said, joined.
    text: str
    model: str | None
    usage: Usage
    error_kind: str | None
    error_message: str | None
    accepted_at: int
    started_at: int | None
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class CallAtWork:
    """A call of a tool that runs, since a moment in milliseconds."""

    name: str
    since: int


@dataclass(frozen=True, slots=True)
class AtWork:
    """A turn that runs: since a moment, after earlier attempts of so long, both in milliseconds."""

    since: int
    ran: int
    calls: tuple[CallAtWork, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The messages of a turn and the answers to them, each joined to one text."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What a stop has ended."""

    # A run was cut.
    running: bool = False
    # The number of waiting messages that were dropped.
    dropped: int = 0
    # The ids of the ended turns, and their sessions.
    turns: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    # The name and the arguments of each call that the ended turns had finished, in their order.
    done: tuple[tuple[str, str], ...] = ()
    # The transcript that the session has left, and its settings, where it goes on with a new one.
    left: str = ""
    settings: SessionSettings = field(default_factory=SessionSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a command that ends the run of a session does besides."""

    # The id of the transcript with which the session goes on, made empty if it is missing; empty: with the present one.
    renew: str = ""
    # The model that answers in the session from then on; empty: as before.
    model: str = ""
    # The beginning of session keys in which the same is done, and said there; empty: none.
    below: str = ""
    # The sender whose messages are dropped, and whose runs are ended if nobody else has a part in them; empty: anybody.
    only: str = ""
    # The message of the new transcript that the command becomes; None: it is no message.
    becomes: InboundMessage | None = None


# Makes the answer to a command from what the command has ended.
Reply = Callable[[Stopped], Sequence[Planned]]


@dataclass(frozen=True, slots=True)
class CommandKept:
    """What a command has done, and the deliveries of its answer."""

    stopped: Stopped
    deliveries: tuple[Delivery, ...]
    # The session whose turn goes on, and whether it is a turn of the background.
    resumed: tuple[str, bool] | None = None
    # What is left to do behind the answer. It raises nothing, and is given up when the service ends.
    afterwards: Callable[[], Awaitable[None]] | None = None
