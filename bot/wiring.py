"""The only place where parts of different packages are put together: a configuration in, a service out."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.models.base import ModelClient, ModelSpec
from agent.models.fleet import Fleet
from agent.prompt.requests import Requests as LastRequests
from agent.sandbox.base import Confinement
from agent.sandbox.proof import choose
from agent.spec import Limits
from agent.tools.background import Background
from agent.tools.base import Hook, Tool, ToolFactory
from agent.tools.registry import same_for_all
from agent.window import Scale
from bot import catalogue, furniture
from bot.approvals.commands import ApprovalCommands
from bot.approvals.requests import Requests
from bot.background import commands as background_commands
from bot.background.beats import Beats
from bot.background.control import Control
from bot.background.dispatcher import Dispatcher
from bot.background.firing import Starter
from bot.background.jobs import Jobs
from bot.background.schedule_tool import ScheduleTool
from bot.bus import EventBus
from bot.clock import Clock
from bot.commands import builtin
from bot.commands.registry import Command
from bot.compose import composer
from bot.config.choose_model import Probe, probe_ollama
from bot.config.model import Config, accounts_of
from bot.config.prices import Prices
from bot.gateway.agent_api import AgentApi
from bot.gateway.status import Health, Status
from bot.gateway.unix_socket import SOCKET
from bot.gateway.usage import UsageReport
from bot.inbound import people_commands
from bot.inbound.commands import CommandRunner
from bot.inbound.pairing import Pairing, new_code
from bot.inbound.pipeline import Pipeline
from bot.inbound.routing import Routing
from bot.outbox import Outbox
from bot.people.accounts import Account, Accounts
from bot.people.conversations import Conversations, is_stale
from bot.people.people import People
from bot.persistence.errors import StoreUnavailable
from bot.runs import budget_waits, compact_command, context_command, settings_commands, stop_commands, tools_command
from bot.runs.budgets import Budgets
from bot.runs.journal import RunDependencies
from bot.runs.keeping import KeepingDependencies
from bot.runs.lanes import Lanes
from bot.runs.media import Media
from bot.runs.messaging import Messaging
from bot.runs.model_commands import ModelCommands
from bot.runs.outages import OutageWatch
from bot.runs.permissions import Permissions
from bot.runs.prompts import Prompts
from bot.runs.receipts import Receipts
from bot.runs.rooms import Rooms
from bot.runs.runner import Presentation, TurnRunner
from bot.runs.specs import Answerer, Specs, Toolbox
from bot.service import Parts, Service, create_workspace
from bot.store.store import Store
from bot.store.writer import CommitProbe
from channels import registry as platforms
from channels.base import Channel, Times
from channels.session_key import console_key, link_index
from channels.settings import ChannelSection

if TYPE_CHECKING:  # it imports the HTTP server, which not every service has
    from bot.gateway.server import Gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What a service takes from outside; tests bring their own."""

    environ: Mapping[str, str]
    clock: Clock = field(default_factory=Clock)
    ollama: Probe = probe_ollama
    # Answers in place of the model that the configuration chooses.
    model: ModelClient | None = None
    # Besides those of the configuration.
    channels: Sequence[Channel] = ()
    commands: Sequence[Command] = ()
    tools: Sequence[Tool[Any]] = ()
    tool_factories: Sequence[ToolFactory] = ()
    # Called around every call of a tool, in this order.
    hooks: Sequence[Hook] = ()
    # Whether the service is served over HTTP at all.
    gateway: bool = True
    # No platforms and no TCP port, as for `hark chat`.
    only_local: bool = False
    # See `Service`.
    on_preloaded: Callable[[], None] = lambda: None
    on_wait: Callable[[StoreUnavailable], None] = lambda error: None
    # See `Writer`.
    commit_probe: CommitProbe | None = None


async def build(config: Config, given: Dependencies) -> Service:
    """Take the state directory and put everything together; nothing is opened before `Service.start`.

    Raises ConfigError, StateLocked or OSError.
    """
    clock = given.clock
    wanted = config.tools.exec.sandbox if config.tools.exec.security != "deny" else "none"
    proving = asyncio.create_task(asyncio.to_thread(choose, wanted), name="prove-sandbox")
    known = await asyncio.to_thread(catalogue.choose, config, given.environ, given.ollama, given.model)
    with contextlib.suppress(StoreUnavailable):  # the start waits for room on the disk
        await create_workspace(config.workspace)
    bus = EventBus()
    stale = partial(is_stale, config.sessions.reset, clock.zone)
    compose = composer(clock.stamp, shared=config.sessions.dm_scope == "main")
    prices = Prices(known.find)
    store = Store(config.state, clock, compose, bus.announce, given.commit_probe, stale, prices.cost)
    try:
        confinement = furniture.confinement(config, await proving)
        fleet = Fleet(known.clients, known.stand_ins(), clock.now, store.outages.rest)
        budgets = Budgets(config.budget, store, clock, prices, known.offered())
        return _assemble(config, given, known, fleet, budgets, store, bus, confinement)
    except BaseException:
        await store.close()
        raise


def _assemble(
    config: Config,
    given: Dependencies,
    known: catalogue.Catalogue,
    fleet: Fleet,
    budgets: Budgets,
    store: Store,
    bus: EventBus,
    confinement: Confinement,
) -> Service:
    """Make the parts and connect them."""
    names = fleet.clients(known.chosen.name)[0].name, fleet.clients(known.beating.name)[0].name
    clock, accounts, people = given.clock, _accounts(config, given), People(store, config.owners)
    conversations = _conversations(config, store, accounts, people)
    outbox, lanes = _outbox(config, clock, store, people, accounts), Lanes(store, clock, config.agent.max_concurrent)
    requests = Requests(store, clock, outbox, conversations, config.approvals, lanes.wake)
    rooms, approvals = furniture.rooms(config, conversations, store), ApprovalCommands(requests, store, outbox, clock)
    dispatcher = _dispatcher(config, clock, store, lanes, outbox, conversations, rooms, known.beating, bus)
    running = Background(dispatcher.command_over, rooms.overflow_of, clock.monotonic)
    rooms.furnish = furniture.furnishing(config, known.redactor, running, requests, confinement, rooms.lineage)
    messaging, jobs = Messaging(clock.nonce, outbox, conversations, rooms, config.tools.message.reach), Jobs(dispatcher)
    keeping = KeepingDependencies(store, outbox, budgets, clock, running)
    specs = _specs(config, given, store, fleet, names, messaging, requests, jobs, keeping)
    outages = OutageWatch(store, clock, outbox, fleet, budgets, lanes.wake, config.delivery.max_age)
    around = _around(config, clock, store, outbox, bus, requests, outages, budgets, rooms)
    presentation = Presentation(accounts=accounts, heartbeat=config.heartbeat, store=store, clock=clock)
    lanes.runner = TurnRunner(around, specs, presentation, Media(rooms, accounts.delivering))
    health = Health([one for one in accounts if one.section.enabled or not one.section.local], store, clock.now)
    status = Status(store, lanes, fleet, names[0], known.chosen.why, confinement.shown, clock.stamp, health.view)
    pairing = Pairing(store, clock, people, outbox, accounts, running, lanes.stop)
    stops = stop_commands.StopCommands(store, clock, running, requests)
    listed = (status.command(), *stops.build(), *people_commands.build(pairing), *approvals.build(), *given.commands)
    registry = builtin.build(config.agent.name, (*listed, *_run_commands(known, clock, store, specs, lanes, jobs)))
    commands = CommandRunner(store, outbox, lanes, clock, registry, people.is_owner, approvals, stops)
    pipeline = _pipeline(known, conversations, commands, requests, pairing)
    parts = Parts(
        store=store,
        worker=around.worker,
        outbox=outbox,
        lanes=lanes,
        commands=commands,
        pipeline=pipeline,
        people=people,
        pairing=pairing,
        channels=[one.channel for one in accounts],
        health=health,
        fleet=fleet,
        look_up_prices=partial(budgets.prices.look_up, known.offered()),
        outages=outages,
        clock=clock,
        config=config,
        bus=bus,
        api=AgentApi(store, pipeline, lanes, bus, clock, requests.hurry, fleet.knows),
        dispatcher=dispatcher,
        requests=requests,
        background=running,
        workspace=config.workspace,
        sandbox=confinement.shown,
    )
    return Service(parts, given.on_preloaded, given.on_wait, _gateway(config, given, parts, status))


def _around(
    config: Config,
    clock: Clock,
    store: Store,
    outbox: Outbox,
    bus: EventBus,
    requests: Requests,
    outages: OutageWatch,
    budgets: Budgets,
    rooms: Rooms,
) -> RunDependencies:
    """Collect what every run works with, under a new name of this process."""
    return RunDependencies(
        store=store,
        outbox=outbox,
        bus=bus,
        clock=clock,
        requests=requests,
        outages=outages,
        budgets=budgets,
        rooms=rooms,
        receipts=Receipts(config.agent.receipts, outbox, clock),
        worker=clock.new_id(),
        is_owner=rooms.people.is_owner,
    )


def _run_commands(
    known: catalogue.Catalogue, clock: Clock, store: Store, specs: Specs, lanes: Lanes, jobs: Jobs
) -> tuple[Command, ...]:
    """Make the commands about runs: what is set for a session, what its requests are made of and cost, and jobs."""
    choosing = ModelCommands(
        store=store, fleet=specs.fleet, specs=specs, offered=known.offered(), prices=specs.keeping.budgets.prices
    )
    return (
        *settings_commands.build(store),
        *choosing.build(),
        UsageReport(store, clock).command(),
        budget_waits.build(store, clock, lanes.wake),
        tools_command.build(specs.toolbox, specs.rooms),
        context_command.build(specs, store, clock.stamp),
        compact_command.build(specs, store, lanes.runner.contexts),
        *background_commands.build(jobs, Control(jobs.dispatcher)),
    )


def _gateway(config: Config, given: Dependencies, parts: Parts, status: Status) -> "Gateway | None":
    """Make the HTTP interface of the service; None where it has none."""
    if not given.gateway:
        return None
    from bot.gateway import app
    from bot.gateway.server import Gateway

    routes = app.build(
        health=parts.health.view,
        status=status.view,
        api=parts.api,
        reads=parts.store.reads,
        bus=parts.bus,
        pairing=parts.pairing,
        control=Control(parts.dispatcher),
        requests=parts.requests,
        usage=UsageReport(parts.store, parts.clock),
    )
    return Gateway(routes, config.state / SOCKET, None if given.only_local else config.gateway)


def _conversations(config: Config, store: Store, accounts: Accounts, people: People) -> Conversations:
    return Conversations(
        reads=store.reads,
        accounts=accounts,
        people=people,
        scope=config.sessions.dm_scope,
        links=link_index(config.sessions.identity_links),
        several={name for name, section in config.channels.sections().items() if len(section.bots()) > 1},
    )


def _outbox(config: Config, clock: Clock, store: Store, people: People, accounts: Accounts) -> Outbox:
    outbox = Outbox(store, clock, int(config.delivery.max_age.total_seconds() * 1000), people)
    for account in accounts:
        if isinstance(account.channel, Channel):  # terminals read the store
            outbox.add_channel(account.channel)
    return outbox


def _dispatcher(
    config: Config,
    clock: Clock,
    store: Store,
    lanes: Lanes,
    outbox: Outbox,
    conversations: Conversations,
    rooms: Rooms,
    beating: ModelSpec,
    bus: EventBus,
) -> Dispatcher:
    starter = Starter(store, clock, lanes, config.schedules.max_concurrent)
    beats = Beats(
        store=store,
        clock=clock,
        starter=starter,
        outbox=outbox,
        conversations=conversations,
        rooms=rooms,
        settings=config.heartbeat,
        cost=lambda usage: beating.price.cost(usage) if beating.price else None,
        terminal_is_open=lambda: bus.is_read(console_key()),
    )
    return Dispatcher(store, clock, starter, outbox, conversations, beats)


def _specs(
    config: Config,
    given: Dependencies,
    store: Store,
    fleet: Fleet,
    names: tuple[str, str],
    messaging: Messaging,
    requests: Requests,
    jobs: Jobs,
    keeping: KeepingDependencies,
) -> Specs:
    agent, beats, rooms = config.agent, config.heartbeat, messaging.rooms
    conversations, bots = messaging.conversations, [bot for _, bot in accounts_of(config.channels)]
    named = any(bot.model or any(group.model for group in bot.groups.allow.values()) for bot in bots)
    accounts, people = conversations.accounts, conversations.people
    limits = Limits(timeout=agent.timeout_seconds, idle_timeout=agent.idle_timeout_seconds, max_steps=agent.max_steps)
    toolbox = Toolbox(
        factories=(same_for_all(given.tools), *given.tool_factories),
        messaging=messaging,
        scheduling=partial(ScheduleTool, jobs),
        permissions=Permissions(
            tools=config.tools, channels=config.channels.sections(), accounts=accounts, people=people, rooms=rooms
        ),
    )
    prompts = Prompts(
        store=store, name=agent.name, rooms=rooms, accounts=accounts, people=people, light_beats=beats.light_context
    )
    return Specs(
        clock=given.clock,
        fleet=fleet,
        answerer=Answerer(names[0], agent.thinking, limits),
        beating=Answerer(
            names[1], beats.thinking or agent.thinking, replace(limits, timeout=beats.timeout_seconds, idle_timeout=0)
        ),
        models_there=conversations.model_there if named else None,
        rooms=rooms,
        toolbox=toolbox,
        prompts=prompts,
        requests=LastRequests(given.clock.now),
        rules=furniture.rules(config.tools, requests.grants.of, given.hooks, people),
        compaction=config.compaction.rules(),
        scale=Scale(),
        keeping=keeping,
    )


def _accounts(config: Config, given: Dependencies) -> Accounts:
    """The enabled accounts of all channels, and every local one, because `hark chat` needs the console."""
    sections = config.channels.sections()
    found = [Account(one.name, one, sections.get(one.name, ChannelSection())) for one in given.channels]
    times = Times(now=given.clock.now, monotonic=given.clock.monotonic, sleep=given.clock.sleep)
    for name, section in sorted(sections.items(), key=lambda item: not item[1].local):
        if section.local or (section.enabled and not given.only_local):
            for account, bot in section.bots().items():
                if section.local or bot.enabled:
                    label = f"{name}:{account}" if account else name
                    found.append(Account(label, platforms.build(name, bot, times), bot))
    return Accounts(found)


def _pipeline(
    known: catalogue.Catalogue, talks: Conversations, commands: CommandRunner, requests: Requests, asking: Pairing
) -> Pipeline:
    """The sink of all channels; what strangers wrote goes into it once they are let in."""
    config, outbox, registry = known.config, commands.outbox, commands.registry
    routing = Routing(
        people=talks.people,
        conversations=talks,
        registry=registry,
        approvers=config.approvals.approvers,
        debounce=config.queue.debounce_ms,
        new_code=partial(new_code, commands.clock.random),
        notice=outbox.notice,
        to_owner=partial(outbox.to_owner, both=True),
    )
    pipeline = Pipeline(
        store=commands.store,
        routing=routing,
        people=talks.people,
        registry=registry,
        lanes=commands.lanes,
        runner=commands,
        outbox=outbox,
        clock=commands.clock,
        settings=config.catch_up,
        waits=requests.waits,
        asks=asking.tell,
        clean=known.redactor.clean,
    )
    asking.begin = pipeline.begin
    return pipeline
