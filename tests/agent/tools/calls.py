"""What a tool needs to run in a test: a context that notes what it was told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.tools.base import CallContext, Tool


async def outcome(tool: Tool[Any], parameters: Any) -> ToolOutput:
    """What the model reads of a call."""
    try:
        return await tool.run(parameters, Notes().context())
    except ToolError as error:
        return ToolOutput(text=str(error), is_error=True)


async def soon(condition: Callable[[], object]) -> None:
    """Return when something holds of which nobody tells."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


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
