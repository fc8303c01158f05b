"""Lanes: one run at a time per session, many sessions at once, in the order in which people wrote.

The inbox is the queue: lanes hold only the names of sessions that may have something to run, and of those a bounded
number; what does not fit is found in the store again. Beats, jobs and children hold at most half of the places.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass

import structlog

from bot.clock import Clock
from bot.persistence.errors import StoreUnavailable
from bot.runs.journal import RunJournal
from bot.runs.runner import PAUSE, TurnRunner
from bot.store.store import Store

log = structlog.get_logger()

# Names of sessions held in memory; more wait in the store alone.
READY = 4096


@dataclass(eq=False, slots=True)
class RunHandle:
    """A run that is under way."""

    journal: RunJournal
    task: "asyncio.Task[None]"

    @property
    def turn_id(self) -> str:
        """Whose run it is."""
        return self.journal.turn.turn_id

    def stop(self) -> None:
        """End the run at once. The store is told first, by whoever stops it: this only hurries."""
        self.journal.typing.stop()
        self.task.cancel()


class Lanes:
    """Starts runs. places: runs at once."""

    # Claims turns and executes them. To be set before `start`: what it works with wakes sessions itself.
    runner: TurnRunner

    def __init__(self, store: Store, clock: Clock, places: int) -> None:
        self._store = store
        self._clock = clock
        self._places = places
        self._background_places = max(1, places // 2)
        # By session until when messages count as ready, whatever the clock says.
        self._ready: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._timers: dict[tuple[str, bool, int], asyncio.Task[None]] = {}
        self._overflow: set[bool] = set()  # of which row (in the background?) not all names are held
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._in_background = 0
        self._handles: dict[str, RunHandle] = {}
        self._open = self._draining = False
        self._refilling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin with what the store holds."""
        self._open = True
        await self._refill()
        self._pump()

    def wake(self, session_key: str, background: bool = False) -> None:
        """Something may be there to run in this session. Cheap, and right to call too often."""
        self._line_up(session_key, background)
        self._pump()

    def wake_early(self, session_key: str) -> bool:
        """As `wake`, just before a message is accepted: its claim stands behind the acceptance in the store's writer
        and, where a place is free, shares its commit. False when it has to be woken afterwards instead, because names
        are read from the store, where this one might be missing yet."""
        if not self._open or self._overflow or self._refilling or len(self._ready[False]) >= READY:
            return False
        self.wake(session_key)
        return True

    def wake_later(self, session_key: str, background: bool, ready_at: int, wait: int) -> None:
        """As `wake`, in `wait` milliseconds, when a message is ready: also before the lanes are open, for then nothing
        else looks for it in time. More than memory holds are found by a sweep."""
        key = (session_key, background, ready_at)
        if not self._draining and key not in self._timers and len(self._timers) < READY:
            self._timers[key] = asyncio.create_task(self._wake_after(*key, wait), name=f"lane-later-{session_key}")
            self._timers[key].add_done_callback(lambda _: self._timers.pop(key))

    def handle(self, session_key: str) -> RunHandle | None:
        """The run of a session, if one is under way."""
        return self._handles.get(session_key)

    def stop(self, turns: Collection[str]) -> None:
        """End the runs of these turns at once, in whatever session; the store has been told."""
        for handle in [one for one in self._handles.values() if one.turn_id in turns]:
            handle.stop()

    @property
    def active(self) -> int:
        """Runs under way."""
        return len(self._handles)

    async def sweep(self) -> None:
        """Look into the store for what waits: a signal that was lost costs no more than the time between sweeps."""
        if self._open and self._refilling is None:
            await self._refill()
            self._pump()

    async def drain(self, seconds: float) -> None:
        """Start nothing more, let runs finish, then cut the rest: they stay queued, no crash counted."""
        self._open, self._draining = False, True
        if self._refilling is not None:
            self._refilling.cancel()
        for timer in self._timers.values():
            timer.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=seconds)
        for session_key in self._handles:  # what is only being claimed goes back by itself
            self._tasks[session_key].cancel()
        await asyncio.gather(*self._tasks.values(), *self._timers.values(), return_exceptions=True)

    def _line_up(self, session_key: str, background: bool, until: int = 0) -> None:
        """Put a session at the end of its row, or leave it to the store when others stand there alone already."""
        ready = self._ready[background]
        if session_key in ready:
            ready[session_key] = max(until, ready[session_key])
        elif self._refilling is None and background not in self._overflow and len(ready) < READY:
            ready[session_key] = until
        else:
            self._overflow.add(background)

    def _pump(self) -> None:
        """Give free places to sessions, those that were woken first before others, people before the background."""
        if not self._open:
            return
        for background, ready in ((False, self._ready[0]), (True, self._ready[1])):
            for session_key in list(ready):
                if len(self._tasks) >= self._places or (background and self._in_background >= self._background_places):
                    break
                if session_key in self._tasks:
                    continue  # stays ready: looked at again when its run has ended
                self._start(session_key, background, ready.pop(session_key))
        if self._refilling is None and any(not self._ready[row] for row in self._overflow):
            self._refilling = asyncio.create_task(self._refill(), name="lanes-refill")
            self._refilling.add_done_callback(self._refilled)

    def _start(self, session_key: str, background: bool, until: int) -> None:
        task = asyncio.create_task(self._work(session_key, background, until), name=f"lane-{session_key}")
        self._tasks[session_key] = task
        self._in_background += background
        task.add_done_callback(lambda done: self._left(session_key, background, done))

    def _left(self, session_key: str, background: bool, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("lane failed", session=session_key, exc_info=error)
        del self._tasks[session_key]
        self._in_background -= background
        self._pump()

    async def _refill(self) -> None:
        """Take the names of those who wait longest from the store. Who is woken meanwhile may not be among them."""
        missing, self._overflow = self._overflow, set()
        try:
            found = await self._store.inbox.waiting_sessions(READY)
        except BaseException:
            self._overflow |= missing
            raise
        if len(found) >= READY:
            self._overflow |= {background for _, background in found}
        for session_key, background in found:
            self._ready[background].setdefault(session_key, 0)

    def _refilled(self, task: "asyncio.Task[None]") -> None:
        self._refilling = None
        if task.cancelled():
            return
        if error := task.exception():
            log.error("sessions that wait could not be read", exc_info=error)
            return
        self._pump()

    async def _wake_after(self, session_key: str, background: bool, ready_at: int, wait: int) -> None:
        """The clock may be set back meanwhile: what was waited for is ready all the same."""
        await self._clock.sleep(wait / 1000)
        self._line_up(session_key, background, ready_at)
        self._pump()

    async def _work(self, session_key: str, background: bool, until: int) -> None:
        """One turn of a session; when there is another, the session goes to the end of the row."""
        try:
            turn = await self.runner.claim(session_key, background=background, until=until)
        except StoreUnavailable:
            await self._clock.sleep(PAUSE)
            self._line_up(session_key, background, until)
            return
        if turn is None:
            return
        if not self._open:
            await self.runner.give_back(turn)
            return
        journal = self.runner.journal(turn)
        self._handles[session_key] = RunHandle(journal, self._tasks[session_key])
        again = True
        try:
            again = await self.runner.run(journal) or turn.more
        finally:
            del self._handles[session_key]
            if again:
                self._line_up(session_key, background, until)
