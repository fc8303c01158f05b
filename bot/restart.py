"""The restart of the service: it waits until nothing runs, and the next process says that it is back.

Who waits for that is a row, written with the end of the command, so that a crash or a start that fails loses nothing
and repeats nothing. The process itself is replaced by `bot/cli/run.py` once the service has closed.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from bot.clock import Clock
from bot.commands.registry import Answer, Arguments, Call, Command, Effect, Say
from bot.config.errors import ConfigError
from bot.config.model import Config
from bot.outbox import Outbox
from bot.persistence.turns import CommandKept
from bot.runs.lanes import Lanes
from bot.store.store import Store
from bot.store.writer import once_available
from channels.message import Place
from channels.outgoing import Planned
from channels.sources import sentence

log = structlog.get_logger()

# Seconds between two looks whether anything runs.
LOOK = 0.5
# Seconds between tries while the store cannot be written.
_PAUSE = 1.0
BACK = "I am back."
_BEGINS = "I restart as soon as nothing runs, in {:g} seconds at the latest."
_NOT_HERE = "Only a service that `hark run` has started can be restarted."
_NOT_USED = "I do not restart, because the configuration cannot be used:"
_MOVED = "I do not restart, because the configuration names another state folder: stop Hark and start it again."


@dataclass(eq=False, kw_only=True)
class Restart:
    """Waits for the moment of a restart, and tells who has asked for it."""

    store: Store
    outbox: Outbox
    lanes: Lanes
    clock: Clock
    # The configuration that the service runs with.
    config: Config
    # Reads the configuration for the next process, and raises ConfigError; None: this process cannot be replaced.
    load: Callable[[], Config] | None
    # `agent.drain_seconds`.
    drain_seconds: float
    # Whether the service is to close and the process to be replaced.
    is_due: bool = field(default=False, init=False)
    # Called when that is so; to be set by who replaces the process.
    on_due: Callable[[], None] = lambda: None
    _task: "asyncio.Task[None] | None" = field(default=None, init=False)
    _began: float = field(default=0.0, init=False)

    async def obstacle(self) -> str:
        """Return why there can be no restart; empty: there can be one. Blocks no one while commands run."""
        if self.load is None:
            return _NOT_HERE
        try:
            new = await asyncio.to_thread(self.load)
        except ConfigError as error:
            return "\n".join((_NOT_USED, *(f"- {problem}" for problem in error.problems)))
        return _MOVED if new.state != self.config.state else ""

    @property
    def left(self) -> float:
        """For how many seconds what runs may still go on when the service ends."""
        waited = self.clock.monotonic() - self._began if self._task else 0.0
        return max(self.drain_seconds - waited, 0.0)

    def begin(self) -> None:
        """Restart as soon as nothing runs; the caller has found no obstacle."""
        if self._task is None:
            self._began = self.clock.monotonic()
            self._task = asyncio.create_task(self._wait(), name="restart")

    async def _wait(self) -> None:
        await self.clock.sleep(LOOK)
        while self.left and not (self.lanes.idle and self.outbox.idle):
            await self.clock.sleep(LOOK)
        if obstacle := await self.obstacle():  # it was changed meanwhile
            log.error("no restart", reason=obstacle)
            self._task = None
            await once_available(lambda: self._answer("stays", obstacle), lambda _: self.clock.sleep(_PAUSE))
            return
        log.info("restarting")
        self.is_due = True
        self.on_due()

    async def tell(self) -> None:
        """Tell who has asked an earlier process that the service is back. Raises StoreUnavailable."""
        await self._answer("back", BACK)

    async def _answer(self, kind: str, text: str) -> None:
        """Answer all who wait for a restart."""

        def blocks(place: Place, seq: int) -> tuple[Planned, ...]:
            return self.outbox.notice(sentence(kind, seq), text, place.channel)

        self.outbox.send(await self.store.restarts.answer(blocks))

    async def close(self) -> None:
        """Wait no longer."""
        if self._task is not None and not self.is_due:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def command(self) -> Command:
        """Make the command /restart."""

        async def restart(call: Call, _: Arguments) -> Effect:
            return await self.asked("")

        return Command(name="restart", help="Start anew, as soon as nothing runs.", run=restart)

    async def asked(self, before: str) -> Effect:
        """Return the effect of a command that asks for a restart. before: what is said before that."""
        if obstacle := await self.obstacle():
            return Say(f"{before} {obstacle}".strip())
        return _Begin(self, f"{before} {_BEGINS.format(self.drain_seconds)}".strip())


@dataclass(frozen=True, slots=True)
class _Begin(Effect):
    """Begins a restart, and has the next process answer as well."""

    restart: Restart
    text: str

    async def persist(self, answer: Answer) -> CommandKept:
        """Keep who waits for the answer, then begin."""
        blocks, chosen = answer.blocks(self.text), await answer.chosen()
        kept = await self.restart.store.restarts.ask(answer.call.seq, blocks, chosen)
        self.restart.begin()
        return kept
