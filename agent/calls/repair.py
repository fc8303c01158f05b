"""Puts right what models get wrong about names and arguments because they learned them with other tools.

Only where nothing is guessed: a tool of the name that was written comes first, as does a parameter, and a value keeps
what it says. Libraries that repair JSON guess: from what was cut off they make whole commands. So an end that is
missing is put back only where a call changes nothing.
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
# What the editors, each several tools in one, are told to do.
_EDITING = {"view": "read", "create": "write", "str_replace": "edit"}
_PARAMETERS = {
    **dict.fromkeys(("file_path", "filepath", "filename"), "path"),
    **dict.fromkeys(("cmd", "script"), "command"),
    **dict.fromkeys(("file_text", "text", "contents"), "content"),
    **dict.fromkeys(("workdir", "working_directory"), "cwd"),
    "old_str": "old_string",
    "new_str": "new_string",
}
# With what models put before it (`functions.`, `server:`) and behind it (the number of the call).
_NAME = re.compile(r"(?:.*[.:])?([A-Za-z_][\w-]*)(?::\d+)?", re.DOTALL)
# A string that does not end is passed over as well, in one go.
_TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))|,(?=\s*[}\]])', re.DOTALL)


def repaired(call: ToolCall, tools: Mapping[str, Tool[Any]]) -> ToolCall:
    """The call as it runs: of the tool that is meant, with arguments as it takes them, as far as that is sure."""
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
    """The JSON object that a text is, or nearly is: in a fence, with commas too many, or written as a string."""
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
    """What a JSON text holds, as a rule also one with line ends inside strings; None when it is none."""
    try:
        return json.loads(text, strict=strict)
    except (ValueError, RecursionError):
        return None


def _taken(found: Mapping[str, Any], tool: Tool[Any]) -> dict[str, Any]:
    """Arguments under the names of a tool's parameters, lists and objects out of strings where it takes such."""
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
