"""The configuration is watched, and what a running service can take over of it takes effect at once.

What is live (`bot/config/changes`) is made anew as a whole, by the functions that make it at the start, so that no key
is forgotten; the adapters of a channel are replaced when its section has changed, and the others are left alone. The
log has a line for each key that took effect, for each that needs a restart, and for a file that cannot be used.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from agent.models.fleet import Fleet
from agent.tools.workspace import Workspace
from bot import catalogue, furniture
from bot.background.dispatcher import Dispatcher
from bot.catalogue import Catalogue
from bot.children.subagents import SubAgents
from bot.clock import Clock
from bot.commands.registry import Askers
from bot.config.changes import changed, merged
from bot.config.document import VARIABLES
from bot.config.errors import ConfigError, KeyPath, dotted
from bot.config.file import ConfigFile
from bot.config.model import Config
from bot.config.secrets import secrets
from bot.config.sending import denied
from bot.hooks.found import ServiceHooks
from bot.inbound.routing import Routing
from bot.mcp.servers import Servers
from bot.memory.service import Memories
from bot.people.accounts import Account
from bot.people.conversations import is_stale
from bot.restart import Restart
from bot.runs.journal import RunDependencies
from bot.runs.lanes import Lanes
from bot.runs.rooms import Furniture, Room
from bot.runs.runner import Presentation
from bot.runs.specs import Specs
from bot.sessions.service import Sessions
from bot.store.writer import once_available
from channels.base import Channel, Sink
from channels.settings import ChannelSection

log = structlog.get_logger()

# Seconds between two looks at the files. What is found changed is read when it looks the same once more, so that nobody
# is read in the middle of writing.
LOOK = 0.5
# Seconds between tries while the store cannot be used.
_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What became of a reload, by dotted keys."""

    # Took effect.
    applied: tuple[str, ...] = ()
    # Need a restart, also since earlier reloads.
    waiting: tuple[str, ...] = ()
    # Why nothing was changed, one line each.
    mistakes: tuple[str, ...] = ()


@dataclass(eq=False, kw_only=True)
class Reload:
    """Takes over what has changed. Its fields are the parts that work by the configuration."""

    # None: it is neither watched nor changed.
    file: ConfigFile | None
    # What the service runs with.
    config: Config
    known: Catalogue
    specs: Specs
    presentation: Presentation
    runs: RunDependencies
    lanes: Lanes
    dispatcher: Dispatcher
    memory: Memories
    fleet: Fleet
    restart: Restart
    subagents: SubAgents
    askers: Askers
    hooks: ServiceHooks
    # Makes what rooms are furnished with by a configuration.
    furnishing: Callable[[Config], Callable[[Room, Workspace], Furniture]]
    # Channels that are not of the configuration.
    given: Sequence[Channel]
    # Told of the secrets that a configuration has.
    learn: Callable[[Iterable[str]], None]
    # Runs as it was configured at the start.
    mcp: Servers
    # To be set before `watch`.
    routing: Routing = field(init=False)
    sink: Sink = field(init=False)
    sessions: Sessions = field(init=False)
    # What was read last, and the keys of it that need a restart.
    _read: Config = field(init=False)
    _waiting: tuple[KeyPath, ...] = field(default=(), init=False)
    # The mistakes that were said last; they are said once.
    _said: tuple[str, ...] = field(default=(), init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        self._read = self.config

    @property
    def waiting(self) -> tuple[str, ...]:
        """The dotted keys that need a restart."""
        return tuple(map(dotted, self._waiting))

    async def watch(self) -> None:
        """Reload whenever one of the files has changed, until the task is cancelled."""
        assert self.file is not None
        before = self.file.seen
        while True:
            await self.runs.clock.sleep(LOOK)
            found = await asyncio.to_thread(self.file.signs)
            if found != self.file.seen and found == before:
                await self.again()
            before = found

    async def again(self) -> Reloaded:
        """Read the configuration and take over what can be; what could not be used changes nothing."""
        assert self.file is not None
        async with self._lock:
            try:
                new = await asyncio.to_thread(self.file.load)
                running = merged(self.config, new)
                if not set(new.source.files) <= set(self.config.source.files):
                    running = self.config  # commands in the sandbox could read what another file holds
                known = await asyncio.to_thread(catalogue.again, self.known, running)
            except ConfigError as error:
                mistakes = tuple(map(str, error.problems))
                if mistakes != self._said:
                    log.error(f"the configuration changes nothing, for it cannot be used: {'; '.join(mistakes)}")
                self._said = mistakes
                return Reloaded(mistakes=mistakes)
            known.redactor.learn(found := secrets(new, new.environ(self.file.environ)))
            self.learn(found)
            return await self._take(new, running, known)

    async def _take(self, new: Config, running: Config, known: Catalogue) -> Reloaded:
        """Let a configuration take effect, and say so. running: of `new`, what can."""
        self._said = ()
        applied = tuple(changed(self.config, running))
        now_waiting = tuple(changed(running, new))
        since = {*changed(self._read, new)}
        said = [one for one in now_waiting if one in since or one not in self._waiting]
        back = [one for one in self._waiting if one not in (*now_waiting, *applied)]
        hidden = new.source.variables != self._read.source.variables and not since
        if applied:
            await self._apply(running, known)
        self._read, self._waiting = new, now_waiting
        for path in applied:
            log.info(f"{dotted(path)} took effect")
        for path in said:
            log.warning(f"{dotted(path)} needs a restart")
        for path in back:
            log.info(f"{dotted(path)} is as it was again")
        if hidden:
            log.warning(f"{VARIABLES} has changed beside the keys of the configuration, which needs a restart")
        return Reloaded(tuple(map(dotted, applied)), tuple(map(dotted, now_waiting)))

    async def _apply(self, config: Config, known: Catalogue) -> None:
        """Make everything live anew by a configuration."""
        before, self.config, self.known = self.config, config, known
        specs, conversations = self.specs, self.specs.toolbox.messaging.conversations
        people, permissions, agent = conversations.people, specs.toolbox.permissions, config.agent
        permissions.tools, permissions.channels = config.tools, config.channels.sections()
        people.configure(config.owners)  # what was cached of rooms and permissions is outdated with it
        conversations.several = furniture.several(config)
        specs.toolbox.messaging.reach = config.tools.message.reach
        specs.models_there = furniture.models_there(config, conversations)
        specs.guest_models = agent.guest_models
        specs.answerer, specs.beating = furniture.answerers(config, (specs.answerer.model, specs.beating.model))
        specs.rules = furniture.rules(config.tools, self.runs.requests.grants.of, self.hooks, people)
        specs.compaction = config.compaction.rules()
        specs.rooms.refurnish(self.furnishing(config))
        if specs.rooms.disk is not None:
            specs.rooms.disk.limit = config.guests.disk
        specs.rooms.skills.settings = config.skills
        self.memory.configure(config.memory)
        specs.prompts.light_beats = config.heartbeat.light_context
        specs.keeping.budgets.allow(config.budget)
        self.fleet.fallbacks = known.stand_ins()
        self.presentation.heartbeat = self.dispatcher.beats.settings = config.heartbeat
        self.dispatcher.starter.most = config.schedules.max_concurrent
        self.runs.receipts.mode = agent.receipts
        self.runs.requests.settings = config.approvals
        self.runs.store.turns.stale = partial(is_stale, config.sessions.reset, self.runs.clock.zone)
        self.askers.approvers, self.routing.queue = config.approvals.approvers, config.queue
        self.routing.registry.stop_by(config.queue.stop_words)
        self.sessions.pruning = config.sessions.prune
        self.restart.drain_seconds = agent.drain_seconds
        self.lanes.allow(agent.max_concurrent, agent.subagents.max_concurrent)
        self.subagents.agent = agent
        # Nothing is awaited before this, so that who is no owner any more is none at once.
        for name, section in config.channels.sections().items():
            if section != before.channels.sections()[name]:
                await self._exchange(name, config, self.runs.clock)
        await once_available(self._begin_anew, lambda _: self.runs.clock.sleep(_PAUSE))

    async def _begin_anew(self) -> None:
        """Let turns go on that wait for a budget and plan the heartbeat, by what holds. Raises StoreUnavailable."""
        await self.runs.store.settings.deny(denied(self.config.send_policy))
        await self.dispatcher.beats.set_up()
        self.dispatcher.hurry()
        await self.runs.outages.load()
        await self.lanes.sweep()

    async def _exchange(self, name: str, config: Config, clock: Clock) -> None:
        """Put adapters of the present section of a channel in the place of those whose account has changed.

        The former ones stop to receive before the new ones begin, and no call of them is under way then; what they
        have not acknowledged comes again, and what they have not sent is in the store.
        """
        accounts, bots = self.presentation.accounts, furniture.bots(name, config)
        had = {one.label: one for one in accounts if one.channel.name == name and one.channel not in self.given}
        kept = {label for label in had if label in bots and _is_same(had[label].section, bots[label])}
        now = {label: had[label] if label in kept else furniture.account(label, bots[label], clock) for label in bots}
        gone, come = ([found[one] for one in found if one not in kept] for found in (had, now))
        try:
            for one in gone:
                await one.channel.stop_intake()
            accounts.exchange(gone, [*now.values()])
            await self.runs.outbox.exchange(_delivering(gone), _delivering(come))
        finally:
            for one in gone:
                await one.channel.close()
        for one in come:
            await one.start(self.sink)


def _is_same(old: ChannelSection, new: ChannelSection) -> bool:
    """Whether two sections of an account are the same, but for the further accounts of the first one."""
    return old.model_dump(exclude={"accounts"}) == new.model_dump(exclude={"accounts"})


def _delivering(accounts: Sequence[Account]) -> list[Channel]:
    return [one.channel for one in accounts if isinstance(one.channel, Channel)]
