"""Values of the store about what runs by itself: jobs, of which the heartbeat is one, and their due runs.

Each due time of a job belongs to exactly one Firing: a run, a late run, or a stretch of skipped due times.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent.message import Provenance, Usage
from channels.message import Origin, Place
from heartbeat.gate import Cause
from heartbeat.schedule import Schedule

# The job that the configuration makes.
HEARTBEAT = "heartbeat"
# The beginning of the key of each event that a session is told of (`bot/store/edits.py`).
TOLD = "w:"

# The outcome of a due run, empty until it has ended. said: the ledger holds a message of it.
FiringOutcome = Literal["", "said", "quiet", "failed", "stopped"]
# Whether due runs were stored (fired). Else the job has been changed since it was read (changed), a run of it is under
# way (running), as many runs of jobs as are allowed are under way (full), or an owner has frozen them (frozen).
Fired = Literal["fired", "full", "running", "changed", "frozen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something that runs by itself. Times are in milliseconds."""

    job_id: str
    name: str
    schedule: Schedule
    prompt: str
    # Who asked for the job, and where; the job answers there. None for the heartbeat.
    origin: Origin | None
    # The session of that conversation.
    session_key: str
    # The job runs in a session of its own.
    own: bool
    # The next due time; None if there is none.
    next_at: int | None
    paused: bool = False
    # How many of the newest runs failed in a row. Due times before retry_at are skipped because of them.
    failures: int = 0
    retry_at: int = 0
    # Where name and prompt came from, if not from an owner alone.
    origins: tuple[Provenance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """A due run of a job, or a stretch of skipped due times."""

    job_id: str
    # The due time, or the first of the stretch, in milliseconds.
    due_at: int
    cause: Cause
    # The end of the stretch, in milliseconds; 0: due_at.
    until: int = 0
    # Why the due time was skipped, or why the run failed.
    reason: str = ""
    # Empty if the due time was skipped.
    turn_id: str = ""
    # The session that is told what the run says, if the run is in another session.
    session_key: str = ""
    # The names of the heartbeat's tasks that the run does.
    tasks: tuple[str, ...] = ()
    outcome: FiringOutcome = ""
    # The usage of the turn.
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatFacts:
    """The facts by which the gate of the heartbeat decides about a beat. Times are in milliseconds."""

    # Where people used the session last; None if they never did.
    place: Place | None
    # A turn runs or a message waits in the session.
    busy: bool
    # The number of events that the next turn of the session is told of.
    pending: int
    # The due time of the last beat that did a task, by the name of the task.
    tasks: Mapping[str, int]
    # The usage of beats since the time asked for, by session key.
    spent: Mapping[str, Usage]
    # When a person wrote last, anywhere; 0: never.
    last_person: int
    # How many beats failed for the model's key or account since last_person and the last beat that did not fail.
    errors: int


@dataclass(frozen=True, slots=True)
class LostAlert:
    """The text of a beat that was not delivered."""

    turn_id: str
    # The session in which the beat ran.
    session_key: str
    text: str
    # When the first delivery of the text was planned, in milliseconds.
    at: int
