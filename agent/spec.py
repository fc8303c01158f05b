"""What a run needs: fixed before it starts, and the same when it is resumed after a crash."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agent.events import RunRef
from agent.hooks import Hooks
from agent.images import Images
from agent.message import Provenance, ToolSpec, Usage
from agent.models.base import ModelClient, ModelRequest
from agent.models.fleet import Route
from agent.origins import OriginRules
from agent.tools.base import Decision, Tool
from agent.tools.output import Overflow
from agent.window import Compaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a run may take."""

    # Running time of a turn in seconds, all attempts together.
    timeout: float = 600
    # How many seconds the model may be silent; 0: without limit.
    idle_timeout: float = 60
    # Model calls of one turn, cut ones included.
    max_steps: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """Rules for the calls of all runs."""

    # Patterns for names of tools; a person must allow each call of these tools.
    asked_for: tuple[str, ...]
    # Returns the grants by which people allowed calls that run in a session.
    grants: Callable[[str], Collection[str]]
    hooks: Hooks
    # Which text is untrusted.
    origins: OriginRules


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSet:
    """The tools of a session, and what the people who wrote the turn may do with them."""

    by_name: Mapping[str, Tool[Any]]
    # What the model is told about the tools.
    specs: tuple[ToolSpec, ...]
    # Names of tools that may not be called, with the reasons.
    refused: Mapping[str, str]
    # Names of tools that may be called only to look, see `CallContext.as_guest`.
    as_guest: Collection[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a turn has done in earlier attempts."""

    # How many answers the model has given.
    step: int
    usage: Usage
    # Running time in seconds.
    ran: float
    # Decisions about calls that the turn was parked on, by call id.
    decisions: Mapping[str, Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """One run of a turn."""

    ref: RunRef
    # The models and keys that are asked, one after the other when they fail.
    route: Route
    system: str
    # The origins of what the system prompt shows of files; empty if all of it is the operator's.
    origins: tuple[Provenance, ...]
    limits: Limits
    tools: ToolSet
    rules: CallRules
    progress: Progress
    # Loads the image files that messages name.
    images: Images
    # Keeps results that are too long, and removes secrets from them.
    overflow: Overflow
    # Returns the time in milliseconds since the epoch.
    now: Callable[[], int]
    # Waits for a number of seconds.
    sleep: Callable[[float], Awaitable[None]]
    # Called with each request before it is sent (images as paths), its model, the seq of the first line of the
    # transcript in it, and the estimated tokens of its messages; returns what takes the usage of the answer.
    sent: Callable[[ModelRequest, ModelClient, int, int], Callable[[Usage], None]]
    # The transcript of the turn; what is allowed for a task holds within it.
    transcript_id: str
    # Whether owners alone wrote what the turn answers.
    for_owners: bool
    # Keeps the requests within the window of the model.
    compaction: Compaction
    # Whether a beat or a job started the run instead of a person.
    background: bool
    # Whether an empty answer is accepted.
    may_be_empty: bool
