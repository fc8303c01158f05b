"""What a tool needs to run in a test: a context that notes what it was told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.tools.base import CallContext, Decision, Tool
from tests.watch import PATIENCE


async def outcome(tool: Tool[Any], parameters: Any) -> ToolOutput:
    """What the model reads of a call that a person has allowed, where one must be asked."""
    try:
        return await run_allowed(tool, parameters, Notes().context())
    except ToolError as error:
        return ToolOutput(text=str(error), is_error=True)


async def allowed(tool: Tool[Any], parameters: Any, context: CallContext) -> CallContext:
    """The context of a call once a person has allowed what it asks. Raises ToolError."""
    ask = await tool.asks(parameters, context)
    return replace(context, decision=Decision("once", ask.digest, "")) if ask else context


async def soon(condition: Callable[[], object]) -> None:
    """Return when something holds of which nobody tells."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def run_allowed(tool: Tool[Any], parameters: Any, context: CallContext) -> ToolOutput:
    """Run a call that a person has allowed, where one must be asked. Raises what the tool raises."""
    return await tool.run(parameters, await allowed(tool, parameters, context))


@dataclass
class Notes:
    """What the tool said. started: pid and start time of each process."""

    updates: list[str] = field(default_factory=list)
    started: list[tuple[int, str]] = field(default_factory=list)

    async def store(self, pid: int, pid_started: str) -> None:
        self.started.append((pid, pid_started))

    def context(
        self,
        started: Callable[[int, str], Awaitable[None]] | None = None,
        update: Callable[[str], None] | None = None,
        *,
        background: bool = False,
        session_key: str = "session",
        call_id: str = "call",
    ) -> CallContext:
        """A context that notes down, or does what is given instead."""
        return CallContext(
            turn_id="turn",
            session_key=session_key,
            call_id=call_id,
            update=update or self.updates.append,
            started=started or self.store,
            background=background,
        )
