"""Makes what the tools of a session work with: its room, the sandbox of commands, and the tools of both."""

import os
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, get_args

import structlog

from agent.file_names import KEPT as WORKSPACE_FILES
from agent.hooks import Hooks
from agent.images import Images
from agent.message import ProvenanceKind
from agent.models.base import ModelSpec
from agent.models.fleet import Fleet
from agent.origins import OriginRules
from agent.removal import remove_leftovers
from agent.sandbox import cgroup
from agent.sandbox.base import Confinement
from agent.sandbox.kept import ROOMS
from agent.sandbox.proof import Proved
from agent.shares import Places
from agent.shell import Judge, parse_rule
from agent.spec import CallRules, Limits
from agent.tools.background import Background
from agent.tools.base import Tool
from agent.tools.exec import ExecTool, scrubbed
from agent.tools.output import Overflow
from agent.tools.permission import Permission
from agent.tools.process_tool import ProcessTool
from agent.tools.registry import tools_for
from agent.tools.search import AT_ONCE
from agent.tools.workspace import Workspace
from agent.web.fetch import Fetcher
from agent.web.pages import Kept
from agent.web.reach import Reach, host_and_port
from agent.web.search import Brave, DuckDuckGo, Provider, SearXNG
from agent.web.tools import WebFetchTool, WebSearchTool
from bot import voice
from bot.approvals.requests import Requests
from bot.background.beats import Beats
from bot.background.dispatcher import Dispatcher
from bot.background.firing import Starter
from bot.bus import EventBus
from bot.catalogue import Catalogue
from bot.children.subagents import SubAgents
from bot.clock import Clock
from bot.config.file import ConfigFile
from bot.config.model import Config, accounts_of
from bot.config.tools import Tools
from bot.config.web import Web
from bot.memory.digest import Digest
from bot.memory.filing import Filing
from bot.memory.service import Memories
from bot.outbox import Outbox
from bot.people.accounts import Account, Accounts
from bot.people.broken import broken
from bot.people.conversations import Conversations
from bot.people.people import People
from bot.persistence.errors import StoreUnavailable
from bot.restart import Restart
from bot.runs.guest_disk import GuestDisk
from bot.runs.journal import RunDependencies
from bot.runs.lanes import Lanes
from bot.runs.lineage import KnownFiles
from bot.runs.media import Media, saved_as
from bot.runs.rooms import Furniture, Room, Rooms, channel_of, of_one_person
from bot.runs.runner import PAUSE
from bot.runs.specs import Answerer
from bot.sessions.forgetting import Forget
from bot.sessions.service import Sessions
from bot.skills.shelf import Shelf
from bot.store.store import Store
from bot.store.writer import once_available
from bot.telemetry.redact import Redactor
from channels import registry as platforms
from channels.base import Channel, Times
from channels.message import InboundMessage
from channels.session_key import console_key, link_index
from channels.settings import ChannelSection
from channels.sources import sentence

log = structlog.get_logger()


def furnishing(
    redactor: Redactor,
    running: Background,
    requests: Requests,
    confinement: Confinement,
    rooms: Rooms,
    memory: Memories,
    remembering: Tool[Any],
    config: Config,
) -> Callable[[Room, Workspace], Furniture]:
    """Return the function that makes the tools and limits that the runs of a room work with."""
    searches = Places(AT_ONCE)
    settings, web = config.tools.exec, web_tools(config.web)
    permission = Permission(
        security=settings.security,
        asking=settings.ask,
        fallback=settings.ask_fallback,
        in_sandbox=settings.in_sandbox,
        network=settings.network,
        held=confinement.levels,
        judge=Judge(
            workspace=config.workspace,
            path=scrubbed(os.environ)["PATH"],
            allowlist=tuple(map(parse_rule, settings.allowlist)),
        ),
        grants=requests.grants.of,
    )

    def furnish(room: Room, workspace: Workspace) -> Furniture:
        commands: Sequence[Tool[Any]] = memory.tools(workspace, rooms.lineage)
        if settings.security != "deny":
            tool = ExecTool(workspace, settings.timeout_seconds, permission, confinement, running, rooms.lineage)
            commands = (tool, ProcessTool(running, permission), *commands)
        return Furniture(
            room=room,
            workspace=workspace,
            overflow=Overflow(workspace, redactor.clean, redactor.withheld),
            images=Images(workspace),
            tools=tools_for(
                workspace,
                commands=(*commands, *web, remembering),
                searches=searches,
                lineage=rooms.lineage,
                skill_home=partial(rooms.skills.home, channel_of(room), owned=room.owned),
            ),
        )

    return furnish


def bots(name: str, config: Config) -> Mapping[str, ChannelSection]:
    """Return the sections of the enabled accounts of a channel, and of a local one in any case, by their labels."""
    section = config.channels.sections()[name]
    found = section.bots() if section.local or section.enabled else {}
    return {f"{name}:{one}" if one else name: bot for one, bot in found.items() if section.local or bot.enabled}


def account(label: str, section: ChannelSection, clock: Clock) -> Account:
    """Make the adapter of an account."""
    times = Times(now=clock.now, monotonic=clock.monotonic, sleep=clock.sleep)
    name = label.partition(":")[0]
    try:
        return Account(label, platforms.build(name, section, times), section)
    except Exception as error:
        if name in platforms.OWN:
            raise
        log.exception("the channel of an extension cannot be made", channel=label)
        return Account(label, broken(name, error, clock.now()), section)


def accounts(config: Config, clock: Clock, given: Sequence[Channel], *, only_local: bool) -> Accounts:
    """Return the enabled accounts of all channels, and every local one, because `hark chat` needs the console."""
    sections = config.channels.sections()
    found = [Account(one.name, one, sections.get(one.name, ChannelSection())) for one in given]
    for name, section in sorted(sections.items(), key=lambda item: not item[1].local):
        if section.local or not only_local:
            found += [account(*one, clock) for one in bots(name, config).items()]
    return Accounts(found)


def conversations(config: Config, store: Store, known: Accounts, people: People) -> Conversations:
    """Make what answers questions about conversations."""
    return Conversations(
        reads=store.reads,
        accounts=known,
        people=people,
        scope=config.sessions.dm_scope,
        links=link_index(config.sessions.identity_links),
        several=several(config),
    )


def outbox(config: Config, clock: Clock, store: Store, people: People, known: Accounts, hooks: Hooks) -> Outbox:
    """Make the outbox of all channels that deliver."""
    made = Outbox(store, clock, int(config.delivery.max_age.total_seconds() * 1000), people, hooks)
    for account in known:
        if isinstance(account.channel, Channel):  # terminals read the store
            made.add_channel(account.channel)
    return made


def media(config: Config, rooms: Rooms, known: Accounts, outbox: Outbox) -> Media:
    """Make what fetches the files of messages and writes down voice messages; the outbox gets what says answers."""
    transcriber, outbox.speech = voice.build(config)
    return Media(rooms, known.delivering, transcriber)


def subagents(config: Config, store: Store, clock: Clock, fleet: Fleet, lanes: Lanes, people: People) -> SubAgents:
    """Make what starts sub-agents."""
    is_owner, agent = people.is_owner, config.agent
    return SubAgents(store=store, clock=clock, fleet=fleet, wake=lanes.wake, is_owner=is_owner, agent=agent)


def restart(
    config: Config, clock: Clock, file: ConfigFile | None, store: Store, outbox: Outbox, lanes: Lanes
) -> Restart:
    """Make what replaces the process. file: the configuration that the next one will read, if it is one."""
    drain, load = config.agent.drain_seconds, file.read if file else None
    return Restart(store=store, outbox=outbox, lanes=lanes, clock=clock, config=config, load=load, drain_seconds=drain)


def several(config: Config) -> Collection[str]:
    """Return the channels with more than one account."""
    return {name for name, section in config.channels.sections().items() if len(section.bots()) > 1}


def models_there(config: Config, conversations: Conversations) -> Callable[[InboundMessage], str] | None:
    """Return what finds the model that the configuration names for a place; None: it names none for any."""
    bots = [bot for _, bot in accounts_of(config.channels)]
    named = any(bot.model or any(group.model for group in bot.groups.allow.values()) for bot in bots)
    return conversations.model_there if named else None


def answerers(config: Config, names: tuple[str, str]) -> tuple[Answerer, Answerer]:
    """Return what answers people and jobs, and what answers beats. names: of their models."""
    agent, beats = config.agent, config.heartbeat
    limits = Limits(timeout=agent.timeout_seconds, idle_timeout=agent.idle_timeout_seconds, max_steps=agent.max_steps)
    own = replace(limits, timeout=beats.timeout_seconds, idle_timeout=0)
    thinking = beats.thinking or agent.thinking
    return Answerer(names[0], agent.thinking, limits), Answerer(names[1], thinking, own)


def web_tools(web: Web) -> tuple[Tool[Any], ...]:
    """Make the tools that read the web, which all rooms share."""
    private = frozenset(host_and_port(f"http://{one}") for one in web.fetch.allow_private)
    fetcher = Fetcher(Reach(private, web.fetch.fake_ip, key="web.fetch.allow_private"))
    key, base = web.search.api_key, web.search.base_url
    searching = Fetcher(Reach(frozenset({host_and_port(base)} if base else ()), web.fetch.fake_ip))
    brave = partial(Brave, key.get_secret_value() if key else "")
    providers: Mapping[str, Callable[..., Provider]] = {"brave": brave, "searxng": SearXNG, "duckduckgo": DuckDuckGo}
    provider = providers[web.search.provider](**({"base_url": base} if base else {}))
    most = web.fetch.follow.per_host, web.fetch.follow.per_task
    return WebFetchTool(fetcher, Kept(), most), WebSearchTool(provider, searching, Kept())


def rooms(
    config: Config, conversations: Conversations, store: Store, outbox: Outbox, clock: Clock, environ: Mapping[str, str]
) -> Rooms:
    """Make the rooms of sessions."""
    made = Rooms(
        root=config.workspace,
        people=conversations.people,
        accounts=conversations.accounts,
        scope=config.sessions.dm_scope,
        links=config.sessions.identity_links,
        has_token=config.gateway.token is not None,
    )
    made.disk = _guest_disk(config, made, store, outbox, clock)
    made.lineage = KnownFiles(store.file_origins, config.workspace)
    made.skills = Shelf(config.workspace, config.skills, environ, store.skills, clock, outbox.tell_owner)
    return made


def _guest_disk(config: Config, rooms: Rooms, store: Store, outbox: Outbox, clock: Clock) -> GuestDisk:
    """Make what bounds the files of guests."""

    async def pause(_: StoreUnavailable) -> None:
        await clock.sleep(PAUSE)

    async def named() -> Collection[str]:
        messages, sent = await once_available(store.reads.files_named, pause)
        waiting = {
            f"{rooms.of(key).name}/{saved_as(key, message, n)}"
            for key, message in messages
            for n in range(len(message.attachments))
        }
        return waiting | {path.removeprefix(f"{config.workspace.resolve()}/") for path in sent}

    async def tell(room: str) -> None:
        why = f"they take more than {disk.limit // 10**6:,} MB. Set guests.disk to allow more."
        text = f"I'm deleting the oldest files sent to {room}, because {why}"
        await once_available(partial(outbox.tell_owner, sentence("disk", "owner", room), text), pause)

    together = of_one_person(config.sessions.identity_links)
    disk = GuestDisk(root=config.workspace, limit=config.guests.disk, named=named, tell=tell, together=together)
    return disk


def confinement(config: Config, proved: Proved) -> Confinement:
    """Return how commands are confined; called once this process holds the lock of the state directory."""
    hidden = (config.state.resolve(), *(file.resolve() for file in config.source.files))
    for folder in (config.workspace, *(config.workspace / name for name in ROOMS)):  # which no command can make then
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = config.state / "commands"
    remove_leftovers(temporary)  # what a crash has left
    return Confinement(
        sandbox=proved.sandbox,
        why=f"{proved.why}. {cgroup.shown()}",
        hidden=hidden,
        kept=WORKSPACE_FILES,
        temporary=temporary,
    )


def rules(tools: Tools, granted: Callable[[str], Collection[str]], hooks: Hooks, people: People) -> CallRules:
    """Return the rules for the calls of all runs. granted: returns what people have allowed in a session."""
    untrusted = tuple(kind for kind in get_args(ProvenanceKind) if tools.untrusted.get(kind) != "allow")
    owners = OriginRules(untrusted=untrusted, trusts=lambda channel, sender: (channel, sender) in people.owners)
    return CallRules(asked_for=tools.require_approval, grants=granted, hooks=hooks, origins=owners)


def dispatcher(
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
    """Make what fires beats and jobs."""
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


def digest(around: RunDependencies, every: Callable[[], timedelta]) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return what asks people about memories that wait for them. every: the time between two digests."""
    return Digest(Filing(around.store.memories, around.rooms), around.outbox, around.clock, every).serve


def transcripts(
    config: Config, known: Catalogue, around: RunDependencies, lanes: Lanes, running: Background
) -> tuple[Sessions, Forget]:
    """Make what lists, keeps and prunes transcripts, and what forgets people."""
    store, clock, state = around.store, around.clock, config.state
    pruning, drop = config.sessions.prune, lanes.runner.contexts.forget
    sessions = Sessions(store=store, clock=clock, state=state, clean=known.redactor.clean, pruning=pruning)
    forget = Forget(
        store=store,
        clock=clock,
        rooms=around.rooms,
        background=running,
        state=state,
        lanes=lanes,
        drop_context=drop,
        file_memories=Filing(store.memories, around.rooms).settle,
    )
    return sessions, forget
