"""What must be asked is asked, what people would only be trained to say yes to is not."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.shell import Judge, Judgement, Rule, is_refused_variable
from tests.shell.corpus import Line, Place, benign, bypass, make_place

MOST_THAT_ASK = 0.1  # of the commands that only look


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("place"))


Judged = Sequence[tuple[Line, Judgement]]


def _judged(place: Place, lines: Sequence[Line]) -> Judged:
    judges: dict[tuple[str, ...], Judge] = {}
    return [
        (line, place.judged(judges.setdefault(line.rules, place.judge(line.rules)), line.command)) for line in lines
    ]


@pytest.fixture(scope="module")
def dangerous(place: Place) -> Judged:
    return _judged(place, bypass())


@pytest.fixture(scope="module")
def usual(place: Place) -> Judged:
    return _judged(place, benign())


def test_the_corpora_are_as_large_as_they_should_be(dangerous: Judged, usual: Judged) -> None:
    assert len(dangerous) >= 400
    assert len([line for line, _ in usual if not line.asks]) >= 300


def test_nothing_of_the_bypass_corpus_is_allowed(dangerous: Judged) -> None:
    allowed = [
        f"bypass.txt:{line.number} {line.what}: {line.command!r}"
        for line, judgement in dangerous
        if not judgement.misses
    ]
    assert not allowed, f"{len(allowed)} allowed\n" + "\n".join(allowed)


def test_why_is_said_in_sentences(dangerous: Judged) -> None:
    for line, judgement in dangerous:
        for said in (*judgement.misses, *judgement.risks):
            assert said == said.strip(), line
            assert said.isprintable(), (line, said)


def test_of_the_commands_that_only_look_hardly_any_ask(usual: Judged) -> None:
    looking = [(line, judgement) for line, judgement in usual if not line.asks]
    asked = [
        f"benign.txt:{line.number} {line.command!r}: {' '.join(judgement.misses)}"
        for line, judgement in looking
        if judgement.misses
    ]
    others = [judgement for line, judgement in usual if line.asks]
    shares = (
        f"{len(asked)} of {len(looking)} that only look ask, "
        f"and {sum(bool(judgement.misses) for judgement in others)} of {len(others)} that rightly ask"
    )
    sys.stdout.write("\n".join(["", shares, *asked, ""]))  # to be seen with -s: what might be allowed next
    assert len(asked) <= MOST_THAT_ASK * len(looking), "\n".join([shares, *asked])


def test_what_is_always_allowed_is_that_command_there_and_no_other(place: Place, usual: Judged) -> None:
    judge = place.judge()
    wrong = []
    for line, judgement in usual:
        if not line.asks or not judgement.misses or not judgement.rules:
            continue
        rules: tuple[Rule, ...] = judgement.rules
        if place.judged(judge, line.command, rules).misses:
            wrong.append(f"still asks: {line.command!r} with {rules}")
        others = [f"{line.command}; rm other", f"{line.command} && touch other", f"rm other | {line.command}"]
        others += [f"{line.command} $(rm other)", f"PATH=. {line.command}", f"env LD_PRELOAD=./x.so {line.command}"]
        if not set("\n#|&").intersection(line.command):
            others += [f"{line.command} --other", f"{line.command} 'other word'", f"{line.command} > /etc/x"]
        wrong += [f"allows {other!r} with {rules}" for other in others if not _asks(judge, place, other, rules)]
        if not place.judged(judge, line.command, rules, place.workspace / "sub").misses:
            wrong.append(f"allows elsewhere: {line.command!r} with {rules}")
    assert not wrong, "\n".join(wrong)


def _asks(judge: Judge, place: Place, command: str, rules: Sequence[Rule] = ()) -> bool:
    return bool(place.judged(judge, command, rules).misses)


def test_what_is_always_allowed_opens_nothing_of_the_bypass_corpus(
    place: Place, dangerous: Judged, usual: Judged
) -> None:
    judge = place.judge()
    granted = {rule for line, judgement in usual if line.asks for rule in judgement.rules}
    opened = [
        f"bypass.txt:{line.number} {line.what}: {line.command!r}"
        for line, own in dangerous
        if own.misses and not line.rules and not (own.rules and granted.issuperset(own.rules))
        if not _asks(judge, place, line.command, tuple(granted))
    ]
    assert granted
    assert not opened, "\n".join(opened)


def test_arguments_of_a_stored_rule_are_what_they_were_and_no_pattern(place: Place) -> None:
    judge = place.judge()
    for asked, other in (
        ("rm '*'", "rm b"),
        ("rm 'a?'", "rm ab"),
        ("rm '[ab]'", "rm a"),
        ("rm '**'", "rm -rf a b"),
        ("rm '!a'", "rm b"),
        (r"rm '\a'", "rm a"),
        ("rm a", "rm A"),
        ("rm a b", "rm 'a b'"),
        ("rm 'a b'", "rm a b"),
        ("rm ''", "rm"),
        ("rm -- -a", "rm -a"),
        ("frob", "frob x"),
        ("frob x", "frob"),
        ("frob", "frob ''"),
        ("rm a/b", "rm a/../b"),
        ("rm caf\u00e9", "rm cafe\u0301"),
    ):
        rules = place.judged(judge, asked).rules
        assert not rules or not _asks(judge, place, asked, rules), asked
        assert _asks(judge, place, other, rules), (asked, other, rules)


def test_a_rule_of_a_name_means_the_program_of_the_system(place: Place, tmp_path: Path) -> None:
    """Whatever PATH says: a program which the model may have written is none that somebody has allowed."""
    for path in (f"{place.workspace}/bin:{place.path}", f".:{place.path}", f":{place.path}", f"bin:{place.path}"):
        for rule in ("npm test", "npm", "npm **"):
            judge = place.judge([rule], path)
            judgement = place.judged(judge, "npm test")
            assert judgement.misses or judgement.commands[0][0].startswith("/usr/"), (path, rule)
    link = tmp_path / "npm"
    link.symlink_to(place.workspace / "bin/npm")
    assert _asks(place.judge(["npm test"], f"{tmp_path}:{place.path}"), place, "npm test")


def test_rules_are_shell_words_with_patterns(place: Place) -> None:
    judge = place.judge(["git push origin *", "npm run test:*", "make", "touch 'a b'", "pip install **"])
    for allowed in (
        "git push origin main",
        "npm run test:unit",
        "make all -j2",
        "touch 'a b'",
        "pip install",
        "pip install a b",
    ):
        assert not _asks(judge, place, allowed), allowed
    for asked in (
        "git push origin",
        "git push origin a b",
        "npm run test",
        "npm run test:a -- b",
        "touch a b",
        "pip download a",
    ):
        assert _asks(judge, place, asked), asked


_TELLING_VARIABLES = (
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "BASH_ENV",
    "ENV",
    "IFS",
    "PS4",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "HOME",
    "GIT_DIR",
    "GIT_PAGER",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_EXEC_PATH",
    "GIT_TRACE",
    "PAGER",
    "EDITOR",
    "RIPGREP_CONFIG_PATH",
    "LESSOPEN",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "GCONV_PATH",
    "LOCPATH",
    "XDG_CONFIG_HOME",
    "BASH_FUNC_ls%%",
    "TMPDIR",
    "GLOBIGNORE",
    "TAR_OPTIONS",
    "GREP_OPTIONS",
)


def test_variables_that_change_what_a_program_does_are_refused() -> None:
    assert [name for name in _TELLING_VARIABLES if not is_refused_variable(name)] == []


def test_whatever_it_is_given_it_answers(place: Place) -> None:
    judge = place.judge(["frob **"])
    long = "x" * 29_000
    for command in (
        "",
        " ",
        "\n",
        "\0",
        "#",
        ";",
        "&",
        "\ud800",
        "ls \udcff",
        "\N{PILE OF POO}",
        "$(" * 5_000,
        "(" * 10_000,
        "{ " * 5_000,
        "`" * 9_999,
        "\\`" * 9_999,
        "ls " + "a" * 29_000,
        "ls; " * 7_000,
        "ls | " * 5_000 + "ls",
        "{a,b}" * 5_000,
        "echo {1..1000000000}",
        "echo " + "{a,b}" * 40,
        "env " * 7_000 + "ls",
        "sudo " * 5_000 + "ls",
        "sh -c '" * 3_000,
        "eval " * 5_000 + "ls",
        "ls <<" + " A <<".join("ABCDEFGH") + "\n",
        "cat <<A\n" * 3_000,
        "! " * 9_999 + "ls",
        "if " * 5_000,
        "case a in " * 2_000,
        "[[ " + "( " * 5_000,
        "(( " + "( " * 5_000,
        "echo $((" + "(" * 5_000,
        "a=" * 9_999,
        "ls " + "${a:-" * 5_000,
        "f() { " * 3_000,
        "ls " + ">a " * 9_000,
        f"sed -n '{long}' a",
        f"awk '{'{' * 9_000}' a",
        f"find . {'( ' * 9_000}",
        f"find . {'-exec ls {} + ' * 1_500}",
        f"git log {'-c ' * 9_000}",
        shlex.quote(long),
    ):
        answer = place.judged(judge, command)
        assert isinstance(answer, Judgement), command[:40]
        for said in (*answer.misses, *answer.risks):
            assert len(said) < 2_000, command[:40]
    for folder in (place.workspace / "none", Path("/"), Path("/proc"), place.workspace / "a.txt"):
        assert isinstance(place.judged(judge, "ls > x", folder=folder), Judgement)
    assert place.judged(judge, "echo x > x", folder=Path("/etc")).misses
