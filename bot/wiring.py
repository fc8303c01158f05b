"""The only place where parts of different packages are put together: a configuration in, a service out."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.hooks import Hook
from agent.models.base import ModelClient
from agent.models.fleet import Fleet
from agent.prompt.requests import Requests as LastRequests
from agent.sandbox.base import Confinement
from agent.sandbox.proof import choose
from agent.tools.background import Background
from agent.tools.base import Tool, ToolFactory
from agent.window import Scale
from bot import all_commands, catalogue, furniture
from bot.approvals.commands import ApprovalCommands
from bot.approvals.requests import Requests
from bot.background.control import Control
from bot.background.jobs import Jobs
from bot.background.schedule_tool import ScheduleTool
from bot.bus import EventBus
from bot.children import tools as session_tools
from bot.children.subagents import SubAgents
from bot.clock import Clock
from bot.commands.registry import Askers, Command
from bot.compose import composer
from bot.config import extensions
from bot.config.choose_model import Probe, probe_ollama
from bot.config.file import ConfigFile
from bot.config.model import Config
from bot.config.prices import Prices
from bot.config.sending import denied
from bot.gateway.agent_api import AgentApi
from bot.gateway.balance import Book
from bot.gateway.status import Health, Status
from bot.gateway.unix_socket import SOCKET
from bot.gateway.usage import UsageReport
from bot.hooks.found import ServiceHooks, load
from bot.hooks.points import MessageReceived
from bot.inbound.commands import CommandRunner
from bot.inbound.pairing import Pairing, new_code
from bot.inbound.pipeline import Pipeline
from bot.inbound.routing import Routing
from bot.mcp.servers import Servers
from bot.memory.filing import Filing
from bot.memory.service import Memories
from bot.memory.write_tool import MemoryWriteTool
from bot.people.conversations import Conversations, is_stale
from bot.people.people import People
from bot.persistence.errors import StoreUnavailable
from bot.reload.reload import Reload
from bot.runs.budgets import Budgets
from bot.runs.journal import RunDependencies
from bot.runs.keeping import KeepingDependencies
from bot.runs.lanes import Lanes
from bot.runs.messaging import Messaging
from bot.runs.outages import OutageWatch
from bot.runs.permissions import Permissions
from bot.runs.prompts import Prompts
from bot.runs.receipts import Receipts
from bot.runs.runner import Presentation, TurnRunner
from bot.runs.specs import Specs, Toolbox
from bot.service import Parts, Service, Serving, create_workspace
from bot.sessions.commands import SessionCommands
from bot.sessions.service import Sessions
from bot.store.store import Store
from bot.store.writer import CommitProbe
from channels.base import Channel
from channels.session_key import link_index

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
    # Besides those of the configuration and the folder beside it.
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
    # The configuration, where it is watched and changed, and the service can be restarted.
    file: ConfigFile | None = None
    # Told of secrets that a changed configuration has.
    learn: Callable[[Iterable[str]], None] = lambda secrets: None


async def build(config: Config, given: Dependencies) -> Service:
    """Take the state directory and put everything together; nothing is opened before `Service.start`.

    Raises ConfigError, StateLocked or OSError.
    """
    given, clock = _extended(given, extensions.load(config.extensions)), given.clock
    wanted = config.tools.exec.sandbox if config.tools.exec.security != "deny" else "none"
    proving = asyncio.create_task(asyncio.to_thread(choose, wanted), name="prove-sandbox")
    known = await asyncio.to_thread(catalogue.choose, config, given.environ, given.ollama, given.model)
    with contextlib.suppress(StoreUnavailable):  # the start waits for room on the disk
        await create_workspace(config.workspace)
    bus = EventBus()
    stale = partial(is_stale, config.sessions.reset, clock.zone)
    compose = composer(clock.stamp, shared=config.sessions.dm_scope == "main")
    prices = Prices(known.find)
    unsent = denied(config.send_policy)
    store = Store(config.state, clock, compose, bus.announce, given.commit_probe, stale, prices.cost, unsent)
    try:
        confinement = furniture.confinement(config, await proving)
        fleet = Fleet(known.clients, known.stand_ins(), clock.now, store.outages.rest, store.outages.refuses)
        budgets = Budgets(config.budget, store, clock, prices, known.offered())
        hooks = await load(config, config.environ(given.environ), known.redactor.clean, given.hooks)
        return _assemble(config, given, known, fleet, budgets, store, bus, confinement, hooks)
    except BaseException:
        await store.close()
        raise


def _extended(given: Dependencies, loaded: extensions.Loaded) -> Dependencies:
    """What a service takes from outside, with what extensions bring."""
    tools, hooks = (*given.tool_factories, *loaded.tools), (*given.hooks, *loaded.hooks)
    return replace(given, tool_factories=tools, hooks=hooks)


def _assemble(
    config: Config,
    given: Dependencies,
    known: catalogue.Catalogue,
    fleet: Fleet,
    budgets: Budgets,
    store: Store,
    bus: EventBus,
    confinement: Confinement,
    hooks: ServiceHooks,
) -> Service:
    """Make the parts that runs need, and connect them; then the rest."""
    names = fleet.clients(known.chosen.name)[0].name, fleet.clients(known.beating.name)[0].name
    clock, people = given.clock, People(store, config.owners, link_index(config.sessions.identity_links))
    accounts = furniture.accounts(config, clock, given.channels, only_local=given.only_local)
    conversations = furniture.conversations(config, store, accounts, people)
    given, mcp = _with_mcp(config, given, store)
    lanes = Lanes(store, clock, people, config.agent.max_concurrent, config.agent.subagents.max_concurrent)
    outbox = furniture.outbox(config, clock, store, people, accounts, hooks)
    requests = Requests(store, clock, outbox, conversations, config.approvals, lanes.wake)
    rooms = furniture.rooms(config, conversations, store, outbox, clock, given.environ)
    dispatcher = furniture.dispatcher(config, clock, store, lanes, outbox, conversations, rooms, known.beating, bus)
    running = Background(dispatcher.command_over, rooms.overflow_of, clock.monotonic)
    memory = Memories(config.state, rooms, clock, config.memory, extensions.load(config.extensions).memory)
    writing = MemoryWriteTool(Filing(store.memories, rooms), clock)
    furnishing = partial(furniture.furnishing, known.redactor, running, requests, confinement, rooms, memory, writing)
    rooms.furnish = furnishing(config)
    messaging = Messaging(clock.nonce, outbox, conversations, rooms, config.tools.message.reach)
    subagents = furniture.subagents(config, store, clock, fleet, lanes, people)
    keeping = KeepingDependencies(store, outbox, budgets, clock, running, hooks)
    specs = _specs(config, given, store, fleet, names, messaging, requests, Jobs(dispatcher), keeping, subagents)
    outages = OutageWatch(store, clock, outbox, fleet, budgets, lanes.wake, config.delivery.max_age)
    receipts = Receipts(config.agent.receipts, outbox, clock)
    services = (store, outbox, bus, clock, requests, outages, budgets, rooms)
    around = RunDependencies(*services, clock.new_id(), people.is_owner, receipts, hooks)
    presentation = Presentation(accounts=accounts, heartbeat=config.heartbeat, store=store, clock=clock)
    media = furniture.media(config, rooms, accounts, outbox)
    lanes.runner = TurnRunner(around, specs, presentation, media, memory.recall)
    reload = Reload(
        file=given.file,
        config=config,
        known=known,
        specs=specs,
        presentation=presentation,
        runs=around,
        lanes=lanes,
        dispatcher=dispatcher,
        memory=memory,
        fleet=fleet,
        restart=furniture.restart(config, clock, given.file, store, outbox, lanes),
        subagents=subagents,
        askers=Askers(people.is_owner, config.approvals.approvers),
        hooks=hooks,
        furnishing=furnishing,
        given=given.channels,
        learn=given.learn,
        mcp=mcp,
    )
    return _serve(config, given, known, confinement.shown, reload, names[0])


def _serve(
    config: Config, given: Dependencies, known: catalogue.Catalogue, sandbox: str, reload: Reload, model: str
) -> Service:
    """Make what people and programs see of a service. reload: knows the parts that runs need."""
    around, lanes, specs, dispatcher = reload.runs, reload.lanes, reload.specs, reload.dispatcher
    store, outbox, clock, requests = around.store, around.outbox, around.clock, around.requests
    running, accounts = specs.keeping.background, reload.presentation.accounts
    conversations = specs.toolbox.messaging.conversations
    approvals, health = ApprovalCommands(requests, store, outbox, clock), Health(accounts, store, clock.now)
    book = Book(store, clock, health)
    lines = [("heartbeat", Control(dispatcher).sentence), ("book", book.line), ("event loop", health.lag.sentence)]
    lines.append(("sub-agents", reload.subagents.sentence))
    status = Status(store, lanes, reload.fleet, model, known.chosen.why, sandbox, clock, health, specs, lines)
    pairing = Pairing(store, clock, conversations.people, outbox, accounts, running, lanes.stop)
    sessions, forget = furniture.transcripts(config, known, around, lanes, running)
    transcripts = SessionCommands(sessions, outbox, running, requests, around.rooms)
    features = (status, pairing, approvals, specs, running, lanes, Jobs(dispatcher), UsageReport(store, clock))
    others = (transcripts, reload.restart, reload, reload.subagents)
    registry = all_commands.build(config, known.offered(), *features, *others, others=given.commands)
    commands = CommandRunner(store, outbox, lanes, clock, registry, reload.askers, approvals, reload.hooks)
    pipeline = _pipeline(known, conversations, commands, requests, pairing)
    reload.routing, reload.sink, reload.sessions = pipeline.routing, pipeline, sessions
    parts = Parts(
        store=store,
        worker=around.worker,
        outbox=outbox,
        lanes=lanes,
        commands=commands,
        pipeline=pipeline,
        people=conversations.people,
        pairing=pairing,
        accounts=accounts,
        health=health,
        fleet=reload.fleet,
        look_up_prices=partial(around.budgets.prices.look_up, known.offered()),
        outages=around.outages,
        clock=clock,
        config=config,
        bus=around.bus,
        api=AgentApi(store, pipeline, lanes, around.bus, clock, requests.hurry, reload.fleet.knows),
        dispatcher=dispatcher,
        book=book,
        requests=requests,
        background=running,
        sessions=sessions,
        forget=forget,
        workspace=config.workspace,
        sandbox=sandbox,
        restart=reload.restart,
        serving=_serving(reload, book, sessions, watched=given.file is not None),
        closing=(reload.hooks.stop, reload.mcp.close, reload.fleet.close, reload.memory.close),
        mcp=reload.mcp,
    )
    return Service(parts, given.on_preloaded, given.on_wait, _gateway(config, given, parts, status))


def _with_mcp(config: Config, given: Dependencies, store: Store) -> tuple[Dependencies, Servers]:
    """Make the MCP servers, and add their tools where there are any."""
    mcp = Servers(config, store, given.clock)
    factories = (*given.tool_factories, mcp.tools) if config.mcp.servers else given.tool_factories
    return replace(given, tool_factories=factories), mcp


def _serving(reload: Reload, book: Book, sessions: Sessions, *, watched: bool) -> Serving:
    """Return what works for as long as the service runs. watched: whether the configuration is."""
    around = reload.runs
    return (
        ("balance", book.serve),
        ("requests", around.requests.serve),
        ("outages", around.outages.serve),
        ("search-index", sessions.serve),
        ("memory", reload.memory.serve),
        ("memory-digest", furniture.digest(around, lambda: reload.config.memory.digest_every)),
        ("mcp", reload.mcp.serve),
        ("hooks", reload.hooks.serve),
        *((("watch-configuration", reload.watch),) if watched else ()),
    )


def _gateway(config: Config, given: Dependencies, parts: Parts, status: Status) -> "Gateway | None":
    """Make the HTTP interface of the service; None where it has none."""
    if not given.gateway:
        return None
    from bot.gateway import app
    from bot.gateway.send_routes import SendRoutes
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
        restart=parts.restart,
        freezer=parts.freezer,
        book=parts.book,
        sessions=parts.sessions,
        forget=parts.forget,
        sending=SendRoutes(parts.store, parts.outbox, parts.dispatcher.conversations),
        skills=parts.skills,
        mcp=parts.mcp,
    )
    return Gateway(routes, config.state / SOCKET, None if given.only_local else config.gateway)


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
    subagents: SubAgents,
) -> Specs:
    rooms, conversations = messaging.rooms, messaging.conversations
    accounts, people = conversations.accounts, conversations.people
    answering, beating = furniture.answerers(config, names)
    toolbox = Toolbox(
        shared=given.tools,
        factories=given.tool_factories,
        messaging=messaging,
        scheduling=partial(ScheduleTool, jobs),
        sessions=session_tools.make(subagents),
        working=subagents.working,
        permissions=Permissions(
            tools=config.tools, channels=config.channels.sections(), accounts=accounts, people=people, rooms=rooms
        ),
    )
    prompts = Prompts(
        store=store,
        name=config.agent.name,
        rooms=rooms,
        accounts=accounts,
        people=people,
        light_beats=config.heartbeat.light_context,
        hooks=keeping.hooks,
    )
    return Specs(
        clock=given.clock,
        fleet=fleet,
        answerer=answering,
        beating=beating,
        models_there=furniture.models_there(config, conversations),
        guest_models=config.agent.guest_models,
        rooms=rooms,
        toolbox=toolbox,
        prompts=prompts,
        requests=LastRequests(given.clock.now),
        rules=furniture.rules(config.tools, requests.grants.of, keeping.hooks, people),
        compaction=config.compaction.rules(),
        scale=Scale(),
        keeping=keeping,
        summarizer=extensions.load(config.extensions).context,
    )


def _pipeline(
    known: catalogue.Catalogue, talks: Conversations, commands: CommandRunner, requests: Requests, asking: Pairing
) -> Pipeline:
    """The sink of all channels; what strangers wrote goes into it once they are let in."""
    config, outbox, registry = known.config, commands.outbox, commands.registry
    routing = Routing(
        people=talks.people,
        conversations=talks,
        registry=registry,
        askers=commands.askers,
        queue=config.queue,
        new_code=partial(new_code, commands.clock.random),
        notice=outbox.notice,
        to_owner=partial(outbox.to_owner, both=True),
        joins=MessageReceived.point not in commands.hooks.points,
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
        settled=requests.hurry,
    )
    asking.begin = pipeline.begin
    return pipeline
