"""What a run is made of: fixed before it starts, the same after a crash.

Limits and rules of calls follow from the configuration, and tools from it and the session; what is of the turn alone
stands in the run itself.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.events import RunRef
from agent.images import Images
from agent.message import ToolSpec, Usage
from agent.models.base import ModelClient
from agent.tools.base import Decision, Hook, Tool
from agent.tools.overflow import Overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a run may take."""

    # Seconds of running time, of all attempts of a turn together.
    timeout: float = 600
    # Seconds for which the model may be silent; 0: as long as it likes.
    idle_timeout: float = 60
    # Model calls of one turn, cut ones too.
    max_steps: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """What holds for the calls of all runs."""

    # Patterns of the names of tools about whose calls a person is asked.
    asked_for: tuple[str, ...]
    # What people have allowed for good.
    grants: Callable[[], Collection[str]]
    # Around each call, in this order.
    hooks: Sequence[Hook]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSet:
    """The tools of a session, and what those who wrote the turn may do with them."""

    by_name: Mapping[str, Tool[Any]]
    # What the model is told of them.
    specs: tuple[ToolSpec, ...]
    # Why some of them may not be called, by name.
    refused: Mapping[str, str]
    # Names of those that may be called for looking only, see `CallContext`.
    as_guest: Collection[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a turn has done in earlier attempts."""

    # Answers of the model.
    step: int
    # Tokens.
    usage: Usage
    # Seconds of running time.
    ran: float
    # About calls that it was parked on, by their ids.
    decisions: Mapping[str, Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One run, made from its turn."""

    ref: RunRef
    # Of the first step.
    model: ModelClient
    system: str
    limits: Limits
    tools: ToolSet
    rules: CallRules
    progress: Progress
    # Puts into messages what the files they name hold.
    images: Images
    # Keeps results that are too long, and knows the secrets that none may hold.
    overflow: Overflow
    # Milliseconds since the epoch.
    now: Callable[[], int]
    # For so many seconds.
    sleep: Callable[[float], Awaitable[None]]
    # No person asked for it, as of beats and jobs.
    background: bool
    # An empty answer is no mistake.
    may_be_empty: bool
