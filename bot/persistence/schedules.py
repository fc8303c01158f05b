"""What runs by itself, as it is kept: jobs, the heartbeat among them, and their due times.

Each due time of a job lies in exactly one firing, which ran, ran late, or was skipped for a reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agent.message import Usage
from bot.persistence.values import AcceptedMessage, Changes
from channels.message import Origin, Place
from channels.outgoing import Delivery, Planned
from heartbeat.gate import Cause
from heartbeat.schedule import Schedule

# The job that the configuration makes.
HEARTBEAT = "heartbeat"
# What the key of an event begins with that is told to a session; see `Schedules.tell`.
TOLD = "w:"

# What became of a run, empty until it has ended. said: there is something of it in the ledger.
FiringOutcome = Literal["", "said", "quiet", "failed", "stopped"]
# Whether due times were kept: else the job is not as it was given any more (changed), a run of it is under way
# (running), or as many of jobs as may be are (full).
Fired = Literal["fired", "full", "running", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something that runs by itself. Moments in milliseconds.

    origin: who asked for it and where, which is where it answers; None for the heartbeat. session_key: of the
    conversation there. own: it runs in a session of its own. next_at: None: never again. failures: of its newest runs,
    without one that did not fail; due times before retry_at are passed over because of them.
    """

    job_id: str
    name: str
    schedule: Schedule
    prompt: str
    origin: Origin | None
    session_key: str
    own: bool
    next_at: int | None
    paused: bool = False
    failures: int = 0
    retry_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A due time of a job, or with `until` a stretch of them that nobody was there for.

    reason: why it was skipped; of what ran, why it failed. turn_id: empty: it was skipped. session_key: which is told
    what the run says, if that runs in another one. tasks: names of what is done by it. usage: of its turn.
    """

    job_id: str
    due_at: int
    cause: Cause
    until: int = 0
    reason: str = ""
    turn_id: str = ""
    session_key: str = ""
    tasks: tuple[str, ...] = ()
    outcome: FiringOutcome = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatFacts:
    """What is asked of the store before a beat.

    place: where people used the session last, None when they never did. busy: something runs or waits there. pending:
    events that its next turn is told of. tasks: when each was done last, by the due time of its beat. spent: by the
    beats of each session since the moment asked for. last_person: when somebody wrote last, anywhere; 0: never. errors:
    beats that failed for the model's key or account since then, and since one that did not fail.
    """

    place: Place | None
    busy: bool
    pending: int
    tasks: Mapping[str, int]
    spent: Mapping[str, Usage]
    last_person: int
    errors: int


@dataclass(frozen=True, slots=True)
class LostAlert:
    """What a beat has said and nobody could read. session_key: where it ran; at: when it was planned."""

    turn_id: str
    session_key: str
    text: str
    at: int


class Schedules(Protocol):
    """Jobs and their firings."""

    async def jobs(self) -> Sequence[Job]:
        """All of them, oldest first."""

    async def due(self, now: int) -> tuple[Sequence[Job], int | None]:
        """Jobs that are due, the longest first; and when the next of the others is."""

    async def put(self, job: Job, most: int | None = None) -> bool:
        """Add a job, or replace the schedule of the one that has its id. False: there are as many others already."""

    async def pause(self, job_id: str, paused: bool, next_at: int | None) -> None:
        """Let a job rest, or go on at next_at with its failures forgotten."""

    async def delete(self, job_id: str) -> None:
        """Forget a job; what has begun of it goes on."""

    async def fire(
        self,
        job: Job,
        firings: Sequence[Firing],
        next_at: int | None,
        run: AcceptedMessage | None = None,
        most: int | None = None,
    ) -> Fired:
        """Keep what became of due times of a job, and its next one; with run, as the message that a turn answers.

        The turn has the id that the message and its firing name. most: runs of jobs at once. What is skipped for the
        reason for which the one before was lengthens that.
        """

    async def firings(self, job_id: str, limit: int) -> Sequence[Firing]:
        """The newest of a job, newest first."""

    async def firing_of(self, turn_id: str) -> tuple[Firing, Job | None] | None:
        """What a turn is the run of, and the job as it is; None for turns that people cause."""

    async def owner_places(self, owners: Sequence[tuple[str, str]]) -> Sequence[tuple[str, Place]]:
        """Where one of these wrote, directly or in the terminal, and in which session; the last such place first.
        owners: channel and id."""

    async def beat_facts(self, session_key: str, runs_in: str, since: int) -> BeatFacts:
        """What the gate asks. runs_in: the session in which the beat would run, that one or an isolated one of it.

        since: the beginning of the day whose beats count.
        """

    async def tell(self, session_key: str, key: str, text: str) -> None:
        """Tell a session of an event, with its next turn; once per key."""

    async def events(self, session_key: str) -> Changes:
        """What the next turn of a session is told of, oldest first."""

    async def last_alert(self, turn_id: str, conv_id: int, since: int) -> str:
        """What a beat has said last in a conversation since, as far as it arrived or may still, or was said again.

        turn_id: the beat that asks. One that did other tasks only does not count; one without tasks always does.
        """

    async def lost_alerts(self, since: int) -> Sequence[LostAlert]:
        """What beats have said since that was refused or expired, and was not said again; oldest first."""

    async def say_again(
        self, lost: Sequence[LostAlert], place: Place, blocks: Sequence[Planned], session_key: str
    ) -> tuple[Delivery, ...]:
        """Plan that once more, somewhere, and know it from then on as said again. session_key: that of the conversation
        there, which is told of it unless it holds it already."""
