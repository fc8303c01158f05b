"""What is due becomes a turn: each due time of a job once, in the transaction that says when the next one is.

`tick` does all there is to do at a moment; `heartbeat/scheduler` calls it when the next one has come.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from agent.tools.background import Running
from bot import wording
from bot.background.beats import Beats
from bot.background.firing import Starter, firings_of, message_of
from bot.clock import Clock
from bot.outbox import Outbox
from bot.people.conversations import Conversations
from bot.persistence.errors import StoreUnavailable
from bot.persistence.recovery import Leftover
from bot.persistence.schedules import HEARTBEAT, Fired, Firing, Job
from bot.store.store import Store
from bot.store.writer import once_available
from channels.session_key import THREAD, job_key, root_of
from channels.sources import sentence
from heartbeat.checklist import job_prompt
from heartbeat.schedule import At, Due, ScheduleError, due
from heartbeat.scheduler import LONGEST

log = structlog.get_logger()

# Why a due time of a job is passed over.
RUNNING, FAILED, NO_OWNER, NOT_LET_IN = "still running", "failed before", "no owner", "not let in"
# Seconds until a job is tried again for which there is no place.
_NO_PLACE = 2.0
# The same while the store cannot write.
_PAUSE = 1.0


@dataclass(eq=False)
class Dispatcher:
    """hurry: jobs have changed, look at once; set once somebody looks."""

    store: Store
    clock: Clock
    starter: Starter
    outbox: Outbox
    conversations: Conversations
    beats: Beats
    hurry: Callable[[], None] = lambda: None

    async def tick(self) -> float:
        """Fire what is due; returns how many seconds later there is something to do again, at most."""
        now = self.clock.now()
        jobs, later = await self.store.schedules.due(now)
        waits = [LONGEST if later is None else (later - now) / 1000]
        for job in jobs:
            assert job.next_at is not None
            try:
                found = due(job.schedule, job.next_at, now)
            except ScheduleError as error:  # its zone is gone from this machine: the others go on
                log.error("a job cannot be scheduled", job=job.job_id, reason=str(error))
                continue
            if found is None:
                continue
            if job.job_id == HEARTBEAT:
                waits.append(await self.beats.fire(job, found))
            elif await self._fire(job, found) == "full":
                waits.append(_NO_PLACE)
            else:
                waits.append(0 if found.next_at is None else (found.next_at - now) / 1000)
        waits.append(await self.beats.again())
        return max(0.0, min(waits))

    async def command_over(self, one: Running) -> None:
        """A command in the background has ended: that is kept as soon as the store can, and told where it is news, with
        a beat unless a person ended it."""
        told, bears = one.told(), await once_available(one.traced.bears, lambda _: self.clock.sleep(_PAUSE))
        over = Leftover(one.process.pid, one.started, one.session_key, one.key, told=told, origins=bears)
        await once_available(lambda: self.store.recovery.forget((over,)), lambda _: self.clock.sleep(_PAUSE))
        if over.told and not one.wanted.done():
            with contextlib.suppress(StoreUnavailable):  # then the next turn sees it
                await self.beats.begin("wake", root_of(one.session_key))
                self.hurry()

    async def run_now(self, job: Job) -> Fired | str:
        """Let a job run because a person asks for it; its due times stay as they are. Returns else what is against it.

        Raises StoreUnavailable.
        """
        if reason := self._against(job, max(job.retry_at, self.clock.now())):
            return reason
        firing = Firing(job_id=job.job_id, due_at=self.clock.now(), cause="now", session_key=job.session_key)
        return await self._run(job, (firing,), job.next_at)

    async def _fire(self, job: Job, found: Due) -> Fired:
        firing, *missed = firings_of(job, found)
        reason = self._against(job, found.due_at)
        if not reason:
            fired = await self._run(job, (firing, *missed), found.next_at)
            if fired == "running" and isinstance(job.schedule, At):  # it comes when that is over
                return "full"
            if fired != "running":
                return fired
            reason = RUNNING
        log.info("job passed over", job=job.job_id, reason=reason)
        if found.next_at is None:  # it will not come any more
            told = wording.job_passed_over(job.name, reason)
            await self.outbox.tell_owner(sentence("job", job.job_id, found.due_at), told)
        return await self.store.schedules.fire(job, (replace(firing, reason=reason), *missed), found.next_at)

    def _against(self, job: Job, due_at: int) -> str:
        """Why a due time of a job is passed over; empty: nothing speaks against it."""
        if due_at < job.retry_at:
            return FAILED
        if job.origin is None or not self.conversations.people.is_owner(
            message_of(job, job.origin, "", due_at, due_at)
        ):
            return NO_OWNER
        return "" if self.conversations.reaches(job.origin) else NOT_LET_IN

    async def _run(self, job: Job, firings: Sequence[Firing], next_at: int | None) -> Fired:
        assert job.origin is not None
        first = firings[0]
        prompt = job_prompt(job.name, job.prompt, self.clock.stamp(first.due_at) if first.cause == "late" else None)
        read_in = job.session_key.partition(THREAD)[0]
        if not read_in or self.beats.rooms.of(read_in).owned:
            read_in = ""
        session_key = job_key(job.job_id, read_in) if job.own else job.session_key
        return await self.starter.start(job, firings, next_at, session_key, job.origin, prompt, job.origins)
