"""The only place where parts of different packages are put together: a configuration in, a service out."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from agent.images import Images
from agent.models import registry as models
from agent.models.base import ModelClient
from agent.models.spec import ModelSpec
from agent.spec import Limits
from agent.tools.base import Tool, ToolFactory
from agent.tools.registry import is_allowed, same_for_all, tools_for
from agent.tools.workspace import Workspace, WorkspaceError
from agent.workspace_files import create as create_workspace
from bot.accounts import Account, Accounts
from bot.agent_api import AgentApi
from bot.bus import EventBus
from bot.clock import Clock
from bot.commands import builtin
from bot.commands.answers import CommandRunner
from bot.commands.registry import Command, Registry
from bot.commands.status import Status
from bot.compose import composer
from bot.config.choose_model import Probe, choose_model, probe_ollama
from bot.config.model import Config
from bot.config.values import MESSAGE
from bot.gateway.unix_socket import SOCKET
from bot.inbound.pairing import Pairing, new_code
from bot.inbound.people import People
from bot.inbound.pipeline import Pipeline
from bot.inbound.routing import Routing
from bot.inbound.staleness import is_stale
from bot.outbox import Outbox
from bot.persistence.errors import StoreUnavailable
from bot.runs.journal import RunDependencies
from bot.runs.lanes import Lanes
from bot.runs.media import Media
from bot.runs.messaging import Messaging
from bot.runs.runner import TurnRunner
from bot.runs.specs import Specs
from bot.service import Parts, Service
from bot.store.sqlite_errors import passes
from bot.store.store import Store
from bot.store.writer import CommitProbe
from channels.base import Channel, Times
from channels.session_key import link_index
from channels.settings import ChannelSection


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What a service takes from outside; tests bring their own.

    model: instead of the one the configuration chooses. channels, commands, tools and tool_factories: besides those of
    the configuration. only_local: no platforms and no TCP port, for `hark chat`. gateway: whether it is served at all.
    on_preloaded: called once everything heavy has been imported. on_wait: see `bot/service.py`. commit_probe: see
    `bot/store/writer.py`.
    """

    environ: Mapping[str, str]
    clock: Clock = field(default_factory=Clock)
    ollama: Probe = probe_ollama
    model: ModelClient | None = None
    channels: Sequence[Channel] = ()
    commands: Sequence[Command] = ()
    tools: Sequence[Tool[Any]] = ()
    tool_factories: Sequence[ToolFactory] = ()
    gateway: bool = True
    only_local: bool = False
    on_preloaded: Callable[[], None] = lambda: None
    on_wait: Callable[[StoreUnavailable], None] = lambda error: None
    commit_probe: CommitProbe | None = None


async def build(config: Config, given: Dependencies) -> Service:
    """Take the state directory and put everything together; nothing is opened before `Service.start`.

    Raises ConfigError, StateLocked or OSError.
    """
    clock = given.clock
    chosen = await asyncio.to_thread(choose_model, config, given.environ, given.ollama)
    model = given.model or models.build(chosen)
    with contextlib.suppress(StoreUnavailable):  # the start waits for room on the disk
        await _create_workspace(config.workspace)
    bus = EventBus()
    stale = partial(is_stale, config.sessions.reset, clock.zone)
    compose = composer(clock.stamp, shared=config.sessions.dm_scope == "main")
    store = Store(config.state, clock, compose, bus.ring, given.commit_probe, stale)
    try:
        return _assemble(config, given, chosen, model, store, bus)
    except BaseException:
        await store.close()
        raise


async def _create_workspace(root: Path) -> None:
    """Make the workspace. Raises StoreUnavailable while there is no room for it, else OSError with a sentence."""
    try:
        await asyncio.to_thread(create_workspace, root)
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


def _assemble(
    config: Config, given: Dependencies, chosen: ModelSpec, model: ModelClient, store: Store, bus: EventBus
) -> Service:
    """Make the parts and tell them of each other."""
    clock = given.clock
    people = People(store, config.owners)
    outbox = Outbox(store, clock, int(config.delivery.max_age.total_seconds() * 1000), people)
    accounts = _accounts(config, given)
    channels = [account.channel for account in accounts]
    for channel in channels:
        if isinstance(channel, Channel):  # terminals read the store
            outbox.add_channel(channel)
    worker = clock.new_id()
    workspace = Workspace(config.workspace)
    reach = config.tools.message.reach
    messaging = Messaging(
        store, clock, outbox, accounts, people, workspace, reach, lambda origin: routing.session_of(origin)
    )
    runner = TurnRunner(
        RunDependencies(store, outbox, bus, clock, workspace, worker, people.is_owner),
        _specs(config, given, store, model, accounts, people, workspace, messaging),
        Media(workspace, accounts.delivering),
    )
    lanes = Lanes(store, clock, runner, config.agent.max_concurrent)
    why = chosen.why if given.model is None else "given"
    status = Status(store, lanes, model.name, why, clock.stamp, lambda: service.health())
    pairing = Pairing(store, people, outbox, lambda *accepted: pipeline.begin(*accepted))
    registry = builtin.build(status.text, pairing.carry_out, store.reads.settings, config.agent.name, given.commands)
    commands = CommandRunner(store, outbox, lanes, clock, registry, people.is_owner)
    routing = _routing(config, accounts, people, registry, clock, outbox)
    pipeline = Pipeline(store, routing, people, registry, lanes, commands, outbox, clock, config.catch_up)
    api = AgentApi(store, pipeline, lanes, bus, clock)
    service = Service(
        Parts(
            store=store,
            worker=worker,
            outbox=outbox,
            lanes=lanes,
            commands=commands,
            pipeline=pipeline,
            people=people,
            pairing=pairing,
            channels=channels,
            listed=[one for one in accounts if one.section.enabled or not one.section.local],
            model=model,
            clock=clock,
            drain_seconds=config.agent.drain_seconds,
            bus=bus,
            api=api,
            create_workspace=partial(_create_workspace, config.workspace),
            on_preloaded=given.on_preloaded,
            on_wait=given.on_wait,
        )
    )
    if given.gateway:
        from bot.gateway.server import Gateway

        tcp = None if given.only_local else config.gateway
        service.gateway = Gateway(service, status.view, config.state / SOCKET, tcp)
    return service


def _specs(
    config: Config,
    given: Dependencies,
    store: Store,
    model: ModelClient,
    accounts: Accounts,
    people: People,
    workspace: Workspace,
    messaging: Messaging,
) -> Specs:
    tools = tools_for(
        workspace,
        allow=config.tools.allow,
        deny=config.tools.deny,
        exec_security=config.tools.exec.security,
        exec_timeout_seconds=config.tools.exec.timeout_seconds,
    )
    agent = config.agent
    return Specs(
        store=store,
        clock=given.clock,
        model=model,
        tools=(same_for_all((*tools, *given.tools)), *given.tool_factories),
        images=Images(workspace),
        limits=Limits(
            timeout=agent.timeout_seconds, idle_timeout=agent.idle_timeout_seconds, max_steps=agent.max_steps
        ),
        name=agent.name,
        workspace=config.workspace,
        accounts=accounts,
        people=people,
        messaging=messaging if is_allowed(MESSAGE, config.tools.allow, config.tools.deny) else None,
    )


def _accounts(config: Config, given: Dependencies) -> Accounts:
    """The enabled accounts; those of this machine also where they are not, because `hark chat` needs them."""
    sections = config.channels.sections()
    found = [Account(one.name, one, sections.get(one.name, ChannelSection())) for one in given.channels]
    clock = given.clock
    times = Times(now=clock.now, monotonic=clock.monotonic, sleep=clock.sleep)
    for name, section in sorted(sections.items(), key=lambda item: not item[1].local):
        if section.local or (section.enabled and not given.only_local):
            for account, bot in section.bots().items():
                if section.local or bot.enabled:
                    found.append(Account(f"{name}:{account}" if account else name, bot.build(times), bot))
    return Accounts(found)


def _routing(
    config: Config, accounts: Accounts, people: People, registry: Registry, clock: Clock, outbox: Outbox
) -> Routing:
    return Routing(
        accounts=accounts,
        people=people,
        registry=registry,
        scope=config.sessions.dm_scope,
        links=link_index(config.sessions.identity_links),
        several={name for name, section in config.channels.sections().items() if len(section.bots()) > 1},
        debounce=config.queue.debounce_ms,
        new_code=partial(new_code, clock.random),
        notice=outbox.notice,
    )
