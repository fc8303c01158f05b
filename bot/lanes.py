"""Lanes: one run at a time per session, many sessions at once, in the order in which people wrote.

The inbox is the queue: lanes hold only the names of sessions that may have something to run, and of those a bounded
number; what does not fit is found in the store again. Beats, jobs and children hold at most half of the places.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from agent.errors import RunLost
from agent.events import KeptEvent, Outcome
from bot.clock import Clock
from bot.store.errors import StaleRun, StoreUnavailable
from bot.store.store import Store
from bot.store.values import Turn
from bot.turns import RunResult, TurnRun

log = structlog.get_logger()

READY = 4096
"""Names of sessions held in memory; more wait in the store alone."""
_PAUSE = 1.0


class Running(Protocol):
    """What a lane starts: makes the run of a claimed turn, and takes back its context when it has ended well."""

    model: str

    async def prepare(self, turn: Turn) -> TurnRun:
        """Everything the turn needs."""

    def bare(self, turn: Turn) -> TurnRun:
        """A run that can only be failed, for a turn that could not be prepared."""

    def released(self, events: Sequence[KeptEvent]) -> None:
        """The turn went back into the queue; events: how its run was closed."""

    def ended(self, turn: Turn, run: TurnRun, result: RunResult) -> None:
        """The turn is over."""


@dataclass(eq=False, slots=True)
class RunHandle:
    """A run that is under way."""

    turn: Turn
    task: "asyncio.Task[None]"
    run: TurnRun | None = None

    @property
    def turn_id(self) -> str:
        """Whose run it is."""
        return self.turn.turn_id

    @property
    def is_streaming(self) -> bool:
        """A model call is under way."""
        return self.run is not None and self.run.runner.loop.streaming

    def stop(self) -> None:
        """End the run at once. The store is told first, by whoever stops it: this only hurries."""
        if self.run is not None:
            self.run.silence()
        self.task.cancel()


class Lanes:
    """Starts runs. places: runs at once."""

    def __init__(self, store: Store, clock: Clock, running: Running, places: int) -> None:
        self._store = store
        self._clock = clock
        self._running = running
        self._places = places
        self._background_places = max(1, places // 2)
        self._ready: tuple[OrderedDict[str, None], OrderedDict[str, None]] = (OrderedDict(), OrderedDict())
        self._overflow: set[bool] = set()  # of which row (in the background?) not all names are held
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._in_background = 0
        self._handles: dict[str, RunHandle] = {}
        self._open = False
        self._idle = asyncio.Event()
        self._refilling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin with what the store holds."""
        self._open = True
        await self._refill()
        self._pump()

    def wake(self, session_key: str, *, background: bool = False) -> None:
        """Something may be there to run in this session. Cheap, and right to call too often."""
        self._line_up(session_key, background)
        self._pump()

    def handle(self, session_key: str) -> RunHandle | None:
        """The run of a session, if one is under way."""
        return self._handles.get(session_key)

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
        self._open = False
        if self._refilling is not None:
            self._refilling.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=seconds)
        for session_key in self._handles:  # what is only being claimed goes back by itself
            self._tasks[session_key].cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def wait_idle(self) -> None:
        """Return once nothing runs and nothing is known to wait."""
        while self._tasks or any(self._ready) or self._overflow or self._refilling:
            self._idle.clear()
            await self._idle.wait()

    def _line_up(self, session_key: str, background: bool) -> None:
        """Put a session at the end of its row, or leave it to the store when others stand there alone already."""
        ready = self._ready[background]
        if session_key in ready:
            return
        if self._refilling is None and background not in self._overflow and len(ready) < READY:
            ready[session_key] = None
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
                del ready[session_key]
                self._start(session_key, background)
        if self._refilling is None and any(not self._ready[row] for row in self._overflow):
            self._refilling = asyncio.create_task(self._refill(), name="lanes-refill")
            self._refilling.add_done_callback(self._refilled)
        if not self._tasks:
            self._idle.set()

    def _start(self, session_key: str, background: bool) -> None:
        task = asyncio.create_task(self._work(session_key, background), name=f"lane-{session_key}")
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
            self._ready[background].setdefault(session_key)

    def _refilled(self, task: "asyncio.Task[None]") -> None:
        self._refilling = None
        if task.cancelled():
            return
        if error := task.exception():
            log.error("sessions that wait could not be read", exc_info=error)
            return
        self._pump()

    async def _work(self, session_key: str, background: bool) -> None:
        """One turn of a session; when there is another, the session goes to the end of the row."""
        try:
            turn = await self._store.turns.claim(session_key, self._running.model, background=background)
        except StoreUnavailable:
            await self._clock.sleep(_PAUSE)
            self._line_up(session_key, background)
            return
        if turn is None:
            return
        if not self._open:
            await self._give_back(turn)
            return
        task = asyncio.current_task()
        assert task is not None
        handle = RunHandle(turn, task)
        self._handles[session_key] = handle
        again = True
        try:
            again = await self._run(handle) or turn.more
        except asyncio.CancelledError:
            await self._give_back(turn)
            raise
        except StoreUnavailable:
            await self._wait_for_store(turn)
        finally:
            del self._handles[session_key]
            if again:
                self._line_up(session_key, background)

    async def _run(self, handle: RunHandle) -> bool:
        """Run a turn; returns whether something of it may be left to run (steering texts that nobody read)."""
        turn = handle.turn
        try:
            run = await self._running.prepare(turn)
            handle.run = run
            result = await run.execute()
            self._running.ended(turn, run, result)
            return result.outcome is not Outcome.COMPLETED
        except (RunLost, StaleRun):
            log.info("run ended by a stop", turn=handle.turn_id)
        except StoreUnavailable:
            raise
        except Exception:
            log.exception("run failed", turn=handle.turn_id)
            run = handle.run or self._running.bare(turn)
            with contextlib.suppress(RunLost):
                await run.fail(Outcome.FAILED, "internal", "an error inside the service; the log has it")
        return True

    async def _give_back(self, turn: Turn, until: int | None = None) -> None:
        """A cancelled run: back into the queue, unless a stop has settled it."""
        with contextlib.suppress(StoreUnavailable):  # repaired at the next start
            await asyncio.shield(self._release(turn, until))

    async def _wait_for_store(self, turn: Turn) -> None:
        """The store could not write during a run: as soon as it can, the turn goes back into the queue."""
        log.error("the store cannot write; the run waits", turn=turn.turn_id)
        since = self._clock.now()
        try:
            while True:
                await self._clock.sleep(_PAUSE)
                try:
                    return await self._release(turn, since)
                except StoreUnavailable:
                    continue
        except asyncio.CancelledError:
            await self._give_back(turn, since)
            raise

    async def _release(self, turn: Turn, until: int | None = None) -> None:
        """until: when the run ceased to work, if that is not now."""
        self._running.released(await self._store.turns.release(turn.run, until))
