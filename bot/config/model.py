"""Every key of the configuration, its type, its default and one line of why.

The sections are frozen values that `load` makes and everything else only reads. Keys that are named in the
project's plan but not here are refused with a sentence of their own (`explain.later`).
"""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, StringConstraints, create_model, field_validator, model_validator

from bot.config.background import Approvals, Heartbeat, Schedules
from bot.config.budget import Budget
from bot.config.compaction import CompactionSettings
from bot.config.errors import KeyPath, Problem
from bot.config.extensions import load
from bot.config.hooks import HookSections
from bot.config.mcp import Mcp
from bot.config.memory import Memory
from bot.config.providers import Provider, model_problem, provider_problem
from bot.config.references import Referred
from bot.config.sending import SendRule
from bot.config.skills import Skills
from bot.config.telemetry import Telemetry
from bot.config.tools import Tools
from bot.config.values import (
    ChatSort,
    ModelName,
    Person,
    Platform,
    Seconds,
    Size,
    Span,
    Thinking,
    TimeOfDay,
    Token,
    check_tools,
)
from bot.config.voice import Speech, Transcription
from bot.config.web import Web
from channels.registry import sections
from channels.section import Section, Whole, conflict, setting
from channels.session_key import DmScope
from channels.settings import AccountSection, ChannelSection, PlatformSection, QueueDrop, QueueMode

# A word or a few that somebody writes.
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40)]


class ChannelSections(Section):
    """The places where people talk to the bot."""

    def sections(self) -> dict[str, ChannelSection]:
        """The section of each channel by its name."""
        return {name: getattr(self, name) for name in type(self).model_fields}


# One field for each channel of the registry.
if TYPE_CHECKING:
    Channels = ChannelSections
else:
    Channels = create_model(
        "Channels",
        __base__=ChannelSections,
        __doc__=ChannelSections.__doc__,
        **{name: (found, setting(found(), found.__doc__)) for name, found in sections().items()},
    )


# Failures of models as the configuration names them.
FailureKind = Literal[
    "rate_limit", "overloaded", "auth", "billing", "timeout", "network", "context_overflow", "content_filter", "all"
]


def is_loopback(host: str) -> bool:
    """Whether a listener on `host` can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class FallbackModel(Section):
    """A model that stands in for others."""

    model: ModelName = Field(description="provider/model.")
    on: tuple[FailureKind, ...] = setting(("all",), "The failures for which it does.", min_length=1)


class Subagents(Section):
    """Sub-agents that the model starts for parts of its work."""

    max_depth: Whole = setting(1, "How deep they may start others; 1: they start none, 0: there are none.", le=5)
    max_children: Whole = setting(5, "How many of one conversation may work at the same time.", ge=1, le=100)
    max_concurrent: Whole = setting(8, "How many runs of them may go on at the same time.", ge=1, le=1000)


class Agent(Section):
    """Who answers, and within which limits."""

    name: str = setting("Hark", "What the bot calls itself.", min_length=1, max_length=80)
    model: ModelName | None = setting(None, "provider/model; without it the first model available answers.")
    fallbacks: tuple[FallbackModel, ...] = setting((), "Models that answer while the others do not, in this order.")
    guest_models: tuple[ModelName, ...] = setting((), "The models that guests may choose; empty: all that there are.")
    thinking: Thinking = setting("auto", "How long the model may think; auto leaves it to the model.")
    max_concurrent: Whole = setting(
        16,
        "How many runs may go on at the same time; guests have at most half of them, and each guest two.",
        ge=1,
        le=10_000,
    )
    subagents: Subagents = setting(Subagents(), "What the model may leave to sub-agents.")
    timeout_seconds: Seconds = setting(600, "Running time of one run, over restarts.", gt=0)
    idle_timeout_seconds: Seconds = setting(
        60, "Silence of the model before it is asked once more, then given up; 0 is off."
    )
    max_steps: Whole = setting(60, "Model calls in one run; then it sums up and stops.", ge=1)
    receipts: Literal["auto", "on", "off"] = setting(
        "auto", "A line of what was done under an answer; auto: in direct chats and terminals, on: in groups too."
    )
    drain_seconds: Seconds = setting(30, "How long runs may finish when the service is stopped.")


class Guests(Section):
    """What people who are no owners may take of this machine."""

    disk: Size = setting(200_000_000, "How much the files of one guest or group may take; the oldest sent go first.")


class Expiry(Section):
    """When a session begins anew by itself, with the next message of a person."""

    daily_at: TimeOfDay | None = setting(None, "Every day at this time of this machine's clock.")
    idle: Span | None = setting(None, "When nobody has written for so long.")


class Reset(Expiry):
    """The same for all sessions, or otherwise for some of them; what is written for those holds alone."""

    by_type: dict[ChatSort, Expiry] = setting({}, "By the sort of conversation.")
    by_channel: dict[Platform, Expiry] = setting({}, "By its channel; before its sort.")


class PruneTranscripts(Section):
    """Which transcripts are deleted by themselves; never those with which sessions go on."""

    max_age: Span | None = setting(None, "Those that nobody has used for so long; none without it.")
    max_transcripts: Whole | None = setting(None, "Those beyond so many of a session; none without it.", ge=1)


class Sessions(Section):
    """Which messages belong to the same session."""

    dm_scope: DmScope = setting("per-channel-peer", "What separates the sessions of direct messages.")
    identity_links: dict[Annotated[str, StringConstraints(min_length=1)], tuple[Person, ...]] = setting(
        {}, "One person under several ids, for the scopes that know people."
    )
    reset: Reset = setting(Reset(), "When a session begins anew by itself; never without it.")
    prune: PruneTranscripts = setting(PruneTranscripts(), "Which old transcripts are deleted.")

    @field_validator("identity_links")
    @classmethod
    def _one_person_each(cls, links: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        owner: dict[str, str] = {}
        for person, ids in links.items():
            for number, one in enumerate(ids):
                if owner.setdefault(one, person) != person:
                    raise conflict(f"`{one}` already belongs to `{owner[one]}`", (person, number))
        return links


class CatchUpSettings(Section):
    """What is read and answered of what was said while the bot was away."""

    max_age: Span = setting(
        timedelta(hours=24), "Messages older than this are passed over, which is said.", ge=timedelta(seconds=1)
    )
    max_conversations: Whole = setting(
        200, "How many conversations are read at once: direct ones first, then places that are let in.", ge=0
    )


class Queue(Section):
    """What happens to messages that come one after the other."""

    mode: QueueMode = setting(
        "collect",
        "What is written while a run is active: all of it is one turn, joins the run, is a turn each, or ends the run.",
    )
    debounce_ms: Whole = setting(
        1000,
        "Milliseconds for which a message waits for more of its sender; one answer for all. 0 is off.",
        ge=0,
        le=60_000,
    )
    cap: Whole = setting(20, "How many messages of a session may wait.", ge=1)
    drop: QueueDrop = setting(
        "summarise", "Where more would wait: the oldest is told in short, the oldest is dropped, or the newest is."
    )
    stop_words: tuple[Word, ...] = setting(
        (
            *("stop", "abort", "cancel", "halt", "stopp", "abbrechen", "arrête", "annuler", "alto", "cancelar", "para"),
            *("ferma", "annulla", "стоп", "停止", "停", "取消", "止めて", "ストップ", "중지"),
        ),
        "Words that are /stop where they are the whole message; [] is off.",
    )

    def there(self, account: AccountSection | None) -> "Queue":
        """Return what holds on an account."""
        said = account.queue.model_dump(exclude_none=True) if account else {}
        return self.model_copy(update=said) if said else self


class DeliverySettings(Section):
    """How answers are delivered."""

    max_age: Span = setting(timedelta(hours=24), "An answer that could not be delivered for so long is given up.")


class Gateway(Section):
    """The HTTP interface."""

    host: str = setting("127.0.0.1", "Address to listen on; beyond loopback needs a token.", min_length=1)
    port: Whole = setting(8420, "Port to listen on; 0 takes any free one.", ge=0, le=65535)
    token: Token = setting(
        None, "Bearer token that every request must carry; without it callers are persons, not owners."
    )

    @model_validator(mode="after")
    def _not_open_to_others(self) -> "Gateway":
        if self.token is None and not is_loopback(self.host):
            text = f"`{self.host}` can be reached from other machines; set gateway.token, or use 127.0.0.1"
            raise conflict(text, ("host",))
        return self


@dataclass(frozen=True, slots=True)
class Source:
    """Where a configuration comes from."""

    # The configuration file, `.env` and files that it refers to, which no command of the agent may read.
    files: tuple[Path, ...] = field(default=(), compare=False)
    # The variables of `.env`.
    variables: Mapping[str, str] = field(default_factory=dict, compare=False)
    # What stands elsewhere.
    referred: Referred = field(default=Referred(), compare=False)
    # Why it cannot be read here; only beside a service that runs with it.
    mistakes: tuple[Problem, ...] = field(default=(), compare=False)


def accounts_of(channels: ChannelSections) -> Iterator[tuple[KeyPath, AccountSection]]:
    """Yield the sections of all accounts with their keys; that of a platform stands for its only account."""
    for name, section in channels.sections().items():
        accounts = section.accounts if isinstance(section, PlatformSection) else {}
        for account, bot in {"": section, **accounts}.items():
            if isinstance(bot, AccountSection):
                yield ("channels", name, "accounts", account) if account else ("channels", name), bot


class Config(Section):
    """The whole configuration."""

    _source: Source = PrivateAttr(default=Source())

    agent: Agent = setting(Agent(), "Who answers, and within which limits.")
    owners: tuple[Person, ...] = setting((), "Who may configure and see everything.")
    guests: Guests = setting(Guests(), "What guests may take of this machine.")
    providers: dict[str, Provider] = setting({}, "Where models are asked, by a name of your choice.")
    channels: Channels = setting(Channels(), "Where people talk to the bot.")
    sessions: Sessions = setting(Sessions(), "Which messages belong together.")
    catch_up: CatchUpSettings = setting(CatchUpSettings(), "What was said while it was away.")
    queue: Queue = setting(Queue(), "Messages that come one after the other.")
    delivery: DeliverySettings = setting(DeliverySettings(), "How answers are delivered.")
    heartbeat: Heartbeat = setting(Heartbeat(), "What it looks at by itself.")
    schedules: Schedules = setting(Schedules(), "Reminders and jobs.")
    tools: Tools = setting(Tools(), "What the model may use.")
    approvals: Approvals = setting(Approvals(), "What a person has to allow.")
    compaction: CompactionSettings = setting(CompactionSettings(), "When conversations are summed up.")
    memory: Memory = setting(Memory(), "What is remembered by itself.")
    send_policy: tuple[SendRule, ...] = setting((), "Where what the model says is sent; without a rule everywhere.")
    budget: Budget = setting(Budget(), "What model calls may take.")
    extensions: tuple[str, ...] = setting((), "Installed distributions whose channels, tools, models, hooks are used.")
    telemetry: Telemetry = setting(Telemetry(), "What is written down beside the log.")
    skills: Skills = setting(Skills(), "Instructions that the model may read for certain tasks.")
    web: Web = setting(Web(), "What the model may read of the web.")
    mcp: Mcp = setting(Mcp(), "Servers whose tools the model may use.")
    transcription: Transcription = setting(Transcription(), "What writes down voice messages.")
    speech: Speech = setting(Speech(), "What says answers aloud.")
    hooks: HookSections = setting({}, "What is called at points of the work.")
    gateway: Gateway = setting(Gateway(), "The HTTP interface.")
    workspace: Path = setting(Path("workspace"), "The folder the agent works in, for it alone.")
    state: Path = setting(Path("state"), "The folder of the database, for the service alone.")

    @property
    def source(self) -> Source:
        """Where the configuration comes from."""
        return self._source

    def of(self, source: Source) -> "Config":
        """A copy of the configuration that comes from this source."""
        config = self.model_copy()
        config._source = source
        return config

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment of the service: the variables of `.env`, overridden by those of the process."""
        return {**self._source.variables, **environ}

    @field_validator("providers")
    @classmethod
    def _can_be_asked(cls, providers: dict[str, Provider]) -> dict[str, Provider]:
        for name, provider in providers.items():
            if problem := provider_problem(name, provider):
                raise conflict(problem[1], (name, problem[0]) if problem[0] else (name,))
        return providers

    @field_validator("channels")
    @classmethod
    def _tools_exist(cls, channels: Channels) -> Channels:
        for (_, *at), bot in accounts_of(channels):
            check_tools(bot.tools, (*at, "tools"))
            for group, rules in bot.groups.allow.items():
                check_tools(rules.tools, (*at, "groups", "allow", group, "tools"))
        return channels

    def models(self) -> list[tuple[KeyPath, str | None]]:
        """Return the keys that choose a model, with what is written there."""
        models: list[tuple[KeyPath, str | None]] = [
            (("agent", "model"), self.agent.model),
            (("heartbeat", "model"), self.heartbeat.model),
            (("compaction", "model"), self.compaction.model),
        ]
        models += [(("agent", "fallbacks", at, "model"), one.model) for at, one in enumerate(self.agent.fallbacks)]
        models += [(("agent", "guest_models", at), one) for at, one in enumerate(self.agent.guest_models)]
        for at, bot in accounts_of(self.channels):
            models.append(((*at, "model"), bot.model))
            models += [((*at, "groups", "allow", name, "model"), one.model) for name, one in bot.groups.allow.items()]
        return models

    @model_validator(mode="after")
    def _model_has_its_provider(self) -> "Config":
        for key, model in self.models():
            problem = model_problem(model, self.providers)
            if problem is not None:
                raise conflict(problem, key)
        return self


@lru_cache(maxsize=8)
def shaped(extensions: tuple[str, ...]) -> type[Config]:
    """Return the configuration with a section for each channel of these extensions."""
    found = load(extensions).channels
    if not found:
        return Config
    fields: dict[str, Any] = {name: (one, setting(one(), one.__doc__ or "")) for name, one in found.items()}
    channels = create_model("Channels", __base__=Channels, **fields)
    return create_model("Config", __base__=Config, channels=(channels, setting(channels(), "Where people talk to it.")))
