"""What runs by itself, as it is kept: jobs, the heartbeat among them, and their due times.

Each due time of a job lies in exactly one firing, which ran, ran late, or was skipped for a reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.message import Usage
from channels.message import Origin, Place
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
