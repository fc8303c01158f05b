"""What a tool is: what it takes (a pydantic model), whether a person must be asked, and a call."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.tools.workspace import Workspace


class Parameters(BaseModel):
    """Base of all tool parameters: unknown names are refused, so that the model learns of its mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


P = TypeVar("P", bound=Parameters)
# What becomes of an Ask: a call may run once, or always when the same is asked; a question is answered.
Verdict = Literal["once", "always", "denied", "answered", "expired"]


class Refused(ToolError):
    """A call is not allowed, and nobody is asked about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a person must decide before a call may run, or be asked for it.

    digest: of all that the decision is bound to (command, directory, session, …): it counts for a call that asks the
    same. subject: what it is about, in full; is_code: shown as code. why: it is asked, and risks: sentences for people.
    grants: what "always" allows from then on, and granted: the same for people; empty: that is not offered.
    question: the subject is one; options: answers to choose from; who: may answer: "asker", "owner", "anyone" who
    writes there, or "channel:id". seconds: until nobody can decide any more; None: as configured. otherwise: what the
    model is told when nobody did. runs_unanswered: then it runs all the same.
    """

    digest: str
    subject: str
    is_code: bool = True
    why: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    granted: str = ""
    question: bool = False
    options: tuple[str, ...] = ()
    who: str = "asker"
    seconds: float | None = None
    otherwise: str = "Nobody decided in time whether this call may run. It was not executed."
    runs_unanswered: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of an Ask. reason: given with it; the answer to a question; of an expired one, its `otherwise`."""

    state: Verdict
    digest: str
    reason: str

    def allows(self, ask: Ask) -> bool:
        """The call that asks this may run."""
        allowed = self.state in ("once", "always", "answered") or (self.state == "expired" and ask.runs_unanswered)
        return allowed and self.digest == ask.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Which call this is, and what a tool may tell while it runs.

    update: reports progress; events only, nothing is stored. started: to be awaited by a tool that starts a process,
    with its pid and the kernel's start time of it, BEFORE the process may do anything: it is stored, so that a
    leftover can be ended after a crash. background: of a run that no person asked for. decision: what became of its
    Ask. as_guest: whoever asks may only look: exec stays at look, message stays in this conversation.
    """

    turn_id: str
    session_key: str
    call_id: str
    update: Callable[[str], None]
    started: Callable[[int, str], Awaitable[None]]
    background: bool = False
    decision: Decision | None = None
    as_guest: bool = False


class Tool(Generic[P]):
    """Base class of tools. `parallel_safe` says that calls of one step may run beside others that say so too.

    `changes`: a call does something to the world, so that people are told when it failed for good. `speaks`: what
    people read may come from it, so that nothing has to be said besides. `trusted_only`: runs for callers whom nobody
    vouches for are made without it. `owner_only`: exists where only owners write. `polls`: the same call again and
    again is how it is used.

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
    owner_only: bool = False
    polls: bool = False

    async def asks(self, parameters: P, context: CallContext) -> Ask | None:
        """What a person must decide before this call may run; None: nothing. Without effects: it is asked again when
        the turn goes on. Raises Refused when it may not run, whoever decides."""
        return None

    async def run(self, parameters: P, context: CallContext) -> ToolOutput:
        """Do it; returns what the model reads."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """For which run tools are made. trusted: somebody vouches for the caller. workspace: the folder in which the run
    works, all of the workspace or the room of its session; a tool touches no files elsewhere."""

    turn_id: str
    session_key: str
    trusted: bool
    workspace: Workspace


# Makes tools for one run; what they hold is closed with the context, when the run ends or parks.  What the model is
# told of them, and their order, is the same for every run of a session (promise 7 of the design): what differs is
# decided at the call. Opening has to bound its own time, and to offer tools that say so when it fails.
ToolFactory = Callable[[RunContext], AbstractAsyncContextManager[Sequence[Tool[Any]]]]


@dataclass(frozen=True, slots=True)
class HookedCall:
    """A call. arguments: as the model wrote them, or an earlier hook; not checked yet."""

    turn_id: str
    session_key: str
    call_id: str
    name: str
    arguments: Mapping[str, Any]


class Hook:
    """Base class of hooks.

    Of a call that waits for a person, or that a crash came between, `before` is called again when its turn goes on:
    what it does besides may happen twice.
    """

    async def before(self, call: HookedCall) -> HookedCall:
        """The call as it is to go on: policy, validation and people see the arguments that this returns.

        Raises Refused with a sentence for the model when it is not to run; any other error refuses it, too.
        """
        return call

    async def after(self, call: HookedCall, output: ToolOutput) -> ToolOutput:
        """What a call that ran gave back, as it is to go on. An error is logged, and the output stays as it was."""
        return output
