"""Corrects names and arguments of calls that models get wrong because they learned them with other tools.

Nothing is guessed: a tool or parameter that has the written name comes first, and values keep their meaning. Libraries
that repair JSON do guess, and turn a command that was cut off into a whole one. So a missing end is added only to calls
that change nothing.
"""

import json
import re
import string
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

from agent.message import ToolCall
from agent.tools.base import Tool
from agent.tools.schema import spec

_EDITORS = ("str_replace_editor", "str_replace_based_edit_tool")
_NAMES = {
    **dict.fromkeys(("bash", "shell", "run_command", "execute_command", "run"), "exec"),
    **dict.fromkeys((*_EDITORS, "str_replace", "edit_file"), "edit"),
    **dict.fromkeys(("read_file", "view", "cat"), "read"),
    **dict.fromkeys(("write_file", "create_file"), "write"),
}
# The commands of the editors, each of which is several tools in one.
_EDITING = {"view": "read", "create": "write", "str_replace": "edit"}
_PARAMETERS = {
    **dict.fromkeys(("file_path", "filepath", "filename"), "path"),
    **dict.fromkeys(("cmd", "script"), "command"),
    **dict.fromkeys(("file_text", "text", "contents"), "content"),
    **dict.fromkeys(("workdir", "working_directory"), "cwd"),
    "old_str": "old_string",
    "new_str": "new_string",
}
# A name with what some models put before it (`functions.`, `server:`) and after it (the number of the call).
_NAME = re.compile(r"(?:.*[.:])?([A-Za-z_][\w-]*)(?::\d+)?", re.DOTALL)
# Strings are skipped as a whole, also one that does not end.
_TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))|,(?=\s*[}\]])', re.DOTALL)


def repaired(call: ToolCall, tools: Mapping[str, Tool[Any]]) -> ToolCall:
    """Return the call with the name of the tool that is meant and arguments as the tool takes them, where certain."""
    name, found = _name(call.name, tools), _object(call.arguments)
    if found and call.name not in tools and _bare(call.name) in _EDITORS and str(found.get("command")) in _EDITING:
        name = _EDITING[found.pop("command")]
    tool = tools.get(name)
    if tool is not None and found is None and not tool.changes:
        found = _object(call.arguments + "}")
    if tool is None or found is None:
        return replace(call, name=name)
    taken = _taken(found, tool)
    same = taken == _read(call.arguments, strict=True)
    return replace(call, name=name, arguments=call.arguments if same else json.dumps(taken))


def _name(written: str, tools: Container[str]) -> str:
    bare = _bare(written)
    known = (written, bare, _NAMES.get(bare, written))
    return next((name for name in known if name in tools), known[-1])


def _bare(written: str) -> str:
    found = _NAME.fullmatch(written)
    return found[1].lower().replace("-", "_") if found else written


def _object(text: str) -> dict[str, Any] | None:
    """Read a JSON object, also one in a code fence, with trailing commas, or written as a string; None: it is none."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare[3:-3].lstrip(string.ascii_letters)
    for candidate in (bare, _TRAILING_COMMA.sub(r"\1", bare)):
        value = _read(candidate)
        value = _read(value) if isinstance(value, str) else value
        if isinstance(value, dict):
            return value
    return None


def _read(text: str, *, strict: bool = False) -> Any:
    """Read JSON; None when the text is none. Unless strict, strings may hold line breaks."""
    try:
        return json.loads(text, strict=strict)
    except (ValueError, RecursionError):
        return None


def _taken(found: Mapping[str, Any], tool: Tool[Any]) -> dict[str, Any]:
    """Rename arguments to the tool's parameters, and read lists and objects from strings where the tool takes them."""
    fields = tool.parameters.model_fields
    taken: dict[str, Any] = {}
    for written, value in found.items():
        name = _PARAMETERS.get(written, written) if written not in fields else written
        if name not in fields or (name != written and (name in found or name in taken)):
            name = written
        taken[name] = value
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            kind = json.loads(spec(tool).schema_json).get("properties", {}).get(name, {}).get("type")
            inner = _read(value)
            if isinstance(inner, {"array": list, "object": dict}.get(kind, ())):
                taken[name] = inner
    return taken
