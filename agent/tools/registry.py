"""Which tools there are, less what the configuration does not allow: fixed when the service starts."""

from collections.abc import Sequence
from contextlib import nullcontext
from fnmatch import fnmatchcase
from typing import Any, Literal

from agent.tools.base import Tool, ToolFactory
from agent.tools.exec import ExecTool
from agent.tools.files import ReadTool, WriteTool
from agent.tools.stay_silent import StaySilentTool
from agent.tools.workspace import Workspace

NAMES = (ReadTool.name, WriteTool.name, StaySilentTool.name, ExecTool.name)
ExecSecurity = Literal["deny", "allowlist", "full"]


def same_for_all(tools: Sequence[Tool[Any]]) -> ToolFactory:
    """Tools that every run shares."""
    return lambda run: nullcontext(tools)


def tools_for(
    workspace: Workspace,
    *,
    allow: tuple[str, ...] | None = None,
    deny: tuple[str, ...] = (),
    exec_security: ExecSecurity = "deny",
    exec_timeout_seconds: float = 120.0,
) -> tuple[Tool[Any], ...]:
    """The tools of a run, always in the same order.

    allow, deny: names, in any case, `*` stands for anything; allow None: all; deny wins. exec_security: only `full`
    offers `exec`, since `allowlist` needs approvals.
    """
    tools: list[Tool[Any]] = [ReadTool(workspace), WriteTool(workspace), StaySilentTool()]
    if exec_security == "full":
        tools.append(ExecTool(workspace, exec_timeout_seconds))
    return allowed(tools, allow, deny)


def allowed(
    tools: Sequence[Tool[Any]], allow: tuple[str, ...] | None, deny: tuple[str, ...] = ()
) -> tuple[Tool[Any], ...]:
    """Those that are allowed and not denied; see `tools_for`."""
    return tuple(tool for tool in tools if is_allowed(tool.name, allow, deny))


def is_allowed(name: str, allow: tuple[str, ...] | None, deny: tuple[str, ...] = ()) -> bool:
    """Whether the tool of that name is; see `tools_for`."""
    return (allow is None or matches(name, allow)) and not matches(name, deny)


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a tool's name is one of these, in any case; `*` stands for anything."""
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)
