"""A due time that runs: kept with the message that its turn answers and with the job's next due time, all at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from agent.message import Provenance
from bot.clock import Clock
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.schedules import HEARTBEAT, Fired, Firing, Job
from bot.runs.lanes import Lanes
from bot.store.codec import ORIGINS
from bot.store.store import Store
from channels.message import InboundKind, InboundMessage, Origin
from heartbeat.gate import Cause
from heartbeat.schedule import Due

log = structlog.get_logger()

# Why due times are passed over for which nobody was there.
MISSED = "missed"


@dataclass(eq=False, slots=True)
class Starter:
    """Starts what runs by itself. most: runs of jobs at once."""

    store: Store
    clock: Clock
    lanes: Lanes
    most: int

    async def start(
        self,
        job: Job,
        firings: Sequence[Firing],
        next_at: int | None,
        session_key: str,
        origin: Origin,
        text: str,
        origins: tuple[Provenance, ...],
    ) -> Fired:
        """Let the first of the firings run in a session, and keep the others; see `Schedules.fire`. text: what it is
        asked, in the name of origin. origins: where that text came from. Raises StoreUnavailable."""
        first = replace(firings[0], turn_id=self.clock.new_id())
        message = message_of(job, origin, text, first.due_at, self.clock.now())
        message = replace(message, origins=ORIGINS.dump(origins)) if origins else message
        run = AcceptedMessage(message=message, session_key=session_key, turn_id=first.turn_id)
        most = None if job.job_id == HEARTBEAT else self.most
        fired = await self.store.schedules.fire(job, (first, *firings[1:]), next_at, run, most)
        if fired == "fired":
            log.info("fired", job=job.job_id, cause=first.cause, turn=first.turn_id, session=session_key)
            self.lanes.wake(session_key, background=True)
        return fired


def message_of(job: Job, origin: Origin, text: str, due_at: int, now: int) -> InboundMessage:
    """What the run of a due time answers."""
    return InboundMessage(
        origin=origin,
        event_key=f"t:{job.job_id}:{due_at}",
        kind=InboundKind.WAKE if job.job_id == HEARTBEAT else InboundKind.JOB,
        text=text,
        sent_at=now,
    )


def firings_of(job: Job, found: Due) -> tuple[Firing, ...]:
    """The due time to decide about, and those behind it, as one firing, where nobody was there for them."""
    cause: Cause = "late" if found.late else "due"
    one = Firing(job_id=job.job_id, due_at=found.due_at, cause=cause, session_key=job.session_key)
    if found.skipped is None:
        return (one,)
    first, last = found.skipped
    return one, Firing(job_id=job.job_id, due_at=first, until=last, cause="late", reason=MISSED)
