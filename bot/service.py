"""The service: starts its parts in the order that keeps the promises, and stops them in the opposite one.

Start: the gateway, which tells how the service stands; then workspace and store are opened, what a crash left is
repaired, then the outbox, open commands, intake, and the lanes once the model is ready. Each step waits while the disk
is full or the store cannot be read. Stop (SIGTERM): intake first, then runs may finish for a while, what was said is
delivered, and the rest stays queued.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from agent import workspace_files
from agent.message import Provenance
from agent.models.fleet import Fleet
from agent.tools.background import Background
from agent.tools.leftovers import end_leftover
from agent.tools.workspace import WorkspaceError
from bot import wording
from bot.approvals.requests import Requests
from bot.background.dispatcher import Dispatcher
from bot.bus import EventBus
from bot.clock import Clock
from bot.config.model import Config
from bot.gateway.agent_api import AgentApi
from bot.gateway.balance import Book
from bot.gateway.status import Health
from bot.inbound.commands import CommandRunner
from bot.inbound.pairing import Pairing
from bot.inbound.pipeline import Pipeline
from bot.mcp.servers import Servers
from bot.outbox import Outbox
from bot.people.accounts import Account
from bot.people.people import People
from bot.persistence.errors import StoreUnavailable
from bot.persistence.recovery import CutTurn
from bot.restart import Restart
from bot.runs.freezing import Freezer
from bot.runs.lanes import Lanes
from bot.runs.outages import OutageWatch
from bot.sessions.forgetting import Forget
from bot.sessions.service import Sessions
from bot.skills.shelf import Shelf
from bot.store.database import passes
from bot.store.store import Store
from bot.store.writer import once_available
from channels.outgoing import Planned
from channels.sources import of_turn, sentence
from heartbeat.scheduler import Scheduler

if TYPE_CHECKING:  # they import the HTTP server and the SDK of traces, which not every service has
    from bot.gateway.server import Gateway
    from bot.gateway.traces import Traces

log = structlog.get_logger()

PRUNE_EVERY = 3600.0
PROBE_EVERY = 1.0
# Seconds that a lost signal costs at most (durability.md part 7).
SWEEP_EVERY = 30.0
# Seconds that deliveries have at the end.
OUTBOX_GRACE = 5.0
# Seconds that commands in the background, and the notices of their ends, have at the end.
BACKGROUND_GRACE = 3.0
# Where a command line came from that a crash has ended, of which nothing else is known.
_CUT = (Provenance("command", "a command that a restart ended"),)


Serving = Sequence[tuple[str, Callable[[], Coroutine[Any, Any, None]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that the service starts and stops, and what surfaces read and call."""

    store: Store
    # The id of this process in the store.
    worker: str
    outbox: Outbox
    lanes: Lanes
    commands: CommandRunner
    pipeline: Pipeline
    people: People
    pairing: Pairing
    accounts: Sequence[Account]
    health: Health
    # All models.
    fleet: Fleet
    # Looks for prices that the configuration does not have; takes a second.
    look_up_prices: Callable[[], None]
    outages: OutageWatch
    clock: Clock
    config: Config
    bus: EventBus
    api: AgentApi
    dispatcher: Dispatcher
    book: Book
    requests: Requests
    background: Background
    sessions: Sessions
    forget: Forget
    workspace: Path
    # Which sandbox commands run in, and why that one.
    sandbox: str
    restart: Restart
    mcp: Servers
    # What works for as long as the service runs, each with the name of its task; cancelled before the runs end.
    serving: Serving
    # What is closed once no run is left, in this order.
    closing: Sequence[Callable[[], Awaitable[None]]]

    @property
    def skills(self) -> Shelf:
        """The skills of the workspace."""
        return self.dispatcher.beats.rooms.skills

    @property
    def freezer(self) -> Freezer:
        """What freezes and thaws."""
        return Freezer(self.store, self.lanes, self.outbox, self.background, self.dispatcher.hurry)


class Service:
    """The running service; there is one per process and state directory.

    on_preloaded: called once everything heavy has been imported. on_wait: called with each new reason why the start
    waits; what it raises ends the start.
    """

    def __init__(
        self,
        parts: Parts,
        on_preloaded: Callable[[], None],
        on_wait: Callable[[StoreUnavailable], None],
        gateway: "Gateway | None",
    ) -> None:
        self.parts = parts
        self._on_preloaded = on_preloaded
        self._on_wait = on_wait
        # The HTTP interface, where there is one.
        self.gateway = gateway
        self._traces: Traces | None = None
        self._background: list[asyncio.Task[None]] = []
        self._scheduler = Scheduler(parts.dispatcher.tick)

    async def start(self) -> None:
        """Bring everything up. Returns once messages are accepted; platforms connect in the background.

        Raises what keeps it from starting at all: GatewayError, StoreTooNew, OSError, sqlite3.Error.
        """
        parts = self.parts
        if self.gateway is not None:
            await self.gateway.start()
        await self._once_possible(partial(create_workspace, parts.workspace))
        await self._once_possible(parts.store.open)
        if (found := parts.store.salvage) is not None:
            rows = sum(found.rows.values())
            log.error("the store was damaged", problem=found.problem, kept_as=str(found.kept_as), recovered_rows=rows)
        await self._once_possible(parts.people.load)
        await self._once_possible(parts.requests.grants.load)
        await self._once_possible(parts.outages.load)
        await self._once_possible(self._recover)
        await self._once_possible(parts.forget.go_on)
        await self._once_possible(parts.outbox.start)
        await self._once_possible(self._tell_of_salvage)
        await self._once_possible(parts.restart.tell)  # before a command is carried out that asks for another one
        await self._once_possible(parts.skills.begin)
        await self._once_possible(parts.dispatcher.beats.set_up)
        await self._once_possible(parts.commands.recover)
        if self.gateway is not None:
            self.gateway.open()
        for account in parts.accounts:
            await account.start(parts.pipeline)
        self.parts.health.serving = True
        self.parts.health.lag.start()
        if (otlp := parts.config.telemetry.otlp) is not None:
            from bot.gateway.traces import Traces

            self._traces = Traces(otlp, parts.bus, parts.store.reads)
            self._traces.start()
        self._in_background(self._begin_runs(), "begin-runs")
        self._in_background(self._prune(), "prune")
        self._in_background(self._sweep(), "sweep")
        self._in_background(self._probe_store(), "probe-store")
        self._in_background(parts.skills.serve(), "skills")
        for name, serve in parts.serving:
            self._in_background(serve(), name)
        self._in_background(asyncio.to_thread(parts.look_up_prices), "prices")

    async def close(self) -> None:
        """Drain and stop. Whatever is not finished is found in the store at the next start."""
        parts = self.parts
        log.info("stopping", running=parts.lanes.active)
        self.parts.health.serving = False
        self.parts.health.lag.stop()
        if self.gateway is not None:
            self.gateway.stop_intake()
        for account in [*parts.accounts]:
            await account.channel.stop_intake()
        await parts.pipeline.close()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._scheduler.close()
        await parts.restart.close()
        await parts.lanes.drain(parts.restart.left)
        await parts.background.close(BACKGROUND_GRACE)
        await parts.commands.drain(OUTBOX_GRACE)
        await parts.outbox.close(OUTBOX_GRACE)
        parts.bus.close()
        if self._traces is not None:
            await self._traces.close()
        if self.gateway is not None:
            await self.gateway.close()
        for account in parts.accounts:
            await account.channel.close()
        for close in parts.closing:
            await close()
        await parts.store.close()

    async def _once_possible(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take a step of the start. While the store cannot be used it is tried again, and `/readyz` says why."""

        async def wait(error: StoreUnavailable) -> None:
            if str(error) != self.parts.health.obstacle:
                self.parts.health.obstacle = str(error)
                log.error("the service waits with its start", reason=self.parts.health.obstacle)
                self._on_wait(error)
            await self.parts.clock.sleep(PROBE_EVERY)

        await once_available(step, wait)
        if self.parts.health.obstacle:
            log.info("the service goes on with its start")
        self.parts.health.obstacle = None

    def _in_background(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._background.append(task)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """Log the failure of a part of the service, and show it in `/readyz`."""
        if not task.cancelled() and (error := task.exception()):
            log.error("a part of the service has failed", part=task.get_name(), exc_info=error)
            self.parts.health.obstacle = f"{task.get_name()} has failed: {error}"

    async def _recover(self) -> None:
        """End the processes that earlier runs left, and repair turns that a crash cut."""
        store = self.parts.store
        over = []
        for leftover in await store.recovery.leftovers(self.parts.worker):
            if await asyncio.to_thread(end_leftover, leftover.pid, leftover.started):
                told = wording.background_cut(leftover.background) if leftover.background else ""
                over.append(replace(leftover, told=told, origins=_CUT))
            else:
                log.warning("a process of an earlier run cannot be ended", pid=leftover.pid)
        await store.recovery.forget(over)
        await self.parts.dispatcher.beats.rooms.lineage.recover()
        await store.recovery.ready()
        for turn in await store.recovery.cut_turns(self.parts.worker):
            goes_on = await store.recovery.recover(turn.turn_id, self.parts.worker, await self._give_up(turn))
            log.info("turn recovered", turn=turn.turn_id, goes_on=goes_on)

    async def _tell_of_salvage(self) -> None:
        found = self.parts.store.salvage
        if found is not None:
            await self.parts.outbox.tell_owner(sentence("salvage", found.at), wording.salvaged(found))

    async def _give_up(self, turn: CutTurn) -> Sequence[Planned]:
        """Make what a person is told of a turn that is not tried again."""
        parts = self.parts
        found = await parts.store.schedules.firing_of(turn.turn_id)
        job = found[1] if found else None
        said = wording.job_failed(job, wording.JOB_CRASHED_TWICE) if job else wording.CRASHED_TWICE
        return parts.outbox.notice(of_turn(turn.turn_id, "error"), said, turn.channel) if said else ()

    async def _begin_runs(self) -> None:
        """Start the lanes once the model's library is imported: seconds during which the other parts already work.

        A turn is claimed only when its model can really be asked, because the death of the process counts as a crash
        of every claimed turn.
        """
        try:
            await self.parts.fleet.preload()
        except Exception as error:
            log.warning("the model client is not ready yet", reason=str(error))
        self._on_preloaded()
        await self._once_possible(self.parts.lanes.start)
        self.parts.dispatcher.hurry = self._scheduler.hurry
        self._scheduler.start()

    async def _prune(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # the store says by itself when it cannot write
                await self.parts.store.prune()
                await self.parts.sessions.tidy()
            await self.parts.clock.sleep(PRUNE_EVERY)

    async def _sweep(self) -> None:
        while True:
            await self.parts.clock.sleep(SWEEP_EVERY)
            try:
                await self.parts.lanes.sweep()
                self.parts.requests.hurry()
                await self.parts.pairing.tell()
                await self.parts.outbox.serve_open()
            except Exception:
                log.exception("sweep failed")

    async def _probe_store(self) -> None:
        """While the store cannot write, try: nobody else may, and `/readyz` has to turn green again by itself."""
        while True:
            await self.parts.clock.sleep(PROBE_EVERY)
            if self.parts.store.failure is not None and await self.parts.store.try_write():
                log.info("the store can write again")


async def create_workspace(root: Path) -> None:
    """Make the workspace folder. Raises StoreUnavailable while its disk is full, else OSError with one sentence."""
    try:
        await asyncio.to_thread(workspace_files.create, root)
    except (OSError, WorkspaceError) as error:
        if passes(error) or passes(error.__cause__):
            raise StoreUnavailable(f"the workspace {root} cannot be made: no room is left on its disk.") from error
        reason = (error.strerror if isinstance(error, OSError) else str(error)) or "unknown error"
        if isinstance(error, FileExistsError | NotADirectoryError):
            reason = "it is not a folder"
        raise OSError(
            f"the workspace {root} cannot be used: {reason.rstrip('.')}. "
            "Name a folder that Hark may write in (`workspace:` in the configuration)."
        ) from error
