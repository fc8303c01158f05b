"""The interface of tools: typed parameters, the question whether a person must decide, and the call."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from agent.errors import ToolError
from agent.message import Provenance, ToolOutput
from agent.tools.workspace import Workspace


class Parameters(BaseModel):
    """Base class of all tool parameters. Unknown names are refused, so that the model learns of its mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Given(Parameters):
    """Of a tool whose schema is somebody else's: any JSON object, as it was written."""

    model_config = ConfigDict(extra="allow")


P = TypeVar("P", bound=Parameters)
# How an Ask was decided: the call may run once, or whenever the same is asked; a question was answered; or neither.
Verdict = Literal["once", "always", "denied", "answered", "expired"]


# Where the effect of a call goes. look: into the sandbox, or nowhere. room: into the room of its session. work:
# commands that change files. open: this machine itself. send: other conversations. network: out of this machine.
# remember: what later prompts read. schedule: what later runs do. follow: an address that only text from outside names,
# beyond what is followed without a question.
Sink = Literal["look", "room", "work", "open", "send", "network", "remember", "schedule", "follow"]


class Refused(ToolError):
    """The call is not allowed, and no person is asked about it. The text tells the model why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a person must decide, or answer, before a call may run."""

    # Hash of everything the decision is bound to (command, directory, session, …). A decision counts only for a call
    # with the same digest.
    digest: str
    # What the person is shown in full: a command, or a question.
    subject: str
    is_code: bool = True
    # Why a person is asked, and what could go wrong, each in sentences for people.
    why: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    # What the answer "always" allows from then on, and the same in words. Without grants "always" is not offered.
    grants: tuple[str, ...] = ()
    granted: str = ""
    # Whether the grants are for the task at hand alone, until /new.
    task: bool = False
    # Whether the subject is a question, and the answers to choose from.
    question: bool = False
    options: tuple[str, ...] = ()
    # Who may decide: "asker", "owner", "anyone" who writes in the conversation, or "channel:id".
    who: str = "asker"
    # The label of the sub-agent that asks; empty: none does.
    by: str = ""
    # Time to decide in seconds; None: as configured.
    seconds: float | None = None
    # What the model is told when nobody decided in time.
    otherwise: str = "Nobody decided in time whether this call may run. It was not executed."
    # What the model is told at once where nobody can be asked: in heartbeat turns, jobs and turns of programs. Empty:
    # the request waits there too.
    alone: str = ""
    # Whether the call runs even if nobody decided in time.
    runs_unanswered: bool = False
    # The calls of one step that are decided together, in order; empty: it is about one call.
    calls: tuple["Asked", ...] = ()

    def decisions(
        self, call_id: str, state: Verdict, reason: str, picked: Collection[int] = ()
    ) -> dict[str, "Decision"]:
        """Return how each call was decided, by its id.

        call_id: of the one call, where it is about one. picked: the numbers, from 1, of the calls that alone were
        allowed; empty: all of them were decided alike.
        """
        return {
            one.call_id: Decision("denied" if picked and number not in picked else state, one.ask.digest, reason)
            for number, one in enumerate(self.calls or (Asked(call_id, self),), 1)
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """A call, and what a person must decide before it may run."""

    call_id: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class Decision:
    """How an Ask was decided."""

    state: Verdict
    # The digest of the Ask.
    digest: str
    # What the person said: a reason, or the answer to a question. For an expired Ask its `otherwise`.
    reason: str

    def allows(self, ask: Ask) -> bool:
        """Whether the decision lets the call with this Ask run."""
        allowed = self.state in ("once", "always", "answered") or (self.state == "expired" and ask.runs_unanswered)
        return allowed and self.digest == ask.digest


async def _nothing() -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Which call a tool runs for, and how the tool reports while it runs."""

    turn_id: str
    session_key: str
    call_id: str
    # Publishes progress as an event; nothing is persisted.
    update: Callable[[str], None]
    # A tool that starts a process awaits this with the pid and the kernel's start time of the process BEFORE the
    # process may do anything. Both are persisted, so that a leftover can be ended after a crash.
    started: Callable[[int, str], Awaitable[None]]
    # Whether the run was started by a beat or a job instead of a person.
    background: bool = False
    # How the Ask of this call was decided, if there was one.
    decision: Decision | None = None
    # Returns the texts in the request in which the model has no part: what people wrote, and what the web says.
    texts: Callable[[], Iterable[str]] = tuple
    # Returns those of them that stand in trusted words of people alone.
    trusted_texts: Callable[[], Iterable[str]] = tuple
    # Returns how often addresses that only text from outside names were asked for in this task, by host.
    followed: Callable[[], Awaitable[Mapping[str, int]]] = _nothing
    # Returns the origins of what the call may be made from: all that stands in the request, and who asks.
    bears: Callable[[], tuple[Provenance, ...]] = tuple
    # The same without who asks, for what stays theirs.
    stands: Callable[[], tuple[Provenance, ...]] = tuple
    # Returns the origins of the call because of which it may not act unasked; empty: there are none.
    doubts: Callable[[], tuple[Provenance, ...]] = tuple
    # Whether the caller may only look: exec stays at the level look, message stays in this conversation.
    as_guest: bool = False


class Tool(Generic[P]):
    """Base class of tools.

    An exception that `asks` or `run` raises becomes an error result for the model; the text of a ToolError is passed on
    unchanged. Cancellation ends the work at once and leaves nothing running.
    """

    name: str
    description: str
    parameters: type[P]
    # Calls of one step may run side by side with others whose tools say the same.
    parallel_safe: bool = False
    # A call changes something, so people are told when it failed for good.
    changes: bool = False
    # A call can send people a message, so the turn may end without any other words.
    speaks: bool = False
    # The tool is left out of runs for callers that are not trusted.
    trusted_only: bool = False
    # The tool exists only in conversations where nobody but owners writes.
    owner_only: bool = False
    # Making the same call again and again is how the tool is meant to be used.
    polls: bool = False
    # Its results are what the web says, so that an address in one is an address that was read.
    reads_web: bool = False
    # The JSON schema of the parameters where it is somebody else's, who also checks them; `parameters` is `Given` then.
    schema: str = ""
    # A name for rules that stands for tools whose names are not known to Hark, such as "group:mcp".
    group: str = ""
    # Why no turn has the tool; empty: nothing is against it.
    off: str = ""

    async def asks(self, parameters: P, context: CallContext) -> Ask | None:
        """Return what a person must decide before this call may run; None: nothing.

        It must have no effects, because it is called again when the turn is resumed. Raises Refused when the call may
        not run whatever a person says.
        """
        return None

    async def sink(self, parameters: P, context: CallContext) -> Sink:
        """Return where the effect of a call goes. It has no effects itself."""
        return "look"

    async def follows(self, parameters: P, context: CallContext) -> str:
        """Return the host of an address that a call asks for and that only text from outside names; empty: none."""
        return ""

    async def covers(self, parameters: P, context: CallContext, origin: Provenance) -> bool:
        """Return whether untrusted text of an origin is no reason to ask about this call. It has no effects itself."""
        return False

    async def reaches_out(self, parameters: P, context: CallContext) -> bool:
        """Whether a call leaves this machine, so that a freeze of the network holds it."""
        return self.reads_web or await self.sink(parameters, context) in ("open", "send", "network")

    async def run(self, parameters: P, context: CallContext) -> ToolOutput:
        """Carry out the call and return what the model reads."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The run that tools are made for."""

    turn_id: str
    session_key: str
    transcript_id: str
    # Whether the caller is trusted.
    trusted: bool
    # The folder that the run works in, the whole workspace or the room of its session. Tools touch no files elsewhere.
    workspace: Workspace


# Makes the tools of one run; leaving the context, when the run ends or parks, closes what they hold. Their order and
# what the model is told of them must be the same for every run of a session (promise 7 of the design), so differences
# between runs are decided at the call. Entering must bound its own time and, if it fails, offer tools that say so.
ToolFactory = Callable[[RunContext], AbstractAsyncContextManager[Sequence[Tool[Any]]]]
