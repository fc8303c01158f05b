"""Makes what the tools of a session work with: its room, the sandbox of commands, and the tools of both."""

import asyncio
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, get_args

from agent.file_names import KEPT as WORKSPACE_FILES
from agent.images import Images
from agent.message import ProvenanceKind
from agent.origins import OriginRules
from agent.sandbox.base import Confinement
from agent.sandbox.proof import Proved
from agent.shell import Judge, parse_rule
from agent.spec import CallRules
from agent.tools.background import Background
from agent.tools.base import Hook, Tool
from agent.tools.exec import ExecTool, scrubbed
from agent.tools.lineage import Lineage
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
from bot.approvals.requests import Requests
from bot.config.model import Config
from bot.config.tools import Tools
from bot.config.web import Web
from bot.people.conversations import Conversations
from bot.people.people import People
from bot.runs.lineage import KnownFiles
from bot.runs.rooms import Furniture, Room, Rooms
from bot.store.store import Store
from bot.telemetry.redact import Redactor


def furnishing(
    config: Config,
    redactor: Redactor,
    running: Background,
    requests: Requests,
    confinement: Confinement,
    lineage: Lineage,
) -> Callable[[Room, Workspace], Furniture]:
    """Return the function that makes the tools and limits that the runs of a room work with."""
    searches = asyncio.Semaphore(AT_ONCE)
    settings, web = config.tools.exec, web_tools(config.web)
    permission = Permission(
        security=settings.security,
        asking=settings.ask,
        fallback=settings.ask_fallback,
        in_sandbox=settings.in_sandbox,
        network=settings.network,
        confined=confinement.sandbox is not None,
        judge=Judge(
            workspace=config.workspace,
            path=scrubbed(os.environ)["PATH"],
            allowlist=tuple(map(parse_rule, settings.allowlist)),
        ),
        grants=requests.grants.of,
    )

    def furnish(room: Room, workspace: Workspace) -> Furniture:
        commands: Sequence[Tool[Any]] = ()
        if settings.security != "deny":
            tool = ExecTool(workspace, settings.timeout_seconds, permission, confinement, running, lineage)
            commands = (tool, ProcessTool(running, permission))
        return Furniture(
            room=room,
            workspace=workspace,
            overflow=Overflow(workspace, redactor.clean, redactor.withheld),
            images=Images(workspace),
            tools=tools_for(workspace, commands=(*commands, *web), searches=searches, lineage=lineage),
        )

    return furnish


def web_tools(web: Web) -> tuple[Tool[Any], ...]:
    """Make the tools that read the web, which all rooms share."""
    private = frozenset(host_and_port(f"http://{one}") for one in web.fetch.allow_private)
    fetcher = Fetcher(Reach(private, web.fetch.fake_ip, key="web.fetch.allow_private"))
    key, base = web.search.api_key, web.search.base_url
    searching = Fetcher(Reach(frozenset({host_and_port(base)} if base else ()), web.fetch.fake_ip))
    brave = partial(Brave, key.get_secret_value() if key else "")
    providers: Mapping[str, Callable[..., Provider]] = {"brave": brave, "searxng": SearXNG, "duckduckgo": DuckDuckGo}
    provider = providers[web.search.provider](**({"base_url": base} if base else {}))
    return WebFetchTool(fetcher, Kept()), WebSearchTool(provider, searching, Kept())


def rooms(config: Config, conversations: Conversations, store: Store) -> Rooms:
    """Make the rooms of sessions."""
    made = Rooms(
        root=config.workspace,
        people=conversations.people,
        accounts=conversations.accounts,
        scope=config.sessions.dm_scope,
        links=config.sessions.identity_links,
        has_token=config.gateway.token is not None,
    )
    made.lineage = KnownFiles(store.file_origins, config.workspace)
    return made


def confinement(config: Config, proved: Proved) -> Confinement:
    """Return how commands are confined; called once this process holds the lock of the state directory."""
    hidden = (config.state.resolve(), *(file.resolve() for file in config.source.files))
    temporary = config.state / "commands"
    shutil.rmtree(temporary, ignore_errors=True)  # what a crash has left
    return Confinement(sandbox=proved.sandbox, why=proved.why, hidden=hidden, kept=WORKSPACE_FILES, temporary=temporary)


def rules(tools: Tools, granted: Callable[[str], Collection[str]], hooks: Sequence[Hook], people: People) -> CallRules:
    """Return the rules for the calls of all runs. granted: returns what people have allowed in a session."""
    untrusted = tuple(kind for kind in get_args(ProvenanceKind) if tools.untrusted.get(kind) != "allow")
    owners = OriginRules(untrusted=untrusted, trusts=lambda channel, sender: (channel, sender) in people.owners)
    return CallRules(asked_for=tools.require_approval, grants=granted, hooks=hooks, origins=owners)
