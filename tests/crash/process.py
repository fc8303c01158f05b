"""A process that is not one: a service in this process that dies as if it were killed.

It dies at a commit or at an effect outside (a send, a tool, the end of a model's answer): from then on nothing it does
reaches the store or anybody else. What is left of it is dropped by `drop_tasks`.
"""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agent.message import ToolOutput
from agent.tools.base import Ask, CallContext, Parameters, Tool
from bot.service import Service
from tests.asking import send
from tests.crash.platform import Platform
from tests.stored import Stored, disk_full

When = Literal["before", "after", "effect", "drain", "full"]


class Died(BaseException):
    """The process is dead; nothing may catch this."""


@dataclass(frozen=True, slots=True)
class End:
    """How a life ends: at its commit number `commit`.

    before, after: the process dies directly before, or after it. effect: it lives on until the next effect outside,
    and dies then, the answer lost. drain: SIGTERM. full: three commits fail from there on, nobody dies. leapt: they are
    counted from the first leap of the clocks on.
    """

    when: When
    commit: int
    leapt: bool = False


class Outside(Protocol):
    """What outlives a process."""

    reached: int
    failed_commits: int
    violations: list[str]
    executed: Counter[str]
    held: Counter[str]
    stored: Stored
    platform: Platform

    def changed(self) -> None:
        """Something happened."""

    async def gate(self, token: str) -> None:
        """Wait until what is held may go on."""


class Process:
    """One life as the outside sees it."""

    def __init__(self, world: Outside, number: int, end: End | None) -> None:
        self._world = world
        self._end = end
        self._loop = asyncio.get_running_loop()
        self.number = number
        self.dead = False
        self.ended = asyncio.Event()
        self.gone = asyncio.Event()
        self.up = asyncio.Event()
        self.commits = 0
        self._doomed = False
        self._failures = 0

    def probe(self, at: Literal["before", "after"]) -> None:
        """See `bot/store/writer.py`; runs in the database's thread."""
        if self.dead:
            raise Died
        end = self._end
        if at == "after":
            self._loop.call_soon_threadsafe(self._world.changed)
        else:
            self.commits += end is None or not end.leapt or self._world.platform.leapt > 0
        if self._failures:
            if at == "before":
                self._failures -= 1
                self._world.failed_commits += 1
                raise disk_full()
        elif end is not None and self.commits == end.commit:
            self._reached(end, at)

    def _reached(self, end: End, at: Literal["before", "after"]) -> None:
        if end.when == at:
            self.die()
            raise Died
        if at == "before" and end.when == "full":
            self._end, self._failures = None, 2
            self._world.reached += 1
            self._world.failed_commits += 1
            raise disk_full()
        if at == "after" and end.when == "drain":
            self._end = None
            self._world.reached += 1
            self._loop.call_soon_threadsafe(self.ended.set)
        if at == "after" and end.when == "effect":
            self._end, self._doomed = None, True

    def die(self) -> None:
        """From here on nothing reaches anybody."""
        self.dead = True
        self._world.reached += 1
        self._loop.call_soon_threadsafe(self.ended.set)
        self._loop.call_soon_threadsafe(self.gone.set)

    def fill(self, commits: int) -> None:
        """The next commits fail, as on a full disk."""
        self._failures = commits

    async def effect(self) -> None:
        """Something outside has happened: a doomed process never learns of it."""
        if self._doomed and not self.dead:
            self.die()
        if self.dead:
            await asyncio.Event().wait()


class _Key(Parameters):
    key: str


class Counting(Tool[_Key]):
    """A tool with an effect in the world, which must happen at most once per call."""

    parameters = _Key
    description = "Counts."

    def __init__(self, world: Outside, process: Process, name: str, parallel_safe: bool) -> None:
        self.name = name
        self.parallel_safe = parallel_safe
        self._world = world
        self._process = process

    async def run(self, parameters: _Key, context: CallContext) -> ToolOutput:
        world = self._world
        await asyncio.sleep(0)
        if self._process.dead:
            await asyncio.Event().wait()
        (state,) = world.stored.calls("state", call_id=context.call_id)[0]
        if state not in ("running", "cut"):  # cut: a stop came between the store and the tool
            world.violations.append(f"call {context.call_id} executes while it is {state}")
        world.executed[parameters.key] += 1
        await self._process.effect()
        await asyncio.sleep(0)
        return ToolOutput(text=f"counted {parameters.key}")


class Waiting(Counting):
    """Counts, and ends once it is let."""

    async def run(self, parameters: _Key, context: CallContext) -> ToolOutput:
        output = await super().run(parameters, context)
        self._world.held[self.name] += 1
        self._world.changed()
        await self._world.gate(self.name)
        return output


class Asking(Counting):
    """Asks before it counts. seconds: how long, until something has expired: then until somebody decides."""

    def __init__(self, world: Outside, process: Process, name: str, seconds: float) -> None:
        super().__init__(world, process, name, parallel_safe=True)
        self._seconds = seconds

    async def asks(self, parameters: _Key, context: CallContext) -> Ask:
        seconds = 1e9 if self._world.stored.approvals(state="expired") else self._seconds
        return Ask(digest=parameters.key, subject=f"May I {parameters.key}?", is_code=False, seconds=seconds)


class Sending(Counting):
    """Sends a message before it counts."""

    async def run(self, parameters: _Key, context: CallContext) -> ToolOutput:
        assert self._world.service is not None
        await send(self._world.service, context, f"sent {parameters.key}")
        return await super().run(parameters, context)


def watch_tasks() -> list[str]:
    """What tasks of this loop failed with, and nobody asked: filled from here on."""
    lost: list[str] = []

    def note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), Died):
            lost.append(f"{context.get('message')}: {context.get('exception')!r}")

    asyncio.get_running_loop().set_exception_handler(note)
    return lost


async def drop_tasks() -> None:
    """End everything of a dead service; whoever clings to a store that never answers is told again."""
    quiet = 0
    for _ in range(1000):
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and _of_service(task)]
        quiet = 0 if tasks else quiet + 1
        if quiet > 2:  # the end of a task may begin another
            return
        for task in tasks:
            task.cancel()
        await asyncio.sleep(0)
    raise AssertionError(f"tasks that survive: {tasks}")


async def let_go(service: Service) -> None:
    """The kernel's part in the death of a process: its descriptors are closed, and so its lock is free."""
    with contextlib.suppress(BaseException):  # its writer is dead, and says of what
        await service.parts.store.close()


def _of_service(task: asyncio.Task[Any]) -> bool:
    """Whether a task is the service's (or one of a program that talks to it)."""
    return task.get_name() not in ("person", "rest", "ended")
