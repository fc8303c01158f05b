"""Rules: entries of the configuration, what people granted, and that they allow nothing else."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.shell import Rule, load_rule, parse_rule, rule_json

GRANTED = (
    "rm -rf src/deep",
    "ls && rm 'a b' | touch '*' \"[x]\" '?'",
    "timeout 5 rm x",
    "bash -c 'rm x; mkdir y'",
    "find . -delete",
    "git push origin main",
    "python3 script.py --x=1",
    "python3 -m pytest -x",
    "bash script.sh",
    "./ls",
    "cd src && rm a.py",
    "echo $(rm x) > note",
    "env rm x",
    "sort -o x y",
    "mkdir ''",
    "cat ~/.ssh/config",
    "make",
)
NEVER = (
    "sudo rm x",
    "python3 -c 'x'",
    "python3",
    "bash <(ls)",
    "rm x > ../y",
    "rm $x",
    "rm *",
    "f() { rm x; }; f",
    "FOO=1 rm x",
    "eval rm x",
    "rm a\u200bb",
    "source x",
    "nothing-of-this-name x",
    "perl -e x",
    "echo x | sh",
)


@pytest.mark.parametrize("command", GRANTED)
def test_what_was_granted_is_allowed_and_nothing_beside_it(ask, command: str, workspace) -> None:  # type: ignore[no-untyped-def]
    judgement = ask(command)
    assert judgement.misses
    assert judgement.rules
    assert ask(command, *map(load_rule, map(rule_json, judgement.rules))).misses == ()
    assert ask(command, *judgement.rules, folder="src").misses or "cd src" in command
    for at, rule in enumerate(judgement.rules):
        rest = (*judgement.rules[:at], *judgement.rules[at + 1 :])
        assert ask(command, *rest).misses
        assert ask(command, *rest, replace(rule, arguments=(*(rule.arguments or ()), "more"))).misses
        assert ask(command, *rest, replace(rule, folder="/")).misses
        assert ask(command, *rest, replace(rule, binary="/bin/other")).misses


def test_a_granted_argument_is_no_pattern(ask) -> None:  # type: ignore[no-untyped-def]
    granted = ask("rm '*' '[ab]' 'c?'").rules
    assert ask("rm '*' '[ab]' 'c?'", *granted).misses == ()
    for command in ("rm 'x' '[ab]' 'c?'", "rm '*' a 'c?'", "rm '*' '[ab]' cd"):
        assert ask(command, *granted).misses, command


@pytest.mark.parametrize("command", NEVER)
def test_no_rule_covers_what_is_not_known_before(ask, command: str) -> None:  # type: ignore[no-untyped-def]
    everything = tuple(Rule(name) for name in ["sudo", "rm", "python3", "bash", "sh", "perl", "eval", "source", "f"])
    judgement = ask(command, allowlist=everything)
    assert judgement.rules == ()
    assert judgement.misses or command in ("rm $x", "rm *")  # any arguments were allowed


def test_entries_of_the_configuration(ask, workspace, binaries) -> None:  # type: ignore[no-untyped-def]
    push = (parse_rule("git push origin *"), parse_rule(f"{binaries}/m*"), parse_rule("pytest -x **"))
    for command in ("git push origin main", "make all", "mkdir x", "pytest -x", "pytest -x a b"):
        assert ask(command, allowlist=push).misses == (), command
    assert ask("find . -fprint x -exec rm {} ;", allowlist=(Rule("find"), Rule("rm"))).misses
    for command in ("git push origin a b", "git push", "git push evil x", "git push origin $x", "pytest", "rm x"):
        assert ask(command, allowlist=push).misses, command
    (workspace / "node_modules" / ".bin").mkdir(parents=True)
    (workspace / "node_modules" / ".bin" / "pytest").touch(0o755)
    assert ask("pytest -x", allowlist=push).misses  # the name leads into the workspace
    assert ask("./pytest -x", allowlist=push).misses
    assert parse_rule("git").arguments is None
    for wrong in ("", "'a", "bin/x", "gi*", "a ** b", "git push | sh", "ls > x"):
        with pytest.raises(ValueError, match=r"\w"):
            parse_rule(wrong)
    for wrong in ("", "{}", "[1]", '["a", [1], ""]'):
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
@given(st.lists(_PIECES, max_size=25), st.sampled_from((" ", "")), st.text(max_size=20))
def test_nothing_makes_it_fail(ask, pieces: list[str], between: str, text: str) -> None:  # type: ignore[no-untyped-def]
    judgement = ask(between.join(pieces) + text)
    assert "The command could not be analysed." not in judgement.misses
    if judgement.rules:
        assert ask(between.join(pieces) + text, *judgement.rules).misses == ()
