"""Names and arguments as models write them that know other tools, and JSON that is nearly valid."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agent.calls.repair import repaired
from agent.message import ToolCall
from agent.tools.base import Parameters, Tool


class Exec(Parameters):
    """Of a tool that changes something."""

    command: str
    cwd: str = "."
    env: dict[str, str] = Field(default={})


class Edit(Parameters):
    """The same, of a file."""

    path: str
    old_string: str
    new_string: str


class Write(Parameters):
    """The same."""

    path: str
    content: str


class Item(BaseModel):
    """Of a list."""

    label: str


class Read(Parameters):
    """Of a tool that changes nothing."""

    path: str
    limit: int = 5
    items: tuple[Item, ...] = ()


def made(name: str, takes: type[Parameters], *, changes: bool) -> Tool[Any]:
    tool: Tool[Any] = Tool()
    tool.name, tool.description, tool.parameters, tool.changes = name, "", takes, changes
    return tool


TOOLS = {
    name: made(name, takes, changes=name not in ("read", "stay_silent"))
    for name, takes in {"exec": Exec, "edit": Edit, "write": Write, "read": Read, "stay_silent": Parameters}.items()
}


def ran(name: str, arguments: object, tools: dict[str, Tool[Any]] = TOOLS) -> tuple[str, Any]:
    """Name and arguments of the call that runs; a text stands for itself."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = repaired(ToolCall("one", name, text), tools)
    assert call.call_id == "one"
    try:
        return call.name, json.loads(call.arguments)
    except ValueError:
        return call.name, call.arguments


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *((name, "exec") for name in ("bash", "shell", "run_command", "execute_command", "run", "EXEC", "Bash")),
        *((name, "edit") for name in ("str_replace_editor", "str_replace_based_edit_tool", "str_replace", "edit-file")),
        *((name, "read") for name in ("read_file", "view", "cat", "functions.read", "mcp:read", "functions.read:0")),
        *((name, "write") for name in ("write_file", "create_file", "default_api:Write-File")),
        *(("stay-silent", "stay_silent"), ("functions.Stay_Silent", "stay_silent")),
        *(("reed", "reed"), ("", ""), ("functions.", "functions."), ("rm -rf", "rm -rf")),
    ],
)
def test_names(written: str, meant: str) -> None:
    assert ran(written, {}) == (meant, {})


def test_a_tool_of_that_name_comes_first() -> None:
    tools = {**TOOLS, "bash": made("bash", Exec, changes=True), "mcp:read": made("mcp:read", Read, changes=False)}
    assert ran("bash", {}, tools)[0] == "bash"
    assert ran("mcp:read", {}, tools)[0] == "mcp:read"


@pytest.mark.parametrize(
    ("name", "written", "meant"),
    [
        ("exec", {"cmd": "ls", "workdir": "a"}, {"command": "ls", "cwd": "a"}),
        ("exec", {"script": "ls", "working_directory": "a"}, {"command": "ls", "cwd": "a"}),
        ("read", {"file_path": "a"}, {"path": "a"}),
        ("read", {"filepath": "a", "limit": "3"}, {"path": "a", "limit": "3"}),
        ("write", {"filename": "a", "file_text": "b"}, {"path": "a", "content": "b"}),
        ("write", {"path": "a", "contents": "b"}, {"path": "a", "content": "b"}),
        ("write", {"path": "a", "text": "{}"}, {"path": "a", "content": "{}"}),
        ("edit", {"path": "a", "old_str": "b", "new_str": "c"}, {"path": "a", "old_string": "b", "new_string": "c"}),
        ("exec", {"cmd": "ls", "command": "pwd"}, {"cmd": "ls", "command": "pwd"}),
        ("read", {"file_path": "a", "filename": "b"}, {"path": "a", "filename": "b"}),
        ("write", {"cmd": "ls"}, {"cmd": "ls"}),
        ("read", {"path": "a", "items": '[{"label": "x"}]'}, {"path": "a", "items": [{"label": "x"}]}),
        ("exec", {"command": "[ -e a ]", "env": '{"A": "1"}'}, {"command": "[ -e a ]", "env": {"A": "1"}}),
        ("exec", {"command": '{"a": 1}', "env": "[1]"}, {"command": '{"a": 1}', "env": "[1]"}),
        ("reed", {"file_path": "a"}, {"file_path": "a"}),
    ],
)
def test_names_and_values_of_parameters(name: str, written: dict[str, Any], meant: dict[str, Any]) -> None:
    assert ran(name, written) == (name, meant)


@pytest.mark.parametrize(
    ("written", "name", "meant"),
    [
        ({"command": "view", "path": "a"}, "read", {"path": "a"}),
        ({"command": "create", "path": "a", "file_text": "b"}, "write", {"path": "a", "content": "b"}),
        (
            {"command": "str_replace", "path": "a", "old_str": "b", "new_str": "c"},
            "edit",
            {"path": "a", "old_string": "b", "new_string": "c"},
        ),
        ({"command": "insert", "path": "a"}, "edit", {"command": "insert", "path": "a"}),
    ],
)
def test_editors_that_are_several_tools(written: dict[str, Any], name: str, meant: dict[str, Any]) -> None:
    for editor in ("str_replace_editor", "str_replace_based_edit_tool"):
        assert ran(editor, written) == (name, meant)


@pytest.mark.parametrize(
    ("text", "lossless"),
    [
        ('{"path": "a", }', True),
        ('```json\n{"path": "a"}\n```', True),
        ('```{"path": "a",}```', True),
        ('"{\\"path\\": \\"a\\"}"', True),
        ('{"path": "a"', False),
        ('{"path": "a', None),
        ('{"path": "a"} {"path": "b"}', None),
        ("{path: a}", None),
        ("{'path': 'a'}", None),
    ],
)
def test_nearly_valid(text: str, lossless: bool | None) -> None:
    """Of what changes something nothing is put back that was cut off; what would be guessed is left as it was."""
    assert ran("read", text) == ("read", text if lossless is None else {"path": "a"})
    assert ran("write", text) == ("write", {"path": "a"} if lossless else text)


def test_what_is_inside_strings_stays() -> None:
    assert ran("exec", '{"command": "echo \\",}\\" ,]",}') == ("exec", {"command": 'echo ",}" ,]'})
    assert ran("exec", '{"command": "echo a\necho b"}') == ("exec", {"command": "echo a\necho b"})


def test_an_editor_whose_order_was_cut_off_changes_nothing() -> None:
    text = '{"command": "create", "path": "a", "file_text": "b"'
    assert ran("str_replace_editor", text) == ("edit", text)


def test_valid_arguments_stay_as_they_were_written() -> None:
    text = '{ "path":"ä",  "limit": 1.0 }'
    assert repaired(ToolCall("one", "read", text), TOOLS) == ToolCall("one", "read", text)


@given(st.text(st.sampled_from('{}[]",:\\ \n`jsonpath1'), max_size=30))
def test_nothing_raises(text: str) -> None:
    for name in ("read", "write", text):
        repaired(ToolCall("one", name, text), TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '"\\"' * 100_000,
        '{"a": "' + '\\"' * 100_000,
        '{"a": "' + '\\"' * 100_000 + "\\",
        "{" * 100_000 + ",}" * 100_000,
        '{"command": ["view"], "path": 1}',
        '{"command": {}}',
    ],
)
def test_odd_arguments_are_looked_at_once(text: str) -> None:
    """Not once for each of their characters."""
    for name in ("read", "write", "str_replace_editor", text):
        repaired(ToolCall("one", name, text), TOOLS)
