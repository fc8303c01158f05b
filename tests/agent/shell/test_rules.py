"""Rules: entries of the configuration, what people granted, and that they allow nothing else."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.shell import LEVELS, Level, Rule, load_rule, parse_rule, rule_json
from tests.agent.shell.conftest import Asker

GRANTED = (
    "rm -rf src/deep",
    "ls && rm 'a b' | touch '*' \"[x]\" '?'",
    "timeout 5 rm x",
    "bash -c 'rm x; mkdir y'",
    "find . -delete",
    "git push origin main",
    "python3 -c 'import os'",
    "bash script.sh",
    "./ls",
    "cd src && rm a.py",
    "sudo rm x",
    "sort -o x y",
    "mkdir ''",
    "cat ~/.ssh/config",
    "make",
    "echo 'rm x' | sh",
    "bash <<'EOF'\nrm x\nEOF",
    "if ls; then rm x; else ls; fi",
    "LANG=C rm x",
    "{ sh; } <<'EOF'\nrm x\nEOF",
)
BOUND = (  # which can be granted in a sandbox alone
    ("echo $(rm x) > note", "network"),
    ("rm x > ../y", "network"),
    ("sh < x", "network"),
    ("FOO=1 rm x", "work"),
    ("for i in a b; do rm x; done", "work"),
    ("rm x > /dev/tcp/a/1", "work"),
)
NOTHING = (
    "rm $x",
    "rm *",
    "f() { rm x; }; f",
    "eval rm x",
    "rm a\u200bb",
    "source x",
    "bash <(ls)",
    "nothing-of-this-name x",
    "read x; rm y",
    "HOME=/; rm ~/y",
    "for HOME in /; do rm $HOME/y; done",
)


def _stored(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    return tuple(load_rule(rule_json(rule)) for rule in rules)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("command", GRANTED)
def test_what_was_granted_is_covered_and_nothing_beside_it(ask: Asker, command: str, level: Level) -> None:
    rules = ask(command, allowlist=()).rules(level)
    assert rules
    assert _stored(rules) == rules
    granted = ask(command, *rules, allowlist=())
    assert granted.covered == level
    assert granted.rules(level) == ()
    assert ask(command, *rules, folder="src", allowlist=()).covered is None or "cd src" in command
    for at, rule in enumerate(rules):
        rest = (*rules[:at], *rules[at + 1 :])
        for other in (
            (),
            (replace(rule, arguments=(*(rule.arguments or ()), "more")),),
            (replace(rule, folder="/"),),
            (replace(rule, binary="/bin/other"),),
            (replace(rule, fed="ls | "),),
        ):
            assert ask(command, *rest, *other, allowlist=()).covered is None
        if level != "look":
            lower = LEVELS[LEVELS.index(level) - 1]
            assert ask(command, *rest, replace(rule, level=lower), allowlist=()).covered == lower


@pytest.mark.parametrize(("command", "widest"), BOUND)
def test_what_no_rule_can_speak_of_is_granted_in_a_sandbox_alone(ask: Asker, command: str, widest: Level) -> None:
    for level in LEVELS:
        rules = ask(command, allowlist=()).rules(level)
        if LEVELS.index(level) > LEVELS.index(widest):
            assert rules == ()
        else:
            assert ask(command, *rules, allowlist=()).covered == (level if rules else widest)


@pytest.mark.parametrize("command", NOTHING)
def test_no_rule_is_offered_for_what_is_not_known_before(ask: Asker, command: str) -> None:
    assert [ask(command, allowlist=()).rules(level) for level in LEVELS] == [()] * 4


def test_a_granted_argument_is_no_pattern(ask: Asker) -> None:
    granted = ask("rm '*' '[ab]' 'c?'").rules("host")
    assert ask("rm '*' '[ab]' 'c?'", *granted).covered == "host"
    for command in ("rm 'x' '[ab]' 'c?'", "rm '*' a 'c?'", "rm '*' '[ab]' cd"):
        assert ask(command, *granted).covered is None, command


def test_what_was_granted_holds_for_what_it_was_fed_with(ask: Asker) -> None:
    """A shell runs what it reads, so that a rule about its words alone would be one for everything."""
    for command, others in (
        ("sh", ("echo 'rm x' | sh", "sh <<< 'rm x'", "sh <<'EOF'\nrm x\nEOF", "{ sh; } < x", "sh < x")),
        ("echo a | sh", ("echo b | sh", "sh", "ls; echo a | cat | sh", "{ echo b; echo a; } | sh", "sh <<< a")),
        ("sh <<'EOF'\na\nEOF", ("sh <<'EOF'\nb\nEOF", "cat <<'EOF' | sh\na\nEOF", "sh <<< a")),
        ("cat <<'EOF' | sh\na\nEOF", ("cat <<'EOF' | sh\nb\nEOF", "{\ncat <<'EOF'\nb\nEOF\n} | sh")),
        ("{ sh; } < a", ("{ sh; } < b", "sh", "echo a | { sh; }")),
        ("{ sh; } <<'EOF'\na\nEOF", ("{ sh; } <<'EOF'\nb\nEOF", "{ sh; }")),
        ("sh < x", ("sh < y", "echo x | sh", "sh")),
        ("echo a | while sh; do break; done", ("echo b | while sh; do break; done", "while sh; do break; done")),
        ("echo a | (ls; sh)", ("echo b | (ls; sh)", "(ls; sh)", "echo a | (cat x | sh)")),
    ):
        rules = ask(command).rules("work")
        assert rules, command
        assert ask(command, *rules).covered == "work"
        for other in others:
            assert ask(other, *rules).covered is None, (other, rules)


def test_entries_of_the_configuration(ask: Asker, workspace: Path, binaries: Path) -> None:
    push = (parse_rule("git push origin *"), parse_rule(f"{binaries}/m*"), parse_rule("pytest -x **"))
    for command in ("git push origin main", "make all", "mkdir x", "pytest -x", "pytest -x a b", "echo x | make"):
        assert ask(command, allowlist=push).covered == "host", command
    for command in ("git push origin a b", "git push", "git push evil x", "git push origin $x", "pytest", "rm x"):
        assert ask(command, allowlist=push).covered is None, command
    (workspace / "node_modules" / ".bin").mkdir(parents=True)
    (workspace / "node_modules" / ".bin" / "pytest").touch(0o755)
    assert ask("pytest -x", allowlist=push).covered is None  # the name leads into the workspace
    assert ask("./pytest -x", allowlist=push).covered is None
    assert parse_rule("git") == Rule("git", None, "", "host")
    for wrong in ("", "'a", "bin/x", "gi*", "a ** b", "git push | sh", "ls > x"):
        with pytest.raises(ValueError, match=r"\w"):
            parse_rule(wrong)


def test_rules_as_they_are_stored() -> None:
    for rule in (Rule("a"), Rule("/a", ("é", ""), "/f", "look", "x | "), Rule("a", (), "", "network", "")):
        assert load_rule(rule_json(rule)) == rule
    assert load_rule('["/bin/a", ["b"], "/f"]') == Rule("/bin/a", ("b",), "/f", "host", "")
    assert load_rule('["/bin/a", null, "", "work"]') == Rule("/bin/a", None, "", "work", "")
    for wrong in (
        "",
        "{}",
        "[1]",
        '["a", [1], ""]',
        '["a", null, "", "all"]',
        '["a", null, "", []]',
        '["a", null, "", "host", 1]',
        '["a", null, "", "host", "", ""]',
        '["a", "b", ""]',
    ):
        with pytest.raises(ValueError, match=r"\w|^$"):
            load_rule(wrong)


_PIECES = st.sampled_from(
    [
        "ls",
        "cat",
        "rm",
        "|",
        "||",
        "&&",
        ";",
        "&",
        "(",
        ")",
        "{",
        "}",
        "'",
        '"',
        "\\",
        "$",
        "$(",
        "`",
        "#",
        "<",
        ">",
        "<<",
        "<<EOF",
        "EOF",
        "\n",
        "2>&1",
        ">f",
        "*",
        "?",
        "~",
        "=",
        "[",
        "]",
        "[[",
        "]]",
        "if",
        "then",
        "fi",
        "for",
        "do",
        "done",
        "in",
        "case",
        "esac",
        "while",
        "time",
        "!",
        "function",
        "coproc",
        "eval",
        "exec",
        "x=1",
        "$x",
        "${x}",
        "$'\\x41'",
        "{a,b}",
        "-",
        "-c",
        "bash",
        "xargs",
        "find",
        "-exec",
        "{}",
        ";",
        "+",
        "$((",
        "))",
        "\t",
        "\u200b",
        "é",
        "\x00",
        "\r",
        "select",
        "until",
        "declare",
        "export",
        "[[",
        "-f",
        "a",
        "a.py",
        "src",
        "..",
        "/",
        "1",
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_PIECES, max_size=25), st.sampled_from((" ", "")), st.text(max_size=20), st.sampled_from(LEVELS))
def test_nothing_makes_it_fail(ask: Asker, pieces: list[str], between: str, text: str, level: Level) -> None:
    line = between.join(pieces) + text
    judgement = ask(line)
    assert "The command could not be analysed." not in judgement.unread
    assert (judgement.covered == "host") == (not judgement.uncovered and not judgement.unread)
    if rules := judgement.rules(level):
        assert ask(line, *rules).covered == level
