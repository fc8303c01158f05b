"""Rules for tools: patterns, groups and profiles; each rule only takes away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.registry import GROUPS, PROFILES, Policy, Rule, rules

NAMES = (
    *("read", "write", "edit", "glob", "grep", "exec", "process", "web_fetch", "web_search", "sessions_send"),
    *("memory_get", "message", "ask_person", "schedule", "stay_silent", "mcp_read"),
)
PATTERNS = st.sampled_from((*NAMES, "*", "re*", "W?ite", "GROUP:FS", "none", *GROUPS))
RULES = st.builds(Rule, st.just("key"), st.lists(PATTERNS, max_size=4).map(tuple), only=st.booleans())


def reached(policy: Policy) -> set[str]:
    return {name for name in NAMES if policy.why_not(name) is None}


def layer(allow: tuple[str, ...] | None = None, deny: tuple[str, ...] = ()) -> Policy:
    return Policy(rules("tools", allow, deny))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (layer(), set(NAMES)),
        (layer(allow=("READ", "ex*")), {"read", "exec"}),
        (layer(allow=()), set()),
        (layer(deny=("*read", "Schedule")), set(NAMES) - {"read", "mcp_read", "schedule"}),
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
    assert reach["coding"] == set(NAMES) - {"mcp_read"}
    assert reach["full"] == set(NAMES)


def test_the_first_rule_against_it_is_named() -> None:
    policy = Policy([Rule("tools.profile: coding", PROFILES["coding"], only=True), *layer(("read",), ("write",))])
    said = [policy.why_not(name) for name in ("read", "mcp_read", "exec", "write")]
    assert said == [None, "tools.profile: coding", "tools.allow", "tools.allow"]
    assert layer(("w*",), ("write",)).why_not("write") == "tools.deny"


@given(st.lists(RULES, max_size=6), RULES, st.integers(0, 6))
def test_one_more_rule_never_adds_a_tool(those: list[Rule], more: Rule, at: int) -> None:
    assert reached(Policy([*those[:at], more, *those[at:]])) <= reached(Policy(those))
