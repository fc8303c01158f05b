"""Which tools a run has: all that there are, less what the configuration does not allow.

Called once per transcript: the set is fixed until the next one. With it come `spec` and `parse_arguments` of `schema`.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from agent.tools.base import Tool
from agent.tools.exec import ExecTool
from agent.tools.files import ReadTool, WriteTool
from agent.tools.schema import ArgumentsError, parse_arguments, spec
from agent.tools.workspace import Workspace

__all__ = ["ArgumentsError", "ExecSecurity", "ToolSettings", "parse_arguments", "spec", "tools_for"]

ExecSecurity = Literal["deny", "allowlist", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """The part `tools` of the configuration.

    allow, deny: tool names, in any case, `*` stands for anything; allow None: all; deny wins. exec_security: only
    `full` offers `exec`, since `allowlist` needs approvals.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    exec_security: ExecSecurity = "deny"
    exec_timeout_seconds: float = 120.0


def tools_for(settings: ToolSettings, workspace: Workspace) -> tuple[Tool[Any], ...]:
    """The tools of a run, always in the same order."""
    tools: list[Tool[Any]] = [ReadTool(workspace), WriteTool(workspace)]
    if settings.exec_security == "full":
        tools.append(ExecTool(workspace, settings.exec_timeout_seconds))
    return tuple(tool for tool in tools if _allowed(tool.name, settings))


def _allowed(name: str, settings: ToolSettings) -> bool:
    if _matches(name, settings.deny):
        return False
    return settings.allow is None or _matches(name, settings.allow)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)
