"""A platform of the contract suite with a service on it that can die.

    async with staged("slack", tmp_path) as stage, stage.serving():
        stage.side.say("hello")
        await stage.until(lambda: stage.side.posts() == ["re: hello"])

Time stands still but for `Stage.passing`, which goes on to the next pause that somebody makes when nothing happens.
The model answers `re: ` and the last line that it was sent, and the servers hold every text that is said twice in one
place against the service by themselves.
"""

import asyncio
import contextlib
import contextvars
import itertools
import time
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from random import Random
from typing import Any, Literal

from bot.clock import Clock
from bot.config.model import Config
from bot.service import Service
from channels.base import HealthState, Times
from tests.crash.process import let_go
from tests.scripted_model import ScriptedModel
from tests.serving import assemble
from tests.stored import Stored, disk_full
from tests.watch import PATIENCE, ManualTime, Watch
from tests.wire.platforms import ROOMS, Json, Side

_seeds = itertools.count(8)
IDLE = 0.005
"""Real seconds without anything that happens, after which time goes on in `Stage.passing`."""


class Time(ManualTime):
    """Tells when the next pause ends."""

    def next_due(self) -> float | None:
        """Seconds until then; None when nobody sleeps."""
        if not self._sleeping:
            return None
        return max(0.0, (min(self._sleeping.values()) - self._now) / 1000)


_OF_SERVICE = contextvars.ContextVar("of_service", default=False)


def _marked_tasks(loop: asyncio.AbstractEventLoop) -> "weakref.WeakSet[asyncio.Task[Any]]":
    """Filled with the tasks that are begun by a service from here on, or by what it has begun."""
    found: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    def make(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> "asyncio.Task[Any]":
        task = asyncio.Task(work, loop=loop, **options)
        if (options.get("context") or contextvars.copy_context()).get(_OF_SERVICE):
            found.add(task)
        return task

    loop.set_task_factory(make)
    return found


async def _drop(tasks: "weakref.WeakSet[asyncio.Task[Any]]") -> None:
    """End them where they stand; whoever clings to something is told again."""
    for _ in range(1000):
        left = [task for task in tasks if not task.done()]
        if not left:
            return
        for task in left:
            task.cancel()
        await asyncio.sleep(0)
    raise AssertionError(f"tasks that survive: {left}")


def own_words(request: Any) -> str:
    """What the model of these tests answers: the last line that it was sent; nothing more where that was said."""
    if "Your reply was cut off" in request.last_user_text:
        return ""
    return f"re: {request.last_user_text.splitlines()[-1]}"


class Crash(BaseException):
    """The process is dead: nothing that it does reaches the store any more."""


@dataclass
class Stage:
    """A platform, a place for the state, and services on it, one after the other.

    beside: further platforms of the same service. alone: it makes its channels by the configuration itself. commits:
    how many there were. die_at: the commit, counted from the start, at which the process dies; `dead` is set then.
    full: while it is set the store cannot write. slow: called with each commit, in the thread of the database.
    """

    home: Path
    side: Side
    time: Time
    watch: Watch
    changes: Json = field(default_factory=dict)
    given: Json = field(default_factory=dict)
    beside: tuple[Side, ...] = ()
    alone: bool = False
    commits: int = 0
    die_at: int = 0
    die_when: str = "before"
    dead: bool = False
    full: bool = False
    slow: Callable[[], None] | None = None
    service: Service | None = None
    _marks: int = 0

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self.watch)
        self.model.default = own_words
        self.stored = Stored(self.home / "state")

    def config(self, **changes: Any) -> Config:
        """Alice and Bob may write directly and in one room; Alice owns the bot."""
        section = _merged(self.side.section(), self.changes.get("section", {}))
        document = {
            "agent": {"drain_seconds": 0, "receipts": "off"},
            "owners": [f"{self.side.name}:{self.side.alice}"],
            "queue": {"debounce_ms": 0, "mode": "followup"},
            "channels": {"console": {"enabled": False}, self.side.name: section},
            "workspace": self.home / "workspace",
            "state": self.home / "state",
        }
        return Config.model_validate(_merged(document, {k: v for k, v in self.changes.items() if k != "section"}))

    def _probe(self, at: Literal["before", "after"]) -> None:
        """See `bot/store/writer.py`; runs in the database's thread."""
        if self.dead:
            raise Crash
        if at == "before":
            self.commits += 1
            if self.full:
                raise disk_full()
            if self.slow is not None:
                self.slow()
        if self.die_at and self.commits >= self.die_at and at == self.die_when:
            self.dead = True
            self._loop.call_soon_threadsafe(self.watch.changed)
            raise Crash
        if at == "after":
            self._loop.call_soon_threadsafe(self.watch.changed)

    @contextlib.asynccontextmanager
    async def serving(self, *, ready: bool = True, built: Callable[[], None] = lambda: None) -> AsyncIterator[Service]:
        """A service on the state, that receives unless told otherwise; what dies with `die_at` is dropped.

        built: called before it starts.
        """
        self._loop = asyncio.get_running_loop()
        self.dead = False
        self.commits = 0
        now = self.time
        clock = Clock(now.now, now.monotonic, now.sleep, Random(next(_seeds)), UTC)
        times = Times(now=now.now, monotonic=now.monotonic, sleep=now.sleep)
        channels = [] if self.alone else [side.channel(times) for side in (self.side, *self.beside)]
        given = {"model": self.model, **self.given}
        service = self.service = await assemble(
            self.config(), clock=clock, channels=channels, commit_probe=self._probe, **given
        )
        built()
        self._alive = _marked_tasks(self._loop)
        context = contextvars.copy_context()
        context.run(_OF_SERVICE.set, True)
        starting = self._loop.create_task(service.start(), name="test-start", context=context)
        try:
            starting.add_done_callback(lambda _: self.watch.changed())
            await self.until(lambda: starting.done() or self.dead, "the start")
            if ready and not self.dead:
                starting.result()
                await self.passing(lambda: service.parts.health.view().ready or self.dead, "readiness")
                if not self.dead:
                    await self.side.connect(service)
                    await self.passing(lambda: self.side.listed() or self.dead, "the list of commands")
            yield service
        finally:
            self.die_at = 0
            await self._end(service, starting)
            self.time.advance(1)  # what is said now is later than what this life knows

    async def _end(self, service: Service, starting: "asyncio.Task[None]") -> None:
        """Close it, or do the kernel's part in its death: tasks end where they stand, descriptors are closed."""
        starting.cancel()
        await asyncio.wait((starting,))
        if self.dead:
            await _drop(self._alive)
            for channel in [one.channel for one in service.parts.accounts]:
                async with asyncio.timeout(PATIENCE):
                    await channel.close()
            await service.parts.fleet.close()
            await let_go(service)
            return
        closing = asyncio.create_task(service.close(), name="test-close")
        closing.add_done_callback(lambda _: self.watch.changed())
        await self.passing(closing.done, "the end of the service")
        closing.result()

    async def until(self, condition: Callable[[], object], what: str = "the condition") -> None:
        """Return when it holds, whoever brings it about; time stands still."""
        ledger = self.side.server.ledger
        waits = [
            asyncio.create_task(self.watch.until(condition, what)),
            asyncio.create_task(ledger.until(lambda: bool(condition()), what, PATIENCE)),
        ]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def passing(self, condition: Callable[[], object], what: str = "the condition", most: float = 900.0) -> None:
        """The same while time goes on, from one pause to the next, whenever nothing else happens; at most so long."""
        end = self.time.monotonic() + most
        waiting = asyncio.create_task(self.until(condition, what))
        try:
            while not waiting.done():
                seen = len(self.side.server.ledger.calls), self.commits, len(self.time.asked)
                await asyncio.wait((waiting,), timeout=IDLE)
                self.watch.changed()  # not everything that conditions ask for tells of itself
                if waiting.done() or seen != (
                    len(self.side.server.ledger.calls),
                    self.commits,
                    len(self.time.asked),
                ):
                    continue
                due = self.time.next_due()
                if due is not None and self.time.monotonic() + due <= end:
                    self.time.advance(due)
            waiting.result()
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def ready(self) -> bool:
        """What `/readyz` says."""
        assert self.service is not None
        return self.service.parts.health.view().ready

    def state(self) -> HealthState:
        """How the channel stands."""
        assert self.service is not None
        return HealthState(self.service.parts.health.view().channels[self.side.name].state)

    async def settled(self) -> None:
        """Return when everything that was said until now has been decided about, and what it led to is done."""
        self._marks += 1
        self.side.say(f"mark {self._marks}", "bob")
        mark = f"re: mark {self._marks}"
        await self.passing(
            lambda: mark in self.side.posts(who="bob") and not self.side.open and self.at_rest(), "everything"
        )

    def at_rest(self) -> bool:
        """Nothing that was accepted is unfinished."""
        return not self.stored.unfinished()


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Json:
    found = dict(below)
    for key, value in above.items():
        found[key] = _merged(found[key], value) if isinstance(value, Mapping) and key in found else value
    return found


@contextlib.asynccontextmanager
async def staged(name: str, home: Path, **changes: Any) -> AsyncIterator[Stage]:
    """A stage for the platform of that name. changes: of the configuration; `section`: of the platform's own."""
    watch = Watch()
    now = Time(watch, int(time.time() * 1000))  # signatures go by the machine's clock
    async with ROOMS[name](now) as side:
        yield Stage(home, side, now, watch, changes)
