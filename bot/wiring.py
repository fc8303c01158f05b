"""The only place where parts of different packages are put together: a configuration in, a service out."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.models import registry as models
from agent.models.base import ModelClient, ThinkingLevel
from agent.models.spec import ModelSpec
from agent.spec import Limits
from agent.tools.base import Tool
from agent.tools.registry import Toolset, ToolSettings, tools_for
from agent.tools.workspace import Workspace, WorkspaceError
from agent.workspace_files import create as create_workspace
from bot.agent_api import AgentApi
from bot.bus import EventBus
from bot.clock import Clock
from bot.commands import builtin
from bot.commands.answers import CommandRunner
from bot.commands.status import Status
from bot.compose import composer
from bot.config.choose_model import ChosenModel, Probe, choose_model, probe_ollama
from bot.config.model import Config
from bot.gateway.unix_socket import SOCKET
from bot.health import Report
from bot.inbound.access import AccessRules, is_owner
from bot.inbound.pipeline import Pipeline, Routing
from bot.outbox import Outbox
from bot.replies import Cutting
from bot.runs.journal import Dependencies
from bot.runs.lanes import Lanes
from bot.runs.runner import TurnRunner
from bot.runs.specs import PromptParts, Specs
from bot.service import Parts, Service
from bot.store.errors import StoreUnavailable, passes
from bot.store.store import Store
from bot.store.writer import CommitProbe
from channels.base import Channel
from channels.console.adapter import ConsoleChannel
from channels.session_key import DmScope, link_index, session_key

if TYPE_CHECKING:
    from bot.gateway.server import Gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a service takes from outside; tests bring their own.

    model: instead of the one the configuration chooses. channels and tools: besides those of the configuration.
    only_local: no platforms and no TCP port, for `hark chat`. gateway: whether it is served at all. on_warm: called
    once everything heavy has been imported. on_wait: see `bot/service.py`. commit_probe: see `bot/store/writer.py`.
    """

    environ: Mapping[str, str]
    clock: Clock = field(default_factory=Clock)
    ollama: Probe = probe_ollama
    model: ModelClient | None = None
    channels: Sequence[Channel] = ()
    tools: Sequence[Tool[Any]] = ()
    gateway: bool = True
    only_local: bool = False
    on_warm: Callable[[], None] = lambda: None
    on_wait: Callable[[StoreUnavailable], None] = lambda error: None
    commit_probe: CommitProbe | None = None


async def build(config: Config, around: Surroundings) -> Service:
    """Take the state directory and put everything together; nothing is opened before `Service.start`.

    Raises ConfigError, StateLocked or OSError.
    """
    clock = around.clock
    chosen = await asyncio.to_thread(choose_model, config, around.environ, around.ollama)
    model = around.model or models.build(_model_spec(chosen, config.agent.thinking))
    with contextlib.suppress(StoreUnavailable):  # the start waits for room on the disk
        await _create_workspace(config.workspace)
    store = Store(config.state, clock, composer(clock.stamp), around.commit_probe)
    try:
        return _assemble(config, around, chosen, model, store)
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


def _assemble(config: Config, around: Surroundings, chosen: ChosenModel, model: ModelClient, store: Store) -> Service:
    """Make the parts and tell them of each other."""
    clock = around.clock
    outbox = Outbox(store, clock, int(config.delivery.max_age.total_seconds() * 1000), config.owners)
    channels = _channels(config, around)
    for channel in channels:
        outbox.add_channel(channel)
    bus = EventBus()
    runner = TurnRunner(
        Dependencies(store, outbox, bus, clock, partial(is_owner, config.owners)),
        _specs(config, around, store, model, _prompt_parts(config, channels)),
    )
    lanes = Lanes(store, clock, runner, config.agent.max_concurrent)
    why = chosen.why if around.model is None else "given"
    status = Status(store, lanes, model.name, why, clock.stamp, lambda: service.health())
    registry = builtin.build(status.text)
    commands = CommandRunner(store, outbox, lanes, bus, clock, registry, partial(is_owner, config.owners))
    pipeline = Pipeline(store, _routing(config), registry, lanes, commands, outbox)
    api = AgentApi(store, pipeline, lanes, bus, clock)
    service = Service(
        Parts(
            store=store,
            outbox=outbox,
            lanes=lanes,
            commands=commands,
            pipeline=pipeline,
            channels=channels,
            hidden=() if config.channels.console.enabled else ("console",),
            model=model,
            clock=clock,
            drain_seconds=config.agent.drain_seconds,
            bus=bus,
            api=api,
            create_workspace=partial(_create_workspace, config.workspace),
            on_warm=around.on_warm,
            on_wait=around.on_wait,
        )
    )
    if around.gateway:
        service.gateway = _gateway(config, around, service.parts, service.health, status)
    return service


def _gateway(
    config: Config, around: Surroundings, parts: Parts, health: Callable[[], Report], status: Status
) -> "Gateway":
    from bot.gateway.app import Served
    from bot.gateway.server import Gateway, GatewaySettings

    console = next((channel for channel in parts.channels if isinstance(channel, ConsoleChannel)), None)
    token = config.gateway.token
    settings = GatewaySettings(
        socket=config.state / SOCKET,
        host=config.gateway.host,
        port=None if around.only_local else config.gateway.port,
        token=token.get_secret_value() if token else None,
    )
    served = Served(
        api=parts.api, reads=parts.store.reads, bus=parts.bus, health=health, status=status.view, console=console
    )
    return Gateway(served, settings)


def _specs(config: Config, around: Surroundings, store: Store, model: ModelClient, prompt: PromptParts) -> Specs:
    settings = ToolSettings(
        allow=config.tools.allow,
        deny=config.tools.deny,
        exec_security=config.tools.exec.security,
        exec_timeout_seconds=config.tools.exec.timeout_seconds,
    )
    tools = (*tools_for(settings, Workspace(config.workspace)), *around.tools)
    agent = config.agent
    return Specs(
        store=store,
        clock=around.clock,
        model=model,
        tools=Toolset.of(tools),
        untrusted_tools=Toolset.of([tool for tool in tools if not tool.trusted_only]),
        limits=Limits(
            timeout=agent.timeout_seconds, idle_timeout=agent.idle_timeout_seconds, max_steps=agent.max_steps
        ),
        prompt=prompt,
        cutting=_cutting(config),
    )


def _model_spec(chosen: ChosenModel, thinking: str) -> ModelSpec:
    level: ThinkingLevel = "off"
    if chosen.thinking and thinking != "auto":
        level = thinking  # type: ignore[assignment]
    return ModelSpec(
        provider=chosen.provider_name,
        api=chosen.api,
        model=chosen.model,
        base_url=chosen.base_url,
        api_keys=tuple(key.get_secret_value() for key in chosen.keys),
        context_window=chosen.context_window,
        # a limit of our own where none is known, so that the answer has room in the window
        max_output=chosen.max_output or min(8192, chosen.context_window // 4),
        thinking=level,
        vision=chosen.vision,
        params=tuple(chosen.params.items()),
    )


def _channels(config: Config, around: Surroundings) -> list[Channel]:
    """The enabled channels; a platform's library is imported only here, only when it is needed."""
    found: list[Channel] = list(around.channels)
    found.append(ConsoleChannel(around.clock.now))  # `hark chat` needs it also where `hark run` has no terminal
    if config.channels.telegram.enabled and not around.only_local:
        from channels.telegram.adapter import TelegramChannel
        from channels.telegram.poll import Times
        from channels.telegram.settings import TelegramSettings

        section = config.channels.telegram
        assert section.token is not None, "the configuration refuses telegram without a token"
        settings = TelegramSettings(
            token=section.token.get_secret_value(), base_url=section.base_url, base_file_url=section.base_file_url
        )
        clock = around.clock
        found.append(TelegramChannel(settings, Times(now=clock.now, monotonic=clock.monotonic, sleep=clock.sleep)))
    return found


def _cutting(config: Config) -> dict[str, Cutting]:
    streaming = config.channels.telegram.streaming
    return {
        "telegram": Cutting(streaming.min_chars, streaming.max_chars, streaming.break_at),
        "console": Cutting(200, 4000),
        # a program wants the answer in one piece, and nothing is said before it is whole
        "http": Cutting(60_000, 100_000, "message_end"),
    }


def _prompt_parts(config: Config, channels: Sequence[Channel]) -> PromptParts:
    rules = {"http": "Your answer is handed to a program as Markdown."}
    rules |= {channel.name: channel.capabilities.rules for channel in channels}
    if config.channels.telegram.prompt and "telegram" in rules:
        rules["telegram"] += f"\n{config.channels.telegram.prompt}"
    return PromptParts(config.agent.name, config.workspace, rules)


def _routing(config: Config) -> Routing:
    links = link_index(config.sessions.identity_links)
    scope = DmScope(config.sessions.dm_scope)
    direct = config.channels.telegram.dm
    rules = AccessRules(direct.policy, frozenset(direct.allow_from), _owner_ids(config.owners, "telegram"))
    return Routing(
        session_key=lambda message: session_key(message.origin, scope, links, with_account=False),
        access={"telegram": rules},
    )


def _owner_ids(owners: Sequence[str], channel: str) -> frozenset[str]:
    prefix = f"{channel}:"
    return frozenset(owner.removeprefix(prefix) for owner in owners if owner.startswith(prefix))
