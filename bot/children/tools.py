"""The tools about sessions: `sessions_spawn`, `sessions_list`, `sessions_history`, `sessions_send`, `session_status`.

None of them waits for another session: what a sub-agent comes to is a message of its own.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from agent.errors import ToolError
from agent.message import Message, Provenance, ToolOutput, merged
from agent.tools.base import CallContext, P, Parameters, Sink, Tool
from bot.children.subagents import SessionAccess, SubAgents
from bot.compose import named, shortened
from bot.persistence.children import SEND, SPAWN, SessionView
from bot.persistence.settings import Thinking
from channels.session_key import root_of

# Lines of a history, and characters of each.
_LINES, _LINE = 30, 2000


class SpawnParameters(Parameters):
    """Of `sessions_spawn`."""

    task: str = Field(pattern=r"\S", description="Complete: the sub-agent does not see this conversation.")
    label: str = Field(default="", description="A few words by which it is named to people.")
    model: str = Field(default="", description="provider/model; else as here.")
    thinking: Thinking = ""
    timeout_seconds: float = Field(default=0, ge=0, le=86_400, description="Time that it may take; 0: as configured.")


class SessionParameters(Parameters):
    """Of tools that look at one session."""

    session: str = Field(default="", description="Its key; else this conversation.")


class SendParameters(Parameters):
    """Of `sessions_send`."""

    session: str = Field(description="Its key, as sessions_list has it.")
    message: str = Field(pattern=r"\S")


class _SessionTool(Tool[P]):
    """What the tools have in common."""

    def __init__(self, subagents: SubAgents) -> None:
        self._subagents = subagents


class SpawnTool(_SessionTool[SpawnParameters]):
    """See `make`."""

    name = SPAWN
    description = (
        "Leave a part of the work to a sub-agent, which works on it by itself beside this conversation. It returns at"
        " once; what the sub-agent comes to is told you later in a message of its own, so do not wait or ask for it."
    )
    parameters = SpawnParameters
    changes = True

    async def run(self, parameters: SpawnParameters, context: CallContext) -> ToolOutput:
        """See Tool."""
        access = self._subagents.access(context)
        said = await access.start(
            context,
            parameters.task,
            label=parameters.label,
            model=parameters.model,
            thinking=parameters.thinking,
            timeout=parameters.timeout_seconds,
        )
        return ToolOutput(text=said)


class SessionsListTool(_SessionTool[Parameters]):
    """See `make`."""

    name = "sessions_list"
    description = "This conversation and its sub-agents; for an owner in private every conversation."
    parameters = Parameters
    parallel_safe = True

    async def run(self, parameters: Parameters, context: CallContext) -> ToolOutput:
        """See Tool."""
        access = self._subagents.access(context)
        found = await access.visible()
        return ToolOutput(text="\n".join(map(_line, found)), origins=_of_labels(access, found))


class SessionsHistoryTool(_SessionTool[SessionParameters]):
    """See `make`."""

    name = "sessions_history"
    description = "The newest lines of a session."
    parameters = SessionParameters
    parallel_safe = True

    async def run(self, parameters: SessionParameters, context: CallContext) -> ToolOutput:
        """See Tool."""
        access = self._subagents.access(context)
        key = access.check(parameters.session)
        lines = await self._subagents.store.children.history(key, _LINES)
        if not lines:
            raise ToolError(f"Nothing was said in {key!r}.")
        return ToolOutput(text="\n\n".join(map(_said, lines)), origins=_origins(key, access, lines))


class SessionsSendTool(_SessionTool[SendParameters]):
    """See `make`."""

    name = SEND
    description = "Say something in another session, which then works on it. It returns at once."
    parameters = SendParameters
    changes = True

    async def sink(self, parameters: SendParameters, context: CallContext) -> Sink:
        """See Tool. Nobody is asked about a session that the turn does not see."""
        access = self._subagents.access(context)
        return "send" if access.sees_all and not access.is_below(parameters.session) else "look"

    async def run(self, parameters: SendParameters, context: CallContext) -> ToolOutput:
        """See Tool."""
        access = self._subagents.access(context)
        return ToolOutput(text=await access.send(context, parameters.session, parameters.message))


class SessionStatusTool(_SessionTool[SessionParameters]):
    """See `make`."""

    name = "session_status"
    description = "What happens in a session and in its sub-agents."
    parameters = SessionParameters
    parallel_safe = True

    async def run(self, parameters: SessionParameters, context: CallContext) -> ToolOutput:
        """See Tool."""
        access = self._subagents.access(context)
        key = access.check(parameters.session)
        found = await self._subagents.store.children.visible(key, _LINES)
        settings = await self._subagents.store.settings.of(key)
        chosen = f"model {settings.model or 'as configured'}, thinking {settings.thinking or 'as configured'}"
        if not found or found[0].session_key != key:
            raise ToolError(f"There is no session {key!r}.")
        own, *below = map(_line, found)
        return ToolOutput(text="\n".join((own, chosen, *below)), origins=_of_labels(access, found))


def make(subagents: SubAgents) -> tuple[Tool[Any], ...]:
    """Return the tools, which all runs share."""
    tools = (SpawnTool, SessionsListTool, SessionsHistoryTool, SessionsSendTool, SessionStatusTool)
    return tuple(tool(subagents) for tool in tools)


def _line(one: SessionView) -> str:
    waiting = f", {one.waiting} waiting" if one.waiting else ""
    return f"{one.session_key}{f' ({named(one.label)})' if one.label else ''}: {one.state or 'idle'}{waiting}"


def _said(line: Message) -> str:
    who = "you" if line.role == "assistant" else "asked"
    return f"{who}: {shortened(line.text, _LINE)}"


def _of_labels(access: SessionAccess, found: Sequence[SessionView]) -> tuple[Provenance, ...]:
    """Return the origins of the labels of sessions, which the models of these have chosen."""
    return merged(tuple(origin for one in found if one.label for origin in _origins(one.session_key, access, ())))


def _origins(key: str, access: SessionAccess, lines: Sequence[Message]) -> tuple[Provenance, ...]:
    """Return the origins of lines: the words of others are their own in their session, and nobody's elsewhere."""
    strange = root_of(key) != root_of(access.turn.session_key)
    found = (one for line in lines for one in line.all_origins)
    return merged((*found, *((Provenance("person", f"the session {key}"),) if strange else ())))
