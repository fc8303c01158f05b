"""Which tools there are, and which of them the rules of the configuration allow.

A pattern of a rule is a tool's name in any case, in which `*` stands for anything, or the name of a group.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from agent.shares import Places
from agent.tools.base import Tool
from agent.tools.conversation import AskPersonTool, StaySilentTool
from agent.tools.edit import EditTool
from agent.tools.exec import ExecTool
from agent.tools.files import ReadTool, SkillHome, WriteTool
from agent.tools.lineage import Lineage
from agent.tools.process_tool import ProcessTool
from agent.tools.search import GlobTool, GrepTool
from agent.tools.workspace import Workspace

WEB_FETCH, WEB_SEARCH = "web_fetch", "web_search"
# The group of the tools of MCP servers, which bear it themselves.
MCP = "group:mcp"
SESSIONS = ("sessions_spawn", "sessions_list", "sessions_history", "sessions_send", "session_status")
# Patterns for tools of later versions are included, so that a rule for a group keeps its meaning.
GROUPS = {
    "group:fs": ("read", "write", "edit", "glob", "grep"),
    "group:runtime": ("exec", "process"),
    "group:web": (WEB_FETCH, WEB_SEARCH),
    "group:sessions": SESSIONS,
    "group:memory": ("memory_*",),
    "group:messaging": ("message", "ask_person", "task_list"),
    "group:automation": ("schedule",),
    MCP: (MCP,),
}
_MINIMAL = ("stay_silent", "ask_person", "task_list")
_OWN = ("memory_search", "memory_get", "memory_write")
# For people who are no owners. Tools are listed by name, so that no tool of a later version is added by itself.
GUEST = (*_MINIMAL, "message", "read", "write", "edit", *_OWN, "glob", "grep", "exec", "process")
_MESSAGING = (*_MINIMAL, "message", "group:sessions")
PROFILES = {
    "minimal": _MINIMAL,
    "guest": GUEST,
    "messaging": _MESSAGING,
    "coding": (*_MESSAGING, "group:fs", "group:runtime", "group:web", "group:memory", "group:automation", MCP),
    "full": ("*",),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the configuration about which tools may be used."""

    # Where the rule stands in the configuration.
    key: str
    patterns: tuple[str, ...]
    # True: these tools and no others may be used. False: all tools but these.
    only: bool


class Policy(tuple[Rule, ...]):
    """All rules, of which each only takes tools away; without rules every tool may be used."""

    def why_not(self, name: str, group: str = "") -> str | None:
        """Return the key of the first rule that forbids a tool; None: the tool may be used. group: see `Tool`."""
        return next((rule.key for rule in self if matches(name, rule.patterns, group) is not rule.only), None)


def rules(key: str, allow: tuple[str, ...] | None, deny: tuple[str, ...]) -> Iterable[Rule]:
    """Yield the rules of a layer of the configuration. allow: None allows all tools."""
    if allow is not None:
        yield Rule(f"{key}.allow", allow, only=True)
    if deny:
        yield Rule(f"{key}.deny", deny, only=False)


def matches(name: str, patterns: Iterable[str], group: str = "") -> bool:
    """Whether a tool's name matches one of the patterns, or its group is one. group: see `Tool`."""
    return any(
        fnmatchcase(name.lower(), one.lower()) or one.lower() == group
        for pattern in patterns
        for one in GROUPS.get(pattern.lower(), (pattern,))
    )


_FILES, _SEARCHES = (WriteTool, EditTool), (GlobTool, GrepTool)
_OTHERS = (StaySilentTool, AskPersonTool, ExecTool, ProcessTool)
NAMES = (*(tool.name for tool in (ReadTool, *_FILES, *_SEARCHES, *_OTHERS)), WEB_FETCH, WEB_SEARCH, *SESSIONS)

# First words of the names of tools that extensions bring; with * nobody knows what there would be.
FURTHER: set[str] = set()


def is_further(pattern: str) -> bool:
    """Whether a pattern of a rule is about a tool of an extension."""
    return "*" in FURTHER or any(pattern.lower() == one or pattern.lower().startswith(f"{one}_") for one in FURTHER)


def tools_for(
    workspace: Workspace,
    *,
    commands: Sequence[Tool[Any]] = (),
    searches: Places | None = None,
    lineage: Lineage | None = None,
    skill_home: SkillHome | None = None,
) -> tuple[Tool[Any], ...]:
    """Return the tools of one room, always in the same order.

    workspace: the folder that they work in. commands: further tools. searches: bounds the searches of all rooms.
    lineage: knows what the files were made from. skill_home: finds the files of skills.
    """
    files = (
        ReadTool(workspace, lineage, skill_home),
        *(tool(workspace, lineage) for tool in _FILES),
        *(tool(workspace, lineage, searches) for tool in _SEARCHES),
    )
    return (*files, StaySilentTool(), AskPersonTool(), *commands)
