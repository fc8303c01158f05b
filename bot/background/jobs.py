"""Reminders and jobs as owners order them, in a chat or by the model: every answer is words for both."""

import contextlib
import hashlib
from base64 import b32encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent.message import Provenance, merged
from bot import wording
from bot.background.dispatcher import Dispatcher
from bot.background.views import receipt
from bot.people.people import chat_of
from bot.persistence.schedules import HEARTBEAT, Job
from bot.runs import freeze_words
from channels.message import ChatKind, Origin, Place
from heartbeat.schedule import At, Cron, Schedule, ScheduleError, describe, next_after, parse, upcoming
from heartbeat.times import zone_named

# How many jobs there may be, the heartbeat among them.
MOST = 101
_ECHOED = 3
_HISTORY = 10
_ID = 6
_NAME = 80
_PROMPT = 8000
# Why one does not run now.
_KEPT_BACK = {
    "full": "As many jobs run as may at the same time. Try again when one has ended.",
    "running": "It is running already.",
    "changed": "It has just been changed; look at it again.",
    "frozen": freeze_words.BEATS,
}
# What is done with a job that is there; `list` shows all.
Order = Literal["list", "pause", "resume", "run", "delete", "history"]


class JobError(Exception):
    """Nothing was done: a sentence for people that says why, and what to do."""


@dataclass(eq=False)
class Jobs:
    """Jobs of a service."""

    dispatcher: Dispatcher

    async def add(
        self,
        key: str,
        origin: Origin,
        prompt: str,
        when: Mapping[str, str],
        *,
        name: str = "",
        own: bool = True,
        origins: tuple[Provenance, ...] = (),
    ) -> str:
        """Schedule a job that answers where it is asked for; says when it is due, in local time.

        key: who orders it and where, different for each order: the same one again adds no second job. when: at, every,
        cron and zone, see `heartbeat.schedule.parse`. own: it runs in a session of its own. origins: where
        prompt and name came from. Raises JobError, StoreUnavailable.
        """
        store, now = self.dispatcher.store, self.dispatcher.clock.now()
        job_id = b32encode(hashlib.sha256(key.encode()).digest()).decode().lower()[:_ID]
        jobs = await self._all()
        job = next((one for one in jobs if one.job_id == job_id), None)
        if job is None:
            try:
                schedule = parse(**when, now=now)
            except ScheduleError as error:
                raise JobError(str(error)) from None
            job = replace(self._job(job_id, origin, schedule, name, prompt, own), origins=origins)
            if not await store.schedules.put(job, MOST):
                raise JobError(f"There are {len(jobs)} jobs, as many as may be. Delete one first.")
            self.dispatcher.hurry()
        assert job.next_at is not None
        times = (job.next_at, *upcoming(job.schedule, job.next_at, _ECHOED - 1))
        return f"Scheduled {self._named(job)}. Due: {', '.join(self._at(job, time) for time in times)}."

    def _job(self, job_id: str, origin: Origin, schedule: Schedule, name: str, prompt: str, own: bool) -> Job:
        """Raises JobError."""
        place, prompt = origin.place, prompt.strip()
        if not prompt:
            raise JobError("Say what is to be done then: the prompt is empty.")
        if len(prompt) > _PROMPT or len(name) > _NAME:
            raise JobError(f"A prompt has at most {_PROMPT} characters, a name {_NAME}.")
        if place.kind is ChatKind.API or not self.dispatcher.conversations.may_speak(origin):
            raise JobError("What a job says could not be delivered here. Schedule it where it is to answer.")
        return Job(
            job_id=job_id,
            name=wording.one_line(name.strip() or prompt) or job_id,
            schedule=schedule,
            prompt=prompt,
            origin=replace(origin, message_id=""),
            session_key=self.dispatcher.conversations.session_of(origin),
            own=own and place.kind is not ChatKind.CONSOLE,  # terminals read the events of one session
            next_at=next_after(schedule, self.dispatcher.clock.now()),
        )

    async def carry_out(self, order: Order, which: str = "", here: Place | None = None) -> str:
        """Do something with a job and say it. which: its id, the beginning of that, or its name; nothing for `list`.

        here: the place to whose jobs this is limited, because others than owners read what is said there. Raises
        JobError, StoreUnavailable.
        """
        jobs, schedules = await self._all(), self.dispatcher.store.schedules
        if here is not None:
            jobs = [one for one in jobs if one.origin and chat_of(one.origin.place) == chat_of(here)]
        if order == "list":
            return "\n".join(f"- {self._named(one)}; {self._state(one)}" for one in jobs) or "Nothing is scheduled."
        job = _found(jobs, which)
        if order == "history":
            found = await schedules.firings(job.job_id, _HISTORY)
            lines = [f"- {receipt(one).words(lambda at: self._at(job, at))}" for one in found]
            return "\n".join((f"{self._named(job)}; {self._state(job)}", *lines))
        if order == "run":
            return await self._run(job)
        if order == "delete":
            await schedules.delete(job.job_id)
            return f"Deleted {self._named(job)}. What has begun of it goes on."
        next_at = job.next_at
        if order == "resume":
            next_at = next_after(job.schedule, self.dispatcher.clock.now())
            if next_at is None:
                raise JobError(f"The time of {self._named(job)} has passed. `run` does it now; `delete` forgets it.")
        await schedules.pause(job.job_id, order == "pause", next_at)
        self.dispatcher.hurry()
        changed = replace(job, paused=order == "pause", next_at=next_at, failures=0)
        return f"{self._named(job)}: {self._state(changed)}."

    def limit(self, session_key: str, place: Place, *, by_owners: bool) -> Place | None:
        """Return the place to whose jobs a session is limited that answers there; None: owners alone read it."""
        room = self.dispatcher.beats.rooms.of(session_key)
        return None if room.sees_all(place, by_owners=by_owners) else place

    async def origins(self) -> tuple[Provenance, ...]:
        """Where the names and prompts of all jobs came from. Raises StoreUnavailable."""
        return merged(one for job in await self._all() for one in job.origins)

    async def _run(self, job: Job) -> str:
        fired = await self.dispatcher.run_now(job)
        if fired != "fired":
            raise JobError(_KEPT_BACK.get(fired) or f"It cannot run: {fired}.")
        where = " in a session of its own" if job.own else ""
        return f"{self._named(job)} runs now{where}; its due times stay as they are."

    async def _all(self) -> Sequence[Job]:
        return [job for job in await self.dispatcher.store.schedules.jobs() if job.job_id != HEARTBEAT]

    def _named(self, job: Job) -> str:
        rhythm = "" if isinstance(job.schedule, At) else f" ({describe(job.schedule)})"
        return f"`{job.job_id}` {job.name}{rhythm}"

    def _state(self, job: Job) -> str:
        failed = f"failed {job.failures} time{'s' * (job.failures > 1)} in a row, " if job.failures else ""
        if job.paused:
            return f"{failed}paused"
        if job.next_at is None:
            return f"{failed}not tried again" if failed else "its time has come"
        try:
            later = job.next_at if job.next_at >= job.retry_at else next_after(job.schedule, job.retry_at - 1)
            return f"{failed}next {self._at(job, later or job.next_at)}"
        except ValueError as error:  # its zone is gone from this machine
            return f"{failed}not possible: {error}"

    def _at(self, job: Job, at: int) -> str:
        """A moment on the clock that the job goes by."""
        zone = None
        with contextlib.suppress(ValueError):  # gone from this machine, whose own zone is shown then
            zone = zone_named(job.schedule.zone) if isinstance(job.schedule, Cron) else None
        return self.dispatcher.clock.stamp(at, zone)


def _found(jobs: Sequence[Job], which: str) -> Job:
    """The one that is meant. Raises JobError."""
    wanted = which.strip("` ").casefold()
    exact = [job for job in jobs if wanted in (job.job_id, job.name.casefold())]
    found = exact or [job for job in jobs if wanted and job.job_id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    ids = ", ".join(f"`{job.job_id}` {job.name}" for job in found or jobs) or "none"
    problem = "Several jobs have that name" if found else f"There is no job `{wanted}`" if wanted else "Say which job"
    raise JobError(f"{problem}. By id: {ids}.")
