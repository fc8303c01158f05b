"""The servers of the configuration as one: what runs are offered of them, what an owner has looked at, their processes.

What is offered is read from the store, so that it is the same for all runs, whether or not a server can be reached. A
server is connected at the first call, or at the start if nobody has ever seen what it shows.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import structlog

from agent.errors import ToolError
from agent.mcp.server import Server
from agent.mcp.settings import Settings
from agent.mcp.tools import RemoteTool, Shown, name_of, read
from agent.sandbox.base import Launch
from agent.tools.base import RunContext, Tool
from agent.tools.exec import scrubbed
from agent.tools.leftovers import end_leftover
from agent.tools.process import at_most
from bot.clock import Clock
from bot.config.mcp import Server as Configured
from bot.config.model import Config
from bot.persistence.errors import StoreUnavailable
from bot.persistence.mcp import PinnedTool
from bot.store.store import Store
from bot.store.writer import once_available

log = structlog.get_logger()

# Seconds that a run waits for servers that nobody has seen yet, and between tries to reach those.
_FIRST_SECONDS, _TRY_EVERY = 10.0, 1.0
_MOST_TRANSCRIPTS = 1000


@dataclass(frozen=True, slots=True)
class ToolView:
    """A tool of a server as people see it."""

    server: str
    name: str
    state: str
    digest: str
    description: str


class NoServer(ValueError):
    """The configuration has no server of this name, or nobody has seen it yet."""


class Servers:
    """All servers of the configuration."""

    def __init__(self, config: Config, store: Store, clock: Clock) -> None:
        self._config, self._store, self._clock = config, store, clock
        self._servers = {
            name: Server(settings_of(name, one, config), clock.monotonic, self._started, self._showed, self._why_off)
            for name, one in config.mcp.servers.items()
        }
        # What runs are offered, and what those of each transcript are: the tools of a prefix stay what they were, while
        # what has changed is refused at the call.
        self.offered: Sequence[Tool[Any]] = ()
        self._of_transcripts: dict[str, Sequence[Tool[Any]]] = {}
        self._pins: dict[tuple[str, str], PinnedTool] = {}
        self._unseen = {*self._servers}
        # Set once runs are offered what can be known.
        self._settled = asyncio.Event()
        # Set once no process of an earlier service is left.
        self._alone = asyncio.Event()

    @property
    def connected(self) -> Sequence[str]:
        """The names of the servers that are connected."""
        return [one.name for one in self._servers.values() if one.is_connected]

    async def serve(self) -> None:
        """End what a crash has left, and connect the servers that nobody has seen."""
        await once_available(self._load, self._wait)
        for one in await self._store.mcp.processes():
            if not await asyncio.to_thread(end_leftover, one.pid, one.started):
                log.warning("a process of an earlier run cannot be ended", pid=one.pid)
        self._alone.set()
        while True:
            await asyncio.gather(*(self._first(self._servers[name]) for name in sorted(self._unseen)))
            self._settled.set()
            if not self._unseen:
                return
            await self._clock.sleep(_TRY_EVERY)

    @asynccontextmanager
    async def tools(self, run: RunContext) -> AsyncIterator[Sequence[Tool[Any]]]:
        """See ToolFactory."""
        if not self._settled.is_set():
            await at_most(_FIRST_SECONDS, self._settled.wait())
        if len(self._of_transcripts) >= _MOST_TRANSCRIPTS:
            self._of_transcripts.clear()
        there = self._of_transcripts.setdefault(run.transcript_id, self.offered)
        names = {one.name for one in there}
        yield (*there, *(one for one in self.offered if one.off and one.name not in names))

    async def mcp(self) -> Sequence[ToolView]:
        """Return all tools that were ever shown, for owners."""
        _, tools = await self._store.mcp.known()
        found = []
        for one in tools:
            shown = read(one.shown or one.accepted or "")
            found.append(
                ToolView(one.server, name_of(one.server, one.name), one.state, shown.digest, shown.description)
            )
        return found

    async def accept_mcp(self, server: str) -> Sequence[ToolView]:
        """Let the tools of a server be called as it shows them now; returns those that were off. Raises NoServer."""
        seen, _ = await self._store.mcp.known()
        if server not in seen:
            raise NoServer(
                f"There is no MCP server {server!r} that was seen. Known: {', '.join(sorted(seen)) or 'none'}."
            )
        found = map(read, await self._store.mcp.accept(server))
        self._of_transcripts.clear()
        await self._load()
        return [ToolView(server, name_of(server, it.name), "on", it.digest, it.description) for it in found]

    async def close(self) -> None:
        """End all connections, and the processes with them."""
        await asyncio.gather(*(one.close() for one in self._servers.values()))

    async def _first(self, server: Server) -> None:
        try:
            await server.connect()
        except ToolError as error:
            log.debug("an MCP server was not seen yet", server=server.name, reason=str(error))

    async def _load(self) -> None:
        """Make the tools that runs are offered from what is stored."""
        seen, pinned = await self._store.mcp.known()
        self._unseen = {*self._servers} - {*seen}
        self._pins = {(one.server, one.name): one for one in pinned if one.server in self._servers}
        found = dict[str, Tool[Any]]()
        # What is off comes last: it takes no name from what an owner has looked at.
        for one in sorted(self._pins.values(), key=lambda one: bool(_why_off(one))):
            tool = self._tool(one)
            if found.setdefault(tool.name, tool) is not tool:
                log.warning("two tools of MCP servers have the same name", tool=tool.name)
        self.offered = tuple(found.values())

    def _tool(self, one: PinnedTool) -> Tool[Any]:
        looks = any(fnmatchcase(one.name, pattern) for pattern in self._config.mcp.servers[one.server].looks)
        shown = read(one.accepted or one.shown or "")
        return RemoteTool(self._servers[one.server], shown, looks=looks, off=_why_off(one))

    def _why_off(self, server: str, shown: Shown) -> str:
        """Return why a run that was offered a tool may not call it; empty: it may."""
        now = self._pins.get((server, shown.name))
        if now is not None and now.accepted == shown.text():
            return _why_off(now)
        return "what it is has changed since it was offered"

    async def _showed(self, server: str, shown: Sequence[Shown]) -> None:
        """Store what a server shows, if it is not what is stored."""
        texts = {one.name: one.text() for one in shown}
        known = {name: one.shown for (of, name), one in self._pins.items() if of == server and one.shown}
        if server in self._unseen or texts != known:
            await self._store.mcp.shows(server, [*texts.items()])
            if server in self._unseen:
                self._of_transcripts.clear()
            await self._load()
            if off := [name for (of, name), one in self._pins.items() if of == server and _why_off(one)]:
                log.warning("tools of an MCP server are off until an owner has looked", server=server, tools=off)

    async def _started(self, server: str, pid: int, started: str) -> None:
        await self._alone.wait()
        await self._store.mcp.started(server, pid, started)

    async def _wait(self, error: StoreUnavailable) -> None:
        await self._clock.sleep(_TRY_EVERY)


def _why_off(one: PinnedTool) -> str:
    if one.state not in ("new", "changed"):
        return ""
    what = "it is new" if one.state == "new" else "what it is has changed"
    return f"{what}; `hark mcp list` shows it, `hark mcp accept {one.server}` lets it be used"


def settings_of(name: str, one: Configured, config: Config) -> Settings:
    """Return how a server is reached. A program that is not found is refused when it is started."""
    launch = None
    if one.command is not None:
        environment = scrubbed(os.environ) | {key: value.get_secret_value() for key, value in one.env.items()}
        program = shutil.which(one.command, path=environment["PATH"])
        program = os.path.abspath(program) if program else one.command
        launch = Launch(argv=(program, *one.args), environment=environment, leashed=True)
    return Settings(
        name=name,
        launch=launch,
        url=one.url or "",
        headers={key: value.get_secret_value() for key, value in one.headers.items()},
        timeout_seconds=one.timeout_seconds,
        tokens=config.state / "mcp" / f"{name}.json",
    )
