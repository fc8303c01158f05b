"""`send_file`: hands a file of the workspace to the people of the conversation, as a delivery of its own.

It outlives a crash and is never sent twice by it, like every message of a tool. Offered by `agent/tools/registry`.
"""

import asyncio
from pathlib import Path

from pydantic import Field

from agent.errors import ToolError
from agent.message import ToolOutput
from agent.tools.base import CallContext, Parameters, Tool
from agent.tools.workspace import Workspace


class SendFileParameters(Parameters):
    """Of `send_file`."""

    path: str = Field(description="File, relative to the workspace.")
    caption: str = Field(default="", max_length=800, description="A few words that stand with it.")


class SendFileTool(Tool[SendFileParameters]):
    """Sends a file."""

    name = "send_file"
    description = "Send a file or image of the workspace into this conversation. What you say in it goes by itself."
    parameters = SendFileParameters

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def run(self, parameters: SendFileParameters, context: CallContext) -> ToolOutput:
        """That it is on its way. Raises ToolError with why it cannot be sent."""
        if not context.file_bytes:
            raise ToolError("Files cannot be sent into this conversation.")
        path, size = await asyncio.to_thread(self._checked, parameters.path)
        if not 0 < size <= context.file_bytes:
            allowed = f"1 to {context.file_bytes:,} can be sent here"
            raise ToolError(f"{parameters.path}: has {size:,} bytes; {allowed}.")
        await context.deliver(parameters.caption, path)
        return ToolOutput(text=f"On its way: {path.name} ({size:,} bytes). Do not send it again.")

    def _checked(self, path: str) -> tuple[Path, int]:
        with self._workspace.open(path) as file:
            return self._workspace.root.joinpath(*self._workspace.relative(path)), file.seek(0, 2)
