"""What a run is made of: fixed before it starts, the same after a crash."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.events import RunRef
from agent.message import Message, Usage
from agent.models.base import ModelClient, ToolSpec
from agent.tools.base import Decision, Tool
from agent.tools.hooks import Hook
from agent.tools.overflow import Overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """timeout and idle_timeout in seconds of running time. timeout: of all attempts of a turn together.

    idle_timeout measures the model's silence, 0 is off. max_steps: model calls of one turn, cut ones too.
    """

    timeout: float = 600
    idle_timeout: float = 60
    max_steps: int = 60


async def as_they_are(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Of a request without files."""
    return messages


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One run, made from its turn. model: of the first step. ran: seconds of the turn's earlier attempts.

    step: answers of the model that the turn has already; usage: tokens it has cost already. now: milliseconds since the
    epoch; sleep: seconds. decisions: about calls that the turn was parked on, by their ids. shown: puts into messages
    what the files they name hold. background: no person asked for it, as of beats and jobs. may_be_empty: an empty
    answer is no mistake.

    Of calls: forbidden: why those who wrote the turn may not call a tool, by its name. as_guest: names of those that
    they may call for looking only, see `CallContext`. asked_for: patterns of tools about whose calls a person is asked;
    grants: what people have allowed for good. hooks: in order. redact: a text without secrets; withheld: how many
    characters at the end of a piece of one may be the beginning of a secret. overflow: keeps results that are too long.
    """

    ref: RunRef
    model: ModelClient
    system: str
    tools: Mapping[str, Tool[Any]]
    tool_specs: tuple[ToolSpec, ...]
    limits: Limits
    step: int
    usage: Usage
    ran: float
    now: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    shown: Callable[[tuple[Message, ...]], Awaitable[tuple[Message, ...]]] = as_they_are
    background: bool = False
    may_be_empty: bool = False
    forbidden: Callable[[str], str | None] = lambda name: None
    as_guest: Collection[str] = ()
    asked_for: tuple[str, ...] = ()
    grants: Callable[[], Collection[str]] = tuple
    hooks: Sequence[Hook] = ()
    redact: Callable[[str], str] = str
    withheld: Callable[[str], int] = lambda text: 0
    overflow: Overflow | None = None
