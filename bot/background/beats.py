"""Beats of the heartbeat: where, whether and with which words; and what happens outside, for the next turn to see.

A beat is a turn in its session's lane. What speaks against it is found out before anything is spent, and each due time
leaves a receipt. Whether what it says is shown is decided in the reply path, see `bot/runs/journal.py`.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Literal

from agent.errors import ToolError
from agent.file_names import HEARTBEAT as FILE
from agent.message import Provenance, Usage
from agent.tools.workspace import WorkspaceError
from agent.workspace_files import read
from bot import wording
from bot.background.firing import Starter, firings_of
from bot.clock import Clock
from bot.compose import shortened
from bot.config.background import Heartbeat
from bot.outbox import Outbox
from bot.people.access import LOCAL, OWNER, PERSON
from bot.people.conversations import Conversations
from bot.persistence.schedules import HEARTBEAT, BeatFacts, Fired, Firing, Job
from bot.runs import freeze_words
from bot.runs.rooms import Rooms
from bot.speech import spoken
from bot.store.store import Store
from channels.actions import ActionFailed
from channels.console.adapter import PLACE as CONSOLE
from channels.message import ChatKind, Origin, Place
from channels.session_key import heartbeat_key, parse
from channels.sources import sentence
from heartbeat import checklist
from heartbeat.checklist import Checklist
from heartbeat.gate import Cause, Facts, Skip, due_tasks, may_say_again, skip
from heartbeat.schedule import Due, Every, next_after
from heartbeat.scheduler import LONGEST
from heartbeat.times import ActiveHours, day_start, zone_named

# Where a beat answers that is told nobody.
NOWHERE = Place(channel="http", account="", chat="heartbeat", kind=ChatKind.API)
# Seconds for which a platform may look for a conversation by its name.
_PATIENCE = 5.0
# Seconds until a beat is tried again whose session is at work.
RETRY = 15.0
# Milliseconds for which an alert that nobody could read is kept.
_WEEK = 7 * 24 * 3600 * 1000
# Milliseconds behind the beginning of a day that lie in the next one, however long it is.
_DAY_AND_HALF = 36 * 3600 * 1000
# Tasks of one beat, the others come with the next; characters of what one of them says, and of the notes.
_MOST_TASKS, _TASK_LIMIT, _NOTES_LIMIT = 20, 1000, 12_000
# The default of `every`, whose phase is kept while that is 0.
_HALF_AN_HOUR = 1_800_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A beat as it would be now. skip: why it does not come. prompt: what the model is asked, by its user message.

    session_key: where it runs; told: which session hears of what it says. tasks: names of those that it does.
    origins: where the text of HEARTBEAT.md came from.
    """

    facts: Facts
    skip: Skip | None
    prompt: str
    session_key: str
    origin: Origin
    told: str
    tasks: tuple[str, ...]
    origins: tuple[Provenance, ...]


@dataclass(eq=False)
class Beats:
    """cost: of tokens of the model that beats, in US dollars; None where no price is known. terminal_is_open: whether
    one is."""

    store: Store
    clock: Clock
    starter: Starter
    outbox: Outbox
    conversations: Conversations
    rooms: Rooms
    settings: Heartbeat
    cost: Callable[[Usage], float | None]
    terminal_is_open: Callable[[], bool]
    _retry_at: int = field(default=0, init=False)
    _wanted: dict[str, None] = field(default_factory=dict, init=False)

    async def set_up(self) -> None:
        """Make the job of the heartbeat, or give it another interval: its phase stays. Raises StoreUnavailable."""
        now, every = self.clock.now(), round(self.settings.every.total_seconds() * 1000)
        old = await self.job()
        anchor = old.schedule.anchor if old and isinstance(old.schedule, Every) else now
        schedule = Every(every or _HALF_AN_HOUR, anchor)
        next_at = next_after(schedule, now)
        if old and old.next_at is not None and (old.next_at <= now or old.schedule == schedule):
            next_at = min(old.next_at, next_at or 0)  # what was missed is due; the clock may have been set back
        job = Job(
            job_id=HEARTBEAT,
            name=HEARTBEAT,
            schedule=schedule,
            prompt="",
            origin=None,
            session_key="",
            own=self.settings.isolated,
            next_at=next_at if every else None,
        )
        if old is not None and (old.schedule, old.next_at) == (job.schedule, job.next_at):
            return
        await self.store.schedules.put(job)

    async def job(self) -> Job | None:
        """The heartbeat as it is kept."""
        return next((job for job in await self.store.schedules.jobs() if job.job_id == HEARTBEAT), None)

    async def switch(self, on: bool) -> None:
        """Let it rest, or go on with its next due time; also over a restart."""
        if (job := await self.job()) is not None:
            later = next_after(job.schedule, self.clock.now()) if self.settings.every else None
            await self.store.schedules.pause(HEARTBEAT, not on, later)

    async def wake(self, text: str, session_key: str = "", *, now: bool = False) -> str | None:
        """Tell a session of an event: its next turn sees it, which is a beat at once with `now`. Returns that session;
        None: there is none yet. Raises StoreUnavailable when nothing was kept."""
        told = session_key or (await self._session())[0]
        if told is None:
            return None
        await self.store.schedules.tell(told, self.clock.new_id(), text)
        if now:
            await self.begin("wake", told)
        return told

    async def begin(self, cause: Literal["wake", "now"], session_key: str = "") -> Beat:
        """Beat now, besides its due times. One that an event asks for while the session is at work comes behind that.

        Returns the beat; it has begun unless something keeps it.
        """
        job, beat = await self.job(), await self.look(cause, session_key)
        if beat.skip is None:
            firing = Firing(job_id=HEARTBEAT, due_at=self.clock.now(), cause=cause)
            fired = await self._start(job, beat, (firing,), job.next_at) if job else "changed"
            if fired != "fired":
                words = freeze_words.BEATS if fired == "frozen" else wording.BEATS_ALREADY
                beat = replace(beat, skip=Skip("busy", words))
        if beat.skip is not None and beat.skip.reason == "busy" and cause == "wake":
            self._wanted[beat.facts.session], self._retry_at = None, self.clock.now() + int(RETRY * 1000)
        if cause == "wake" and self._is_owners(beat.facts.session):
            await self._tell_of_rest(beat)
        return beat

    async def again(self) -> float:
        """Begin the beat that an event asked for when that was not possible, unless another turn has seen it meanwhile.

        Returns seconds until there is something to do.
        """
        if not self._wanted:
            return LONGEST
        if (wait := self._retry_at - self.clock.now()) <= 0:
            wanted, self._wanted = self._wanted, {}
            for session_key in wanted:
                if (await self._facts(session_key, session_key)).pending:
                    await self.begin("wake", session_key)
            return RETRY
        return wait / 1000

    async def fire(self, job: Job, found: Due) -> float:
        """A due time has come. Returns seconds until there is something to do again."""
        now = self.clock.now()
        if now < self._retry_at:
            return (self._retry_at - now) / 1000
        firing, *missed = firings_of(job, found)
        beat = await self.look(firing.cause, due_at=found.due_at)
        await self._say_again(beat)
        if beat.skip is None:
            busy = await self._start(job, beat, (firing, *missed), found.next_at) == "running"
        else:
            reason = beat.skip.reason
            busy = reason == "busy"
            if not busy:
                await self.store.schedules.fire(job, (replace(firing, reason=reason), *missed), found.next_at)
            await self._tell_of_rest(beat)
        if busy:
            self._retry_at = now + int(RETRY * 1000)
            return RETRY
        return 0 if found.next_at is None else max(0, found.next_at - now) / 1000

    async def look(self, cause: Cause, session_key: str = "", due_at: int = 0) -> Beat:
        """What a beat would be now, without any effect but that an owner is told, once, what is wrong in its file."""
        now = self.clock.now()
        main, place = await self._session()
        of = session_key or main or ""
        runs_in = str(heartbeat_key(of)) if of and self.settings.isolated else of
        kept = await self._facts(of, runs_in)
        origin, told, unknown = await self._target(of, place if place and of == main else kept.place)
        mine = self._is_owners(of)
        listed, bears = await self._checklist() if mine else (None, ())
        budget = self.settings.daily_budget
        # a conversation of others has the budget to itself
        spent = (one for key, one in kept.spent.items() if key == of or (mine and self._is_owners(key)))
        used = sum(spent, Usage())
        job = await self.job()
        began = job.schedule.anchor if job and isinstance(job.schedule, Every) else now
        hours = self.settings.active_hours
        facts = Facts(
            enabled=bool(self.settings.every) and not (job and job.paused),
            cause=cause,
            now=now,
            session=of,
            last_person=kept.last_person or began,
            errors=kept.errors,
            active_hours=ActiveHours(hours.start, hours.end, self._zone()),
            busy=kept.busy,
            checklist=listed,
            own_prompt=self.settings.prompt != checklist.DEFAULT,
            task_times=kept.tasks,
            events=kept.pending,
            shown=origin is not None and self._shown(origin),
            spent=used.input + used.output if budget.unit == "tokens" else self.cost(used) or 0.0,
            budget=budget,
        )
        skipped = skip(facts)
        if skipped is not None and skipped.reason == "not-shown" and unknown:
            skipped = Skip("not-shown", unknown)
        if skipped is not None and skipped.reason == "empty" and not mine:
            skipped = Skip("empty", wording.CHECKLIST_NOT_HERE)
        if skipped is not None and skipped.reason == "budget":
            tomorrow = self.clock.stamp(day_start(self._today() + _DAY_AND_HALF, self._zone()), self._zone())
            skipped = Skip("budget", wording.beats_rest(skipped.words, tomorrow))
        tasks = due_tasks(listed, kept.tasks, now)[:_MOST_TASKS] if listed else ()
        tasks = tuple(replace(task, prompt=shortened(task.prompt, _TASK_LIMIT)) for task in tasks)
        notes = shortened(listed.notes, _NOTES_LIMIT) if listed else ""
        late = self.clock.stamp(due_at) if cause == "late" else None
        return Beat(
            facts=facts,
            skip=skipped,
            prompt=checklist.compose(self.settings.prompt, tasks, notes, late),
            session_key=runs_in,
            origin=origin or Origin(place=NOWHERE),
            told=told,
            tasks=tuple(task.name for task in tasks),
            origins=bears,
        )

    async def _start(self, job: Job, beat: Beat, firings: Sequence[Firing], next_at: int | None) -> Fired:
        firings = (replace(firings[0], session_key=beat.told, tasks=beat.tasks), *firings[1:])
        return await self.starter.start(job, firings, next_at, beat.session_key, beat.origin, beat.prompt, beat.origins)

    async def _session(self) -> tuple[str | None, Place | None]:
        """The session of the heartbeat: that of the configuration, else the one in which an owner wrote last; and where
        that was, for several people may share it. A place where nobody is reached at present comes behind all others:
        a terminal shows what it has missed when it opens."""
        own = self.settings.session
        wrote = await self.store.schedules.owner_places(self.conversations.people.owners)
        found = [(key, place) for key, place in wrote if own in (None, key)]
        return next((one for one in found if self._reaches(*one)), found[0] if found else (own, None))

    def _reaches(self, of: str, place: Place) -> bool:
        if place.kind is ChatKind.CONSOLE:
            return self.terminal_is_open()
        return self.conversations.reaches(self._in_name_of(of, Origin(place=place)))

    def _is_owners(self, of: str) -> bool:
        """Whether the heartbeat of a session is that of the owners: nobody else writes there, or they have named it."""
        return of in ("", self.settings.session) or self.rooms.of(of).owned

    def _today(self) -> int:
        return day_start(self.clock.now(), self._zone())

    async def _facts(self, of: str, runs_in: str) -> BeatFacts:
        return await self.store.schedules.beat_facts(of, runs_in, self._today())

    async def _target(self, of: str, place: Place | None) -> tuple[Origin | None, str, str]:
        """Where a beat of a session answers, in whose name, and which session is told; no place, and why not.

        place: where the session was last, as far as its owner is concerned.
        """
        target = self.settings.target
        if target == "none":
            return self._in_name_of(of, Origin(place=NOWHERE)), "", ""
        if target == "last":
            return (self._in_name_of(of, Origin(place=place)) if place else None), of, ""
        try:
            async with asyncio.timeout(_PATIENCE):
                origin = await self.conversations.named(target)
        except (ToolError, ActionFailed, TimeoutError) as error:
            return None, "", f"The target {target} cannot be used. {error or 'The platform does not answer.'}"
        return self._in_name_of(of, origin), self.conversations.session_of(origin), ""

    def _in_name_of(self, of: str, origin: Origin) -> Origin:
        """Whose tools a beat has: those of the person whose direct session it is, else of an owner on that channel."""
        place, key, owners = origin.place, parse(of), self.conversations.people.owners
        own = key.id if key.kind == "direct" and key.channel == place.channel else ""
        if key.channel not in ("", CONSOLE.channel) and (key.kind != "direct" or (key.channel, key.id) not in owners):
            sender = PERSON if place.kind in LOCAL else own  # of a group, or of somebody who is no owner
        elif place.kind in LOCAL:
            sender = OWNER
        else:
            sender = own or next((sender for channel, sender in owners if channel == place.channel), "")
        return replace(origin, sender=sender, message_id="")

    def _shown(self, origin: Origin) -> bool:
        """Whether anything that a beat says could be read there."""
        place, accounts = origin.place, self.conversations.accounts
        if place.kind in LOCAL:
            return True
        account = accounts.of(place) or accounts.like(place)
        if account is None:
            return False
        shows = self.settings.shown_by(account.section)
        if (shows.direct == "block" and place.kind is ChatKind.DIRECT) or not (shows.show_alerts or shows.show_ok):
            return False
        return self.conversations.reaches(origin)

    async def _checklist(self) -> tuple[Checklist | None, tuple[Provenance, ...]]:
        """HEARTBEAT.md as it is now, and where its text came from; an owner is told once of each mistake in it."""
        try:
            file = await asyncio.to_thread(read, self.rooms.root, FILE)
        except WorkspaceError as error:
            await self._complain(str(error))
            return None, ()
        if file is None or file.state is None:
            return None, ()
        (origins,) = await self.rooms.lineage.of([file.state])
        found = checklist.read(file.text)
        if found.mistakes:
            await self._complain(wording.mistakes_in(FILE, found.mistakes[:5]))
        return found, origins or ()

    async def _complain(self, words: str) -> None:
        key = hashlib.sha256(words.encode()).hexdigest()[:16]
        await self.outbox.tell_owner(sentence("heartbeat", "file", key), words)

    async def _tell_of_rest(self, beat: Beat) -> None:
        """An owner is told, once, of what ends the beats for a while."""
        since = {"idle": beat.facts.last_person, "errors": beat.facts.last_person, "budget": self._today()}
        if beat.skip is not None and beat.skip.reason in since:
            source = sentence("heartbeat", beat.skip.reason, since[beat.skip.reason])
            await self.outbox.tell_owner(source, beat.skip.words)

    async def _say_again(self, beat: Beat) -> None:
        """What beats have said and nobody could read has another chance, once, where this one would say it."""
        place = beat.origin.place
        account = self.conversations.accounts.of(place)
        if not may_say_again(beat.facts) or account is None or self.outbox.serving(place) is None:
            return
        if not self.settings.shown_by(account.section).show_alerts:
            return
        lost = await self.store.schedules.lost_alerts(beat.facts.now - _WEEK)
        if not lost:
            return
        text = wording.kept_alert(self.clock.stamp(lost[0].at), spoken("\n\n".join(one.text for one in lost)))
        blocks = self.outbox.notice(sentence("said-again", lost[0].turn_id), text, place.channel, ours=False)
        self.outbox.send(await self.store.schedules.say_again(lost, place, blocks, beat.told))

    def _zone(self) -> tzinfo | None:
        return zone_named(self.settings.active_hours.timezone) or self.clock.zone
