"""Values of the store about sub-agents, and what the two sides read of each other."""

from dataclasses import dataclass

from agent.events import Outcome
from bot.persistence.settings import SessionSettings
from channels.message import InboundMessage

# The event keys of messages that sessions write to each other begin with these: a task, the end of a turn of a
# sub-agent, and what the tool `sessions_send` sent.
TASK, ENDED, SENT = "spawn:", "s:", "sent:"
# Those of which the text is what a model said.
SPOKEN = (ENDED, SENT)
# The names of the tools that start sub-agents, and that write to other sessions.
SPAWN, SEND = "sessions_spawn", "sessions_send"
# What stands in front of a task, and of what another session sent.
TASK_HEAD = (
    "(a task from the conversation that started you. Your last text goes back there; nobody reads what you say before.)"
)
SENT_HEAD = "(another conversation of yours says:)"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChild:
    """A sub-agent that is to be started."""

    session_key: str
    label: str
    # The message that its first turn answers, and the id of that turn.
    task: InboundMessage
    turn_id: str
    settings: SessionSettings
    # The call of the tool that starts it.
    call_id: str


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session as tools and /subagents show it."""

    session_key: str
    # Of a sub-agent; else empty.
    label: str
    # The state of its newest turn; empty if it has none.
    state: str
    # Messages that wait in it.
    waiting: int


def sent_key(turn_id: str, call_id: str) -> str:
    """Return the event key of what a call of `sessions_send` has sent."""
    return f"{SENT}{turn_id}:{call_id}"


def started(label: str, session_key: str) -> str:
    """Return what the model is told that has started a sub-agent. label: see `named`."""
    return (
        f"The sub-agent {label} was started as {session_key}. Do not wait for it: what it comes to is told here by"
        " itself, in a message of its own."
    )


def ended_head(label: str, outcome: Outcome, kind: str | None, *, says: bool) -> str:
    """Return how the end of a turn of a sub-agent is told. kind: of the error that ended it. says: a text follows."""
    if outcome is Outcome.TIMEOUT:
        how = "ran out of time"
    elif kind == "crash":
        how = "was stopped by crashes of the service"
    elif kind or outcome is Outcome.FAILED:
        how = f"failed ({kind or 'internal'})"
    else:
        how = "has finished"
    return f"(the sub-agent {label} {how}. {'It says:' if says else 'It says nothing.'})"
