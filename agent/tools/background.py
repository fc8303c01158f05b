"""Commands in the background: each belongs to a session, outlives its turns, and ends with the service at the latest.

The pid and start time of each process are persisted, so that nothing is left running after a crash. Output is bounded.
The session is told how a command ended, unless the model has read that already.
"""

import asyncio
import hashlib
import itertools
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox.base import repositories
from agent.shell import Level
from agent.tools.base import CallContext
from agent.tools.leftovers import start_time
from agent.tools.lineage import Traced
from agent.tools.output import Overflow
from agent.tools.process import OUTPUT_GRACE_SECONDS, GatedProcess, at_most, ending

MOST_OF_SESSION, MOST = 8, 32
# How many commands that have ended are kept, and for how long.
KEPT, KEPT_SECONDS = 30, 30 * 60
END_SECONDS = 0.5  # between TERM and KILL
LAST_CHARACTERS = 400
_SHOWN = 200

_HOW = "brave calm clever eager fair gentle happy keen lucky merry neat proud quick quiet swift witty"
_WHO = "badger crane deer falcon finch fox hare heron lynx marten otter owl raven seal stoat wren"

# Starts a command; its output is passed to the argument.
Make = Callable[[Callable[[bytes], None]], GatedProcess]


@dataclass(frozen=True, slots=True)
class Writes:
    """Where a sandbox lets a command write."""

    room: Path
    # Those that were there before, see `repositories`: what leads git in them is kept from the command.
    repositories: Mapping[Path, tuple[object, ...]]

    @classmethod
    def of(cls, room: Path) -> "Writes":
        """Return it as it is now. Blocking."""
        return cls(room, repositories(room))

    def made(self, found: Mapping[Path, tuple[object, ...]]) -> frozenset[Path]:
        """Return which of these are new, or are led by something new."""
        return frozenset(path for path, leads in found.items() if self.repositories.get(path) != leads)


@dataclass(eq=False, kw_only=True)
class Running:
    """A command in the background, also after it has ended."""

    command: str
    level: Level
    session_key: str
    # The turn and the call that started the command.
    key: str
    # What the model calls the command.
    name: str = ""
    traced: Traced
    # The start time of the process, see `leftovers`.
    started: str = ""
    # How the command ended; empty while it runs.
    ending: str = ""
    # When it ended, in monotonic seconds.
    over_at: float = 0
    # How many calls wait to read its output.
    readers: int = 0
    process: GatedProcess = field(init=False)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: "asyncio.Future[str]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    overflow: Overflow
    # Where the sandbox lets it write; None: nowhere, or no sandbox holds it.
    writes: Writes | None = None
    _looks: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._fresh = self.overflow.spill(self.key)
        self._mask = self.overflow.mask()

    @property
    def shown(self) -> str:
        """The name and the command on one line."""
        command = " ".join(self.command.split())
        return f"{self.name} `{command if len(command) <= _SHOWN else command[:_SHOWN] + '…'}`"

    def take(self, data: bytes) -> None:
        """Take output of the command."""
        self._fresh.add(self._mask.feed(data))
        self._news.set()

    def fresh(self) -> str:
        """Return the output since the last call of this method."""
        fresh, self._looks = self._fresh.text(), self._looks + 1
        self._fresh = self.overflow.spill(f"{self.key}:{self._looks}")
        self._news.clear()
        return fresh or "[no new output]"

    async def wait(self, seconds: float, *, to_end: bool = False) -> None:
        """Wait until the command writes something or ends, at most so many seconds. to_end: wait for the end only."""
        self.readers += 1
        try:
            if not self.ending:
                await at_most(seconds, (self.over if to_end else self._news).wait())
        finally:
            self.readers -= 1

    def told(self) -> str:
        """Return what the session is told about the end; nothing when a call of the model is reading that."""
        # Each line of output is marked, because it could look like words of the service.
        last = re.sub(r"\n(?!\Z)", "\n| ", self._fresh.text()[-LAST_CHARACTERS:]) or "none"
        over = f"Background command {self.overflow.clean(self.shown)} is over: {self.ending}."
        return "" if self.readers else f"{over} Last output: {last}"

    def end(self, why: str) -> None:
        """Ask the command, and everything that it started, to end. why: becomes its `ending`."""
        if not self.wanted.done():
            self.wanted.set_result(why)

    def is_over(self, how: str, at: float) -> None:
        """Note that the command has ended. how: becomes its `ending`. at: in monotonic seconds."""
        self._fresh.add(self._mask.feed(b"", last=True))
        self.ending, self.over_at = how, at
        self.over.set()
        self._news.set()


class Background:
    """The commands in the background of one service."""

    def __init__(
        self,
        over: Callable[[Running], Awaitable[None]],
        overflow: Callable[[str], Overflow],
        monotonic: Callable[[], float],
    ) -> None:
        """over: called when a command has ended. overflow: returns where the output of a session is kept, by its key.

        monotonic: returns the time in seconds.
        """
        self._over = over
        self.overflow = overflow
        self._monotonic = monotonic
        self._known: dict[str, Running] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        # Repositories that were made in a room while a command that has ended could write in it.
        self._meanwhile: dict[Path, frozenset[Path]] = {}

    async def start(
        self,
        make: Make,
        command: str,
        level: Level,
        seconds: float,
        context: CallContext,
        traced: Traced,
        writes: Writes | None = None,
    ) -> Running:
        """Start a command that outlives the turn of its call.

        seconds: its time limit. traced: is entered for it. writes: as it was before the sandbox was made.

        Raises ToolError when too many commands run, and what `make` raises; in both cases nothing has run.
        """
        key = f"{context.turn_id}:{context.call_id}"
        session_key, overflow = context.session_key, self.overflow(context.session_key)
        one = Running(
            command=command,
            level=level,
            session_key=session_key,
            key=key,
            traced=traced,
            overflow=overflow,
            writes=writes,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(traced)
            one.process = await stack.enter_async_context(make(one.take))
            started = await asyncio.to_thread(start_time, one.process.pid)
            one.started = started or ""
            await context.started(one.process.pid, one.started)
            self._admit(one)
            one.process.open_gate()
            watcher = asyncio.create_task(self._watch(one, stack.pop_all(), seconds), name=f"background-{one.name}")
            self._watchers.add(watcher)
            watcher.add_done_callback(self._watchers.discard)
        return one

    def made_meanwhile(self, room: Path) -> frozenset[Path]:
        """Return the repositories of a room that were made while a command in the background could write there.

        Those whose configuration was replaced count as well. What leads git in these is not kept from it. Blocking.
        """
        past = self._meanwhile.get(room, frozenset())
        known = tuple(self._known.values())
        running = [one.writes for one in known if one.writes and one.writes.room == room and not one.ending]
        if not past and not running:
            return frozenset()
        found = repositories(room)
        return (past & found.keys()).union(*(one.made(found) for one in running))

    def of(self, session_key: str) -> Sequence[Running]:
        """Return the commands of a session, the oldest first. Of those that have ended only the newest are kept."""
        over = sorted((one for one in self._known.values() if one.ending), key=lambda one: one.over_at)
        for number, one in enumerate(reversed(over)):
            if number >= KEPT or one.over_at < self._monotonic() - KEPT_SECONDS:
                self.forget(one)
        return [one for one in self._known.values() if one.session_key == session_key]

    def find(self, session_key: str, name: str) -> Running:
        """Return a command of a session by its name. Raises ToolError when the session has none of this name."""
        found = {one.name: one for one in self.of(session_key)}
        if name not in found:
            names = ", ".join(found) or "none"
            raise ToolError(f"There is no background command {name!r} in this session. Known: {names}.")
        return found[name]

    def stop(self, session_key: str, below: str = "") -> bool:
        """End the commands of a session because a person wants it; returns whether any ran.

        below: also end those of sessions whose keys begin with this, unless it is empty.
        """
        meant = [one for one in self._known.values() if below and one.session_key.startswith(below)]
        running = [one for one in (*self.of(session_key), *meant) if not one.ending]
        for one in running:
            one.end("ended because a person said stop")
        return bool(running)

    def forget(self, one: Running) -> None:
        """Forget a command about which the model has read everything."""
        self._known.pop(one.name, None)

    async def close(self, seconds: float) -> None:
        """End all commands, within so many seconds. The next start finds what is not persisted by then."""
        for one in self._known.values():
            one.end("ended because the service was stopped")
        if self._watchers:
            _, late = await asyncio.wait(self._watchers, timeout=seconds)
            for watcher in late:
                watcher.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _admit(self, one: Running) -> None:
        """Give a command its name. Raises ToolError when too many commands run."""
        running = [other for other in self._known.values() if not other.ending]
        mine = [other.name for other in running if other.session_key == one.session_key]
        if len(mine) >= MOST_OF_SESSION or len(running) >= MOST:
            own = f", of this session {len(mine)}: {', '.join(mine)}" if mine else ""
            raise ToolError(f"No more commands can run in the background; {len(running)} do{own}.")
        digest = hashlib.sha256(one.key.encode()).digest()
        how, who = _HOW.split(), _WHO.split()
        names = [f"{how[a % len(how)]}-{who[b % len(who)]}" for a, b in itertools.pairwise(digest)]
        one.name = next(name for name in names if name not in self._known)
        self._known[one.name] = one

    async def _watch(self, one: Running, stack: AsyncExitStack, seconds: float) -> None:
        """Wait for the end of a command, or end it, and tell its session."""
        async with stack:
            ended = asyncio.create_task(one.process.wait())
            await asyncio.wait((ended, one.wanted), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            why = ""
            if ended.done():
                await one.process.last_words(OUTPUT_GRACE_SECONDS)
            else:
                ended.cancel()
                why = one.wanted.result() if one.wanted.done() else f"stopped after its time limit of {seconds:g} s"
            status = await one.process.end(END_SECONDS if why else 0)
        if (writes := one.writes) is not None:
            made = writes.made(await asyncio.to_thread(repositories, writes.room))
            self._meanwhile[writes.room] = self._meanwhile.get(writes.room, frozenset()) | made
        one.is_over(why or ending(status, one.process.why), self._monotonic())
        await self._over(one)
