"""What the model is told of a tool is the same bytes every time; what it wrote wrongly is explained to it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from agent.message import ToolOutput
from agent.tools.base import CallContext, Parameters, Tool
from agent.tools.registry import GROUPS, NAMES, PROFILES, SESSIONS, Policy, Rule, rules, tools_for
from agent.tools.schema import ArgumentsError, parse_arguments, spec
from agent.tools.workspace import Workspace
from bot.config.web import Web
from bot.furniture import web_tools
from tests.agent.tools.commands import commands


class OddParameters(Parameters):
    """With a parameter that is called like a key of the schema."""

    title: str
    count: int | None = Field(default=None, ge=1, description="How many.")


class OddTool(Tool[OddParameters]):
    """Does nothing much."""

    name, description, parameters = "odd", "Odd.", OddParameters

    async def run(self, parameters: OddParameters, context: CallContext) -> ToolOutput:
        return ToolOutput(text=parameters.title)


def test_the_schema_says_what_a_model_needs_and_no_more() -> None:
    assert json.loads(spec(OddTool()).schema_json) == {
        "type": "object",
        "required": ["title"],
        "properties": {
            "title": {"type": "string"},
            "count": {"type": "integer", "description": "How many."},
        },
    }


def test_the_schema_is_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\n"
        "from agent.tools.registry import tools_for\n"
        "from agent.tools.schema import spec\n"
        "from agent.tools.workspace import Workspace\n"
        "from tests.agent.tools.commands import commands\n"
        "made = commands(Path('/'))\n"
        "print([spec(tool) for tool in tools_for(Workspace(Path('/')), commands=(made.exec, made.process))])"
    )
    made = commands(tmp_path)
    here = str([spec(tool) for tool in tools_for(Workspace(tmp_path), commands=(made.exec, made.process))])
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.strip() == here


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"title": "x", "cuont": 1}', "- cuont: no such parameter. Did you mean count?"),
        ('{"title": "x", "count": 0}', "- count: must be greater than or equal to 1; found 0."),
        ('{"title": "x", "count": "many"}', "- count: must be a valid integer"),
        ('{"count": 1}', "- title: missing."),
        ("", "- title: missing."),
        ('{"title": 5}', "- title: must be a valid string; found 5."),
        ('{"title": "x', "- The arguments are not valid JSON"),
        ('{"title": "\\ud800"}', "- The arguments are not valid JSON"),
        ('["x"]', '- The arguments must be one JSON object, found ["x"].'),
        ('{"title": ' + '["' + "x" * 500 + '"]}', "xxx…"),
    ],
)
def test_mistakes_are_explained(arguments: str, complaint: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(OddTool(), arguments)
    told = str(caught.value)
    assert complaint in told
    assert told.startswith("Wrong arguments for odd; it was not called.\n")
    assert told.endswith("\nIt takes: title (required), count.")
    assert len(told) < 400


def test_good_arguments_become_parameters() -> None:
    assert parse_arguments(OddTool(), '{"title": "x", "count": null}') == OddParameters(title="x")
    assert parse_arguments(OddTool(), ' {"count": 3, "title": "x"} ') == OddParameters(title="x", count=3)


def test_the_tools_there_are(tmp_path: Path) -> None:
    made = commands(tmp_path)
    offered = tools_for(Workspace(tmp_path), commands=(made.exec, made.process, *web_tools(Web())))
    assert [*(tool.name for tool in offered), *SESSIONS] == list(NAMES)


# Rules for tools: patterns, groups and profiles; each rule only takes away.

OFFERED = (
    *("read", "write", "edit", "glob", "grep", "exec", "process", "web_fetch", "web_search", "sessions_send"),
    *("memory_get", "message", "ask_person", "schedule", "stay_silent", "mcp_read"),
)
PATTERNS = st.sampled_from((*OFFERED, "*", "re*", "W?ite", "GROUP:FS", "none", *GROUPS))
RULES = st.builds(Rule, st.just("key"), st.lists(PATTERNS, max_size=4).map(tuple), only=st.booleans())


def reached(policy: Policy) -> set[str]:
    return {name for name in OFFERED if policy.why_not(name) is None}


def layer(allow: tuple[str, ...] | None = None, deny: tuple[str, ...] = ()) -> Policy:
    return Policy(rules("tools", allow, deny))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (layer(), set(OFFERED)),
        (layer(allow=("READ", "ex*")), {"read", "exec"}),
        (layer(allow=()), set()),
        (layer(deny=("*read", "Schedule")), set(OFFERED) - {"read", "mcp_read", "schedule"}),
        (layer(allow=("*",), deny=("*",)), set()),
        (layer(allow=("Group:FS",), deny=("edit",)), {"read", "write", "glob", "grep"}),
        (layer(allow=("group:web", "group:memory")), {"web_fetch", "web_search", "memory_get"}),
    ],
)
def test_patterns_and_groups(policy: Policy, expected: set[str]) -> None:
    assert reached(policy) == expected


def test_profiles() -> None:
    reach = {name: reached(Policy([Rule("p", patterns, only=True)])) for name, patterns in PROFILES.items()}
    assert reach["minimal"] == {"stay_silent", "ask_person"}
    assert reach["messaging"] == reach["minimal"] | {"message", "sessions_send"}
    assert reach["coding"] == set(OFFERED) - {"mcp_read"}
    assert reach["full"] == set(OFFERED)


def test_the_first_rule_against_it_is_named() -> None:
    policy = Policy([Rule("tools.profile: coding", PROFILES["coding"], only=True), *layer(("read",), ("write",))])
    said = [policy.why_not(name) for name in ("read", "mcp_read", "exec", "write")]
    assert said == [None, "tools.profile: coding", "tools.allow", "tools.allow"]
    assert layer(("w*",), ("write",)).why_not("write") == "tools.deny"


@given(st.lists(RULES, max_size=6), RULES, st.integers(0, 6))
def test_one_more_rule_never_adds_a_tool(those: list[Rule], more: Rule, at: int) -> None:
    assert reached(Policy([*those[:at], more, *those[at:]])) <= reached(Policy(those))
