"""What rules cover of the commands in the corpora, and that what was allowed for always opens nothing else."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.shell import Judge, Judgement, Level, Rule
from tests.shell.corpus import Line, Place, benign, bypass, make_place, places

MOST_UNREAD = 0.02  # of the commands that agents run
MOST_NEVER_GRANTED = 0.15  # of those that do more than look, in a sandbox


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


def test_each_line_can_be_had_with_a_place_of_its_own(tmp_path: Path) -> None:
    lines = [bypass()[0], benign()[0], bypass()[1]]
    seen = []
    for line, place in places(tmp_path, lines):
        assert (place.workspace / "src/app.py").is_file()
        assert (place.workspace / ".git/objects").is_dir() == line.repository
        assert not (place.workspace / "left").exists()
        (place.workspace / "left").touch()
        seen.append(line)
    assert seen == lines


def test_nothing_of_the_bypass_corpus_is_covered_on_the_host(dangerous: Judged) -> None:
    covered = [
        f"bypass.txt:{line.number} {line.what}: {line.command!r}"
        for line, judgement in dangerous
        if judgement.covered == "host"
    ]
    assert not covered, f"{len(covered)} covered\n" + "\n".join(covered)


def test_without_rules_only_the_shell_itself_is_covered(dangerous: Judged, usual: Judged) -> None:
    for line, judgement in (*dangerous, *usual):
        if judgement.covered and not line.rules:
            assert not [words for words in judgement.commands if words[0].startswith("/")], line


def test_why_is_said_in_sentences(dangerous: Judged) -> None:
    for line, judgement in dangerous:
        for said in (*judgement.unread, *judgement.uncovered, *judgement.risks):
            assert said == said.strip(), line
            assert said.isprintable(), (line, said)


def test_hardly_any_command_of_agents_is_not_read_or_cannot_be_granted(usual: Judged) -> None:
    unread = [f"benign.txt:{line.number} {line.command!r}" for line, judgement in usual if judgement.unread]
    assert len(unread) <= MOST_UNREAD * len(usual), "\n".join(unread)
    doing = [(line, judgement) for line, judgement in usual if line.asks]
    never = [line.command for line, judgement in doing if not judgement.covered and not judgement.rules("work")]
    assert len(never) <= MOST_NEVER_GRANTED * len(doing), "\n".join(never)


@pytest.mark.parametrize("level", ["work", "host"])
def test_what_is_always_allowed_is_that_command_there_and_no_other(place: Place, usual: Judged, level: Level) -> None:
    judge = place.judge()
    wrong, tried = [], 0
    for line, judgement in usual:
        if not (rules := judgement.rules(level)):
            continue
        tried += 1
        if place.judged(judge, line.command, rules).covered != level:
            wrong.append(f"not covered: {line.command!r} with {rules}")
        others = [f"{line.command}; rm other", f"{line.command} && touch other", f"rm other | {line.command}"]
        others += [f"{line.command} $(rm other)", f"env LD_PRELOAD=./x.so {line.command}", f"echo | ({line.command}\n)"]
        if level == "host":
            others += [f"PATH=. {line.command}"]
        if not set("\n#|&$").intersection(line.command):
            others += [f"{line.command} --other", f"{line.command} 'other word'", f"{line.command} < /etc/x"]
        for other in others:
            if _covered(judge, place, other, rules) == level:
                wrong.append(f"covers {other!r} with {rules}")
        if "cd /" not in line.command and place.judged(judge, line.command, rules, place.workspace / "sub").covered:
            wrong.append(f"covers elsewhere: {line.command!r} with {rules}")
    assert not wrong, "\n".join(wrong)
    assert tried > 300


def _covered(judge: Judge, place: Place, command: str, rules: Sequence[Rule] = ()) -> Level | None:
    return place.judged(judge, command, rules).covered


def test_what_is_always_allowed_opens_nothing_of_the_bypass_corpus(
    place: Place, dangerous: Judged, usual: Judged
) -> None:
    judge = place.judge()
    granted = {rule for _, judgement in usual for rule in judgement.rules("host")}
    opened = [
        f"bypass.txt:{line.number} {line.what}: {line.command!r}"
        for line, own in dangerous
        if not line.rules and not granted.issuperset(own.rules("host") or [Rule("")])
        if _covered(judge, place, line.command, tuple(granted)) == "host"
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
        rules = place.judged(judge, asked).rules("host")
        assert _covered(judge, place, asked, rules) == "host", asked
        assert _covered(judge, place, other, rules) is None, (asked, other, rules)


def test_a_rule_of_a_name_means_the_program_of_the_system(place: Place, tmp_path: Path) -> None:
    """Whatever PATH says: a program which the model may have written is none that somebody has allowed."""
    for path in (f"{place.workspace}/bin:{place.path}", f".:{place.path}", f":{place.path}", f"bin:{place.path}"):
        for rule in ("npm test", "npm", "npm **"):
            judge = place.judge([rule], path)
            judgement = place.judged(judge, "npm test")
            assert not judgement.covered or judgement.commands[0][0].startswith("/usr/"), (path, rule)
    link = tmp_path / "npm"
    link.symlink_to(place.workspace / "bin/npm")
    assert _covered(place.judge(["npm test"], f"{tmp_path}:{place.path}"), place, "npm test") is None


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
        assert _covered(judge, place, allowed) == "host", allowed
    for asked in (
        "git push origin",
        "git push origin a b",
        "npm run test",
        "npm run test:a -- b",
        "touch a b",
        "pip download a",
    ):
        assert _covered(judge, place, asked) is None, asked


def test_whatever_it_is_given_it_answers(place: Place) -> None:
    judge = place.judge([Rule("/*")])
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
        f"frob '{long}' a",
        f"frob {'( ' * 9_000}",
        f"frob {'-c ' * 9_000}",
        shlex.quote(long),
    ):
        answer = place.judged(judge, command)
        assert isinstance(answer, Judgement), command[:40]
        for said in (*answer.unread, *answer.uncovered, *answer.risks):
            assert len(said) < 2_000, command[:40]
    for folder in (place.workspace / "none", Path("/"), Path("/proc"), place.workspace / "a.txt"):
        assert isinstance(place.judged(judge, "ls > x", folder=folder), Judgement)
