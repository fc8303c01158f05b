"""Lanes start runs: one at a time per session, many sessions at once, in the order in which people wrote.

The queue itself is the inbox in the store. The lanes only hold a bounded number of keys of sessions that may have
something to run; sessions beyond it are read from the store later. Owners come first; guests, and beats and jobs, the
background, hold a part of the places (`agent/shares`). Sub-agents have places of their own, so that nobody waits for
them; those of guests hold at most half of these. Whose a session is, is a guess until the claim of its turn has looked.

A person does not wait for a beat or job. While one runs in a session in which somebody writes, the person's turn is
claimed beside it, and the store lets the other turn give way (`bot/store/yielding`). If a call of a tool runs then, the
run ends apart, once it has stored the result, and counts as one of the background until then.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import structlog

from agent.shares import BACKGROUND, SERVED, Places, Shares
from bot.clock import Clock
from bot.people.people import People
from bot.persistence.errors import StoreUnavailable
from bot.persistence.turns import BY_THEMSELVES, OtherPeople, Turn
from bot.runs import queues
from bot.runs.journal import RunJournal
from bot.runs.queues import SessionQueue
from bot.runs.runner import PAUSE, TurnRunner
from bot.store.store import Store
from channels.message import InboundMessage
from channels.session_key import CHILD, parent_of

log = structlog.get_logger()

# The rows of people, of the background and of sub-agents.
PEOPLE, BY_ITSELF, CHILDREN = range(3)
# What stands before the name of who holds a place, by row (`agent/shares`).
_PREFIX = ("", BACKGROUND, "")


@dataclass(eq=False, slots=True)
class RunHandle:
    """A run that is under way."""

    journal: RunJournal
    task: "asyncio.Task[None]"
    # Whether it leaves its session to people who write.
    gives_way: bool

    @property
    def turn_id(self) -> str:
        """The turn that is run."""
        return self.journal.turn.turn_id

    def stop(self) -> None:
        """Cancel the run. The caller has persisted the stop before; this makes it take effect at once."""
        self.journal.typing.stop()
        self.task.cancel()


class Lanes:
    """Starts the runs of sessions that are woken. places, children: see `allow`."""

    # Claims turns and executes them. To be set before `start`: its parts need the lanes to wake sessions.
    runner: TurnRunner

    def __init__(self, store: Store, clock: Clock, people: People, places: int, children: int = 8) -> None:
        self._store = store
        self._clock = clock
        self._people = people
        # By row, the sessions that wait for a place and the places that they wait for.
        self._ready, of_runs = (SessionQueue(), SessionQueue(), SessionQueue()), Shares(places)
        self._shares, self._helpers = (of_runs, of_runs, Shares(children, each=None)), Places(places)
        self._timers: dict[tuple[str, bool, int], asyncio.Task[None]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # Those that claim a person's turn in a session in which a beat or job runs.
        self._beside: dict[str, asyncio.Task[None]] = {}
        # The runs of beats and jobs that have given way and have not ended yet.
        self._apart: dict[asyncio.Task[None], RunHandle] = {}
        self._handles: dict[str, RunHandle] = {}
        self._open = self._draining = self._halted = False
        self._refilling: asyncio.Task[None] | None = None

    def allow(self, places: int, children: int) -> None:
        """Have at most so many runs at once, and so many of sub-agents besides; more that are under way go on."""
        self._shares[PEOPLE].places, self._shares[CHILDREN].places = places, children
        self._helpers.allow(places)

    async def start(self) -> None:
        """Start runs, at first for the sessions that wait in the store."""
        self._open = True
        await self._refill()
        self._pump()

    def wake(self, session_key: str, background: bool = False, by: InboundMessage | None = None) -> None:
        """Look for something to run in a session. Cheap, and harmless when there is nothing. by: what was written."""
        self._line_up(session_key, background, by=by)
        self._pump()

    def wake_early(self, session_key: str, by: InboundMessage) -> bool:
        """Wake a session just before its message is accepted, so that acceptance and claim share a commit.

        The claim stands behind the acceptance in the queue of the store's writer. Returns False, and does nothing, when
        the session must be woken afterwards instead: while the rows are read from the store, the message may not be
        there yet.
        """
        if not self._open or self._refilling or self._ready[PEOPLE].beyond:
            return False
        self._line_up(session_key, False, by=by)
        self._pump()
        return not self._ready[PEOPLE].beyond

    def wake_later(self, session_key: str, background: bool, ready_at: int, wait: int, by: InboundMessage) -> None:
        """Wake a session in `wait` milliseconds, when its message is ready at the time `ready_at`.

        This counts before `start` as well, because nothing else would look for the message in time. When too many
        sessions wait like this, further ones are found by `sweep`.
        """
        key = (session_key, background, ready_at)
        if not self._draining and key not in self._timers and len(self._timers) < queues.READY:
            after = self._wake_after(*key, wait, by)
            self._timers[key] = asyncio.create_task(after, name=f"lane-later-{session_key}")
            self._timers[key].add_done_callback(lambda _: self._timers.pop(key))

    def handle(self, session_key: str) -> RunHandle | None:
        """Return the run of a session; None: no run is under way."""
        return self._handles.get(session_key)

    def stop(self, turns: Collection[str]) -> None:
        """Cancel the runs of these turns in all sessions; the caller has persisted the stop before."""
        for handle in (*self._handles.values(), *self._apart.values()):
            if handle.turn_id in turns:
                handle.stop()

    @property
    def idle(self) -> bool:
        """Whether nothing runs, and no session is about to run."""
        return not self._tasks and not any(ready.whose for ready in self._ready)

    def halt(self) -> None:
        """Cancel all runs until `go_on`, because everything is frozen; the caller has persisted that before.

        Their turns are queued.
        """
        self._halted = True
        for handle in (*self._handles.values(), *self._apart.values()):
            handle.stop()

    async def go_on(self) -> None:
        """Start runs again, in the order in which people wrote."""
        self._halted = False
        await self.sweep()

    async def ended(self, turns: Collection[str]) -> None:
        """Cancel the runs of these turns, as `stop`, and return when they have ended."""
        handles = (*self._handles.values(), *self._apart.values())
        tasks = [one.task for one in handles if one.turn_id in turns]
        self.stop(turns)
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def active(self) -> int:
        """How many runs are under way."""
        return len(self._handles) + len(self._apart)

    async def sweep(self) -> None:
        """Read the sessions that wait from the store, so that a lost wake delays them only until the next sweep."""
        if self._open and self._refilling is None:
            await self._refill()
            self._pump()

    async def drain(self, seconds: float) -> None:
        """Start no more runs, and cancel those that have not ended within `seconds`.

        Cancelled turns stay queued for the next start, and no crash is counted for them.
        """
        self._open, self._draining = False, True
        if self._refilling is not None:
            self._refilling.cancel()
        for timer in self._timers.values():
            timer.cancel()
        if tasks := [*self._tasks.values(), *self._beside.values(), *self._apart]:
            await asyncio.wait(tasks, timeout=seconds)
        for handle in (*self._handles.values(), *self._apart.values()):
            handle.task.cancel()  # a turn that is still being claimed is given back by `_work`
        await asyncio.gather(*tasks, *self._timers.values(), return_exceptions=True)

    def _line_up(
        self,
        session_key: str,
        background: bool,
        until: int = 0,
        *,
        guess: str | None = None,
        who: str | None = None,
        by: InboundMessage | None = None,
    ) -> None:
        """Put a session at the end of its row, see `SessionQueue.add`.

        guess, who: whose it may be or is. by: what a person wrote; without any of these it counts as an owner's.
        """
        row = CHILDREN if background and CHILD in session_key else int(background)
        if by is not None and not background:
            who = self._people.share_of((f"{by.origin.place.channel}:{by.origin.sender}",))
        whose = who if who is not None else guess if guess is not None else _PREFIX[row]
        self._ready[row].add(session_key, until, whose, sure=who is not None, settled=self._refilling is None)

    def _pump(self) -> None:
        """Give free places to sessions in the order in which they were woken, people before the background."""
        if not self._open:
            return
        people = self._ready[PEOPLE]
        for session_key, handle in self._handles.items() if people.whose else ():
            if handle.gives_way and session_key in people.whose and session_key not in self._beside:
                who = people.whose[session_key]
                if who in self._shares[PEOPLE].free((who,), instead=True):
                    self._start(PEOPLE, (session_key, who, people.pop(session_key)), self._beside)
        for row, ready in enumerate(self._ready):
            while ready.whose and (first := ready.next(self._shares[row], self._tasks, self._beside)):
                self._start(row, first, self._tasks)
        if self._refilling is None and any(ready.beyond and ready.lacks for ready in self._ready):
            self._refilling = asyncio.create_task(self._refill(), name="lanes-refill")
            self._refilling.add_done_callback(self._refilled)

    def _start(self, row: int, first: tuple[str, str, int], tasks: "dict[str, asyncio.Task[None]]") -> None:
        session_key, who, _ = first
        tasks[session_key] = asyncio.create_task(self._work(row, *first), name=f"lane-{session_key}")
        self._shares[row].take(who)
        tasks[session_key].add_done_callback(partial(self._left, row, session_key, who))

    def _left(self, row: int, session_key: str, who: str, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("lane failed", session=session_key, exc_info=error)
        for tasks in (self._tasks, self._beside):
            if tasks.get(session_key) is task:
                del tasks[session_key]
        self._apart.pop(task, None)
        self._shares[row].leave(who)
        if CHILD in session_key:  # its parent may have been told of the end
            self._line_up(parent_of(session_key), True)
        self._pump()

    def _hand_over(self, session_key: str, turn: Turn) -> None:
        """Give a session to a turn that was claimed beside a beat or job; the run of that ends at once, or apart."""
        if (before := self._handles.get(session_key)) is not None:
            self._apart[before.task] = before
        self._tasks[session_key] = self._beside.pop(session_key)
        if turn.ends:
            self.stop((turn.ends,))

    async def _refill(self) -> None:
        """Read the sessions that wait longest from the store into the rows.

        A session that is woken meanwhile may be missing in the answer, so its row is marked to be read again.
        """
        missing = [ready.beyond for ready in self._ready]
        for ready in self._ready:
            ready.beyond = set()
        try:
            found = await self._store.inbox.waiting_sessions(queues.READY, queues.READY_EACH, self._people.owner_names)
        except BaseException:
            for ready, beyond in zip(self._ready, missing, strict=True):
                ready.beyond |= beyond
            raise
        each = Counter[tuple[int, str]]()
        for session_key, background, asker in found:
            row = CHILDREN if background and CHILD in session_key else int(background)
            who = _PREFIX[row] + self._people.share_of((asker,))
            self._ready[row].put(session_key, 0, who)
            each[row, who] += 1
        guests = {(row, who) for row, who in each if who != _PREFIX[row]}
        for row, who in each:
            if (row, who) in guests and each[row, who] >= queues.READY_EACH:
                self._ready[row].beyond.add(who)
            if len(found) >= queues.READY and (not guests or (row, who) in guests):  # those of owners are read first
                self._ready[row].beyond.add(queues.ALL if guests else who)

    def _refilled(self, task: "asyncio.Task[None]") -> None:
        self._refilling = None
        if task.cancelled():
            return
        if error := task.exception():
            log.error("sessions that wait could not be read", exc_info=error)
            return
        self._pump()

    async def _wake_after(
        self, session_key: str, background: bool, ready_at: int, wait: int, by: InboundMessage
    ) -> None:
        """Wait, then line the session up; its message counts as ready even if the clock was set back meanwhile."""
        await self._clock.sleep(wait / 1000)
        self._line_up(session_key, background, ready_at, by=by)
        self._pump()

    async def _work(self, row: int, session_key: str, who: str, until: int) -> None:
        """Run one turn of a session; if there may be another, the session goes to the end of its row."""
        background, serves = row != PEOPLE, (who.removeprefix(_PREFIX[row]), self._people.share_of)
        SERVED.set((who, self._helpers))
        try:
            turn = await self.runner.claim(session_key, background=background, until=until, serves=serves)
        except OtherPeople as other:
            self._line_up(session_key, background, until, who=_PREFIX[row] + other.who)
            return
        except StoreUnavailable:
            await self._clock.sleep(PAUSE)
            self._line_up(session_key, background, until, guess=who)
            return
        if turn is None:
            return
        if not self._open or self._halted:  # it was claimed before that
            await (self.runner.put_back(turn) if self._halted else self.runner.give_back(turn))
            self._line_up(session_key, background, until, guess=who)
            return
        if session_key in self._beside:
            self._hand_over(session_key, turn)
        gives_way = turn.kind in BY_THEMSELVES
        handle = RunHandle(self.runner.journal(turn), self._tasks[session_key], gives_way)
        self._handles[session_key] = handle
        if gives_way:
            self._pump()  # somebody may have written since the claim
        again = True
        try:
            again = await self.runner.run(handle.journal) or turn.more
        except asyncio.CancelledError:
            if self._halted:
                await self.runner.put_back(turn)
            raise
        finally:
            if self._handles.get(session_key) is handle:
                del self._handles[session_key]
            if again:
                self._line_up(session_key, background, until, guess=who)
            if turn.behind:
                self._line_up(session_key, True)
