"""What a tool needs to run in a test: a context that notes what it was told."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.tools.base import CallContext, Delivered, Tool


async def outcome(tool: Tool[Any], parameters: Any) -> ToolOutput:
    """What the model reads of a call."""
    try:
        return await tool.run(parameters, Notes().context())
    except ToolError as error:
        return ToolOutput(text=str(error), is_error=True)


@dataclass
class Notes:
    """What the tool said, and sent. started: pid and start time of each process."""

    updates: list[str] = field(default_factory=list)
    started: list[tuple[int, str]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    files: list[Path | None] = field(default_factory=list)
    file_bytes: int = 0

    async def store(self, pid: int, pid_started: str) -> None:
        self.started.append((pid, pid_started))

    async def send(self, text: str, file: Path | None = None) -> str:
        self.messages.append(text)
        self.files.append(file)
        return str(len(self.messages) - 1)

    async def sent(self, name: str) -> Delivered:
        return "sent" if int(name) < len(self.messages) else "not sent"

    def context(
        self,
        started: Callable[[int, str], Awaitable[None]] | None = None,
        update: Callable[[str], None] | None = None,
    ) -> CallContext:
        """A context that notes down, or does what is given instead."""
        return CallContext(
            turn_id="turn",
            session_key="session",
            call_id="call",
            update=update or self.updates.append,
            started=started or self.store,
            deliver=self.send,
            delivered=self.sent,
            file_bytes=self.file_bytes,
        )
