"""Which tools there are, whatever the configuration allows of them (`agent/tools/policy.py`)."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from agent.tools.ask_person import AskPersonTool
from agent.tools.base import Tool, ToolFactory
from agent.tools.edit import EditTool
from agent.tools.exec import ExecTool
from agent.tools.files import ReadTool, WriteTool
from agent.tools.process_tool import ProcessTool
from agent.tools.search import GlobTool, GrepTool
from agent.tools.stay_silent import StaySilentTool
from agent.tools.workspace import Workspace

_FILES, _SEARCHES = (ReadTool, WriteTool, EditTool), (GlobTool, GrepTool)
NAMES = tuple(tool.name for tool in (*_FILES, *_SEARCHES, StaySilentTool, AskPersonTool, ExecTool, ProcessTool))


def same_for_all(tools: Sequence[Tool[Any]]) -> ToolFactory:
    """Tools that every run shares."""
    return lambda run: nullcontext(tools)


def tools_for(
    workspace: Workspace, *, commands: Sequence[Tool[Any]] = (), searches: asyncio.Semaphore | None = None
) -> tuple[Tool[Any], ...]:
    """The tools of one room, always in the same order.

    workspace: the folder that they work in. commands: further ones. searches: places for those of all rooms.
    """
    files = (*(tool(workspace) for tool in _FILES), *(tool(workspace, searches) for tool in _SEARCHES))
    return (*files, StaySilentTool(), AskPersonTool(), *commands)
