"""The tool `process`: looks after the commands of its session that `exec` started in the background."""

import select
from typing import Literal

from pydantic import Field

from agent.errors import ToolError
from agent.message import ToolOutput, merged
from agent.tools.background import Background, Running
from agent.tools.base import Ask, CallContext, Parameters, Sink, Tool
from agent.tools.exec import SINKS, is_silent
from agent.tools.permission import Permission

MOST_WAIT_SECONDS = 60
_KILL_SECONDS = 5.0


class ProcessParameters(Parameters):
    """Of `process`."""

    action: Literal["list", "poll", "input", "kill"] = Field(
        description="list: all of them; poll: new output, and the exit code; input: write to standard input; kill."
    )
    id: str = Field(default="", description="Which one, as exec or list named it.")
    text: str = Field(default="", description="For input; a line ends with a line break.")
    eof: bool = Field(default=False, description="With input: nothing follows, standard input is closed.")
    wait_seconds: float = Field(
        default=0, ge=0, le=MOST_WAIT_SECONDS, description="With poll: wait so long for new output or the end."
    )


class ProcessTool(Tool[ProcessParameters]):
    """Lists, polls, feeds and ends commands in the background."""

    name = "process"
    description = "Look after commands that exec runs in the background: list, poll, write to them, kill them."
    parameters = ProcessParameters
    trusted_only = True
    polls = True

    def __init__(self, background: Background, permission: Permission) -> None:
        """permission: decides about input, because what is written to a command may be a command as well."""
        self._background = background
        self._permission = permission

    async def asks(self, parameters: ProcessParameters, context: CallContext) -> Ask | None:
        if parameters.action != "input" or not parameters.text:
            return None
        one = self._find(parameters, context)
        return self._permission.ask(
            bound=(self.name, context.session_key, one.key, parameters.text, parameters.eof),
            subject=parameters.text,
            missed=self._permission.input_missed(one.level, one.shown),
        )

    async def sink(self, parameters: ProcessParameters, context: CallContext) -> Sink:
        """See Tool: what is written to a command may do what the command may."""
        if parameters.action != "input" or not parameters.text:
            return "look"
        return SINKS[self._find(parameters, context).level]

    async def run(self, parameters: ProcessParameters, context: CallContext) -> ToolOutput:
        """Carry out the action; returns the state of the command and its new output."""
        if parameters.action == "list":
            found = self._background.of(_session(context))
            lines = [f"{one.shown}: {one.ending or 'running'}" for one in found]
            origins = merged(origin for one in found for origin in one.traced.origins)
            return ToolOutput(text="\n".join(lines) or "Nothing runs in the background.", origins=origins)
        one = self._find(parameters, context)
        if parameters.action == "input":
            await one.traced.feed(context.bears())
            _give(one, parameters)
            return ToolOutput(text="Written." if parameters.text else "Its standard input is closed.")
        if parameters.action == "kill":
            one.end("ended as you asked")
            await one.wait(_KILL_SECONDS, to_end=True)
        else:
            await one.wait(parameters.wait_seconds)
        text = f"[{one.ending or 'running'}]\n{one.fresh()}"
        return ToolOutput(text=text, origins=() if is_silent(text) else await one.traced.bears())

    def _find(self, parameters: ProcessParameters, context: CallContext) -> Running:
        return self._background.find(_session(context), parameters.id)


def _session(context: CallContext) -> str:
    """Return the session whose commands are meant. Guests have none, and see none of owners."""
    return "" if context.as_guest else context.session_key


def _give(one: Running, parameters: ProcessParameters) -> None:
    """Write all of the text to the command. Raises ToolError when nothing was written."""
    data = parameters.text.encode(errors="replace")
    if len(data) > select.PIPE_BUF:
        raise ToolError(f"The text has {len(data):,} bytes; {select.PIPE_BUF:,} are allowed at once.")
    try:
        if data:
            one.process.write(data)
    except BlockingIOError:
        raise ToolError("It has not read what it was given before; nothing was written.") from None
    except BrokenPipeError:
        raise ToolError("It reads nothing any more.") from None
    if parameters.eof:
        one.process.close_input()
