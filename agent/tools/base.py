"""What a tool is: what it takes (a pydantic model), whether a person must be asked, and a call."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from agent.message import ToolOutput


class Parameters(BaseModel):
    """Base of all tool parameters: unknown names are refused, so that the model learns of its mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


P = TypeVar("P", bound=Parameters)
Verdict = Literal["once", "always", "denied", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a person must decide before a call may run.

    digest: of all that the decision is bound to (command, directory, …): it counts for a call that asks the same.
    approvers: who may decide, "channel:id" of each. seconds: until nobody can any more. words: for people, Markdown;
    empty: nothing is sent. otherwise: what the model is told when nobody decided.
    """

    digest: str
    approvers: tuple[str, ...]
    seconds: float
    words: str = ""
    otherwise: str = "Nobody decided in time whether this call may run. It was not executed."


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of an Ask. reason: given with it; of an expired one, its `otherwise`."""

    state: Verdict
    digest: str
    reason: str

    @property
    def allows(self) -> bool:
        """The call may run."""
        return self.state in ("once", "always")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Which call this is, and what a tool may tell while it runs.

    update: reports progress; events only, nothing is stored. started: to be awaited by a tool that starts a process,
    with its pid and the kernel's start time of it, BEFORE the process may do anything: it is stored, so that a
    leftover can be ended after a crash. background: of a run that no person asked for.
    """

    turn_id: str
    session_key: str
    call_id: str
    update: Callable[[str], None]
    started: Callable[[int, str], Awaitable[None]]
    background: bool = False


class Tool(Generic[P]):
    """Base class of tools. `parallel_safe` says that calls of one step may run beside others that say so too.

    `changes`: a call does something to the world, so that people are told when it failed for good. `speaks`: what
    people read may come from it, so that nothing has to be said besides. `trusted_only`: runs for callers whom nobody
    vouches for are made without it.

    An exception out of `asks` or `run` becomes an error result that the model can read, a ToolError word for word;
    cancellation ends the work at once and leaves nothing running.
    """

    name: str
    description: str
    parameters: type[P]
    parallel_safe: bool = False
    changes: bool = False
    speaks: bool = False
    trusted_only: bool = False

    async def asks(self, parameters: P, context: CallContext) -> Ask | None:
        """What a person must decide before this call may run; None: nothing. Without effects: it is asked again when
        the turn goes on."""
        return None

    async def run(self, parameters: P, context: CallContext) -> ToolOutput:
        """Do it; returns what the model reads."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """For which run tools are made. trusted: somebody vouches for the caller."""

    turn_id: str
    session_key: str
    trusted: bool


# Makes tools for one run; what they hold is closed with the context, when the run ends or parks.  What the model is
# told of them, and their order, is the same for every run of a session (promise 7 of the design): what differs is
# decided at the call. Opening has to bound its own time, and to offer tools that say so when it fails.
ToolFactory = Callable[[RunContext], AbstractAsyncContextManager[Sequence[Tool[Any]]]]
