"""What is read of a line, and up to which level rules cover it."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.shell import LEVELS, Level, Rule, is_harmless_variable
from tests.agent.shell.conftest import Asker
from tests.agent.shell.lines import NETWORK, NEVER, WORK

COVERED = r"""
ls -la src
git status --short && git diff HEAD~1 --stat
git log -n 5 --format='%h %s' --since="2 weeks ago" | cat
git show HEAD:README.md | sed -n '1,10p'
rg -n "foo|bar" src
find . -name '*.py' -not -path './x/*' | head
cd src && ls -la && git status --short 2>&1 | tail -5
cd src; cat a.py
ls 2>/dev/null || true
LC_ALL=C sort README.md
LANG=; ls
timeout 5 nice -n 3 git status
env PATH=. ls
find . -name '*.py' -exec rm {} +
xargs rm
ls \
  -la
cat ~/notes.txt $HOME/notes "$HOME"
echo 'a;b' "c|d" \; a#b HEAD~1 --x~
! ls
(cd src && ls)
cd .. | ls
set -euo pipefail; ls
{ ls; pwd; } > /dev/null
if true; then ls; elif false; then :; else exit 1; fi
while ls; do break; done
ls & ls 2>&1 >&2
ls <<< word
cat <<'EOF'⏎rm $(x)⏎it's⏎EOF
cat <<-EOF | head⏎	a⏎	EOF⏎ls
cat <<'EOF'⏎a⏎ EOF⏎rm x⏎EOF
if ls; then⏎  pwd⏎elif false; then⏎  ls src⏎else⏎  date⏎fi⏎
# first⏎ls |⏎  head &&⏎  cat README.md⏎⏎
"""

LINES = (
    "ls\\\n-l",  # one word for the shell
    'echo "$\\\n(rm x)"',
    "ls\rls",
    "ls\x00ls",
    "ls\u00a0-l",
    "ls \u202e x",
    "l\u0455",
    "echo a\u200bb",
    "ls # it's\nrm x",
    "ls $(ls # )\n)",
    "echo 'a\nb'; rm x",
    "ls 'a",
    'ls "a',
    "ls $(ls",
    "cat <<EOF\n$(ls)\nEOF",
    "cat <<EOF\n`ls`\nEOF",
    "cat <<'EOF'\na\nEOF\nrm x",
    "cat <<A <<B\na\nA\nb\nB",
    "sh <<'EOF'\nls\nEOF",
    'echo "<<EOF\n$(rm x)\nEOF\n"',
    "cat << EOF ; rm x\nEOF",
    "# <<EOF\nrm x\nEOF",
    "cat <<'EOF' \"\nEOF\n$(rm x)\"",
    "echo \"$(cat <<'EOF'\nx)\nEOF\n)\"",  # older shells end the substitution at the parenthesis
    "(" * 5000,
    "$(" * 2000,
    "ls;" * 3000,
    "if ls; then " * 100,
    "x" * 30_000,
    "ls\ud800",
)


@pytest.mark.parametrize("command", [line for line in COVERED.replace("\\\n", "\\⏎").split("\n") if line])
def test_a_line_of_which_all_is_known_is_covered_by_rules(ask: Asker, command: str) -> None:
    judgement = ask(command.replace("⏎", "\n"))
    assert (judgement.covered, judgement.unread, judgement.uncovered) == ("host", (), ())


@pytest.mark.parametrize("command", NEVER)
def test_no_level_is_covered_of_what_is_not_read_or_has_no_rule(ask: Asker, command: str) -> None:
    judgement = ask(command)
    assert judgement.covered is None
    assert judgement.unread or judgement.uncovered
    assert all(len(said) < 300 and said.endswith(".") for said in (*judgement.unread, *judgement.uncovered))


@pytest.mark.parametrize("command", LINES, ids=range(len(LINES)))
def test_what_may_be_read_in_two_ways_is_not_covered(ask: Asker, command: str) -> None:
    assert ask(command).covered is None


@pytest.mark.parametrize(
    ("level", "command"),
    [*(("network", line) for line in [*NETWORK, "cat <<EOF\n$name\nEOF"]), *(("work", line) for line in WORK)],
)
def test_what_a_line_does_besides_its_commands_is_bounded_by_a_sandbox(ask: Asker, level: Level, command: str) -> None:
    judgement = ask(command)
    assert judgement.covered == level
    assert judgement.unread == ()
    assert judgement.uncovered
    for one in LEVELS[LEVELS.index(level) + 1 :]:
        assert judgement.rules(one) == ()


def test_a_line_is_covered_up_to_the_least_level_of_its_commands(ask: Asker) -> None:
    rules = [Rule("ls", level="network"), Rule("cat", ("x",), level="work"), Rule("rm", level="look")]
    for command, level in (
        ("ls", "network"),
        ("ls; cat x", "work"),
        ("cat x | rm y && ls", "look"),
        ("ls; cat y", None),
        ("echo x; pwd", "host"),
        ("echo x > y; ls", "network"),
        ("ls; x=1", "work"),
        ("rm $x", "look"),
        ("cat $x", None),
    ):
        assert ask(command, allowlist=rules).covered == level, command
    assert ask("ls", Rule("ls", level="look"), allowlist=rules).covered == "network"
    assert ask("ls", Rule("ls"), allowlist=rules).covered == "host"


def test_whether_the_line_itself_writes_a_file(ask: Asker) -> None:
    for command in (
        "ls > x",
        "ls >> $x",
        "{ ls; } &> x",
        "ls >| x",
        "ls 2> x",
        "rm y; cat <<< x > x",
        "echo >& $x",
        "ls > x < y",
    ):
        assert ask(command).writes, command
    for command in ("ls", "ls < x", "ls 2>&1", "rm x", "ls > /dev/null 2>&1", "ls &> /dev/null", "ls 2> /dev/stderr"):
        assert not ask(command).writes, command


def test_the_folder_is_followed_exactly(ask: Asker, workspace: Path) -> None:
    for command in (
        "cd link && ls",
        "cd link/tmp; ls",
        "cd src || cd ..; ls",
        "false && cd src; ls",
        "cd src < missing; ls",
        "{ cd src; } < missing; ls",
        "cd -P; ls",
        "cd -; ls",
        "cd; ls",
        "for i in 1 2; do cd ..; done",
        "command cd ..; ls",
        "echo $((1/0)); cd src",
        "cd none; ls",
    ):
        assert ask(command).covered is None, command
    for command, folder in (
        ("cd src && mkdir a", "src"),
        ("cd src; cd ../src/deep; mkdir a", "src/deep"),
        ("(cd src && mkdir a)", "src"),
        ("(cd src); mkdir a", "."),
        ("cd src | mkdir a", "."),
        ("cd src && ls | mkdir a", "src"),
        ("cd src && ls | ls > x; mkdir a", "src"),
        ("cd src && ls 2>&1 | ls > x; mkdir a", "src"),
        ("cd src && ls < x | ls; mkdir a", "src"),
        ("cd src & mkdir a", "."),
        ("echo $(cd src; mkdir a)", "src"),
        ("cd src && ls < <(mkdir a)", "src"),
    ):
        rules = ask(command, allowlist=[Rule("ls")]).rules("work")
        assert [rule.folder for rule in rules] == [str((workspace / folder).resolve())], command


def test_a_file_of_the_workspace_is_not_what_a_rule_names(ask: Asker, workspace: Path) -> None:
    (workspace / "node_modules" / ".bin").mkdir(parents=True)
    (workspace / "node_modules" / ".bin" / "cat").touch(0o755)
    (workspace / "env").touch(0o755)
    for command in ("./ls", f"{workspace}/ls", f"{workspace}/env ls", "./env ls", "src/../env ls", "link/../ls"):
        assert ask(command).covered is None, command
    assert ask("cat README.md").covered is None
    assert ask("../bin/ls").covered is None
    assert ask(f"{workspace.parent}/bin/ls").covered == ask("ls").covered == "host"


def test_programs_by_their_path(ask: Asker, workspace: Path) -> None:
    anything = [Rule("/*")]
    for command in ("./ls", "src/./a.py", f"{workspace}/ls", "link/bin/sh"):
        assert ask(command, allowlist=anything).covered == "host", command
    for command in ("ls/", "./ls/", "src", "./", "src/none", "/", "src/../ls", "./src/deep", "src/a.py/"):
        assert ask(command, allowlist=anything).covered is None, command


def test_the_parser_is_given_characters_that_it_bears(ask: Asker) -> None:
    """For others its scanner reads beyond its tables, and the program ends."""
    script = (
        "import sys; from pathlib import Path; from agent.shell import Judge; "
        "judge = Judge(workspace=Path('/none'), path='', allowlist=()).judge; "
        "[judge(f's{chr(c)}{{{chr(c)} ${chr(c)} a={chr(c)}', Path('/')) for c in range(0x10000, 0x110000, 0x200)]"
    )
    for _ in range(3):  # where its tables lie is a matter of chance
        subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], check=True)
    assert ask("echo é 'ü €'é é\\ü").commands == (("echo", "é", "ü €é", "éü"),)


def test_what_was_found_is_said(ask: Asker, binaries: Path) -> None:
    judgement = ask("sudo rm -rf x | cat; $x; rm -r \"y\" '$z' $z")
    assert judgement.commands == (
        (f"{binaries}/sudo", "rm", "-rf", "x"),
        (f"{binaries}/cat",),
        ("$x",),
        (f"{binaries}/rm", "-r", "y", "$z", "$z"),
    )
    assert judgement.unread == ()
    assert judgement.uncovered == (
        "No rule allows `sudo rm -rf x` with these words.",
        "The command name is not known before it runs: `$x`.",
        "It is not known before it runs what becomes of `$z`.",
        "No rule allows `rm -r y $z $z` with these words.",
    )
    assert judgement.risks == ("Runs with other rights.", "Deletes recursively.")
    found = ask("mkdir x", allowlist=[Rule("mkdir", level="work")])
    assert found.uncovered == ("No rule allows `mkdir x` with more than work.",)


def test_variables_that_change_no_program() -> None:
    for name, value in (("LANG", "de_DE.UTF-8"), ("LC_ALL", "C"), ("TZ", "Europe/Berlin"), ("NO_COLOR", "1")):
        assert is_harmless_variable(name, value), name
    for name, value in (("LANG", "zh_CN.GBK"), ("TZ", "../x"), ("PATH", "x"), ("LD_PRELOAD", ""), ("CI", "a b")):
        assert not is_harmless_variable(name, value), name


WORDS = [
    "a", "'a b'", '"a b"', "a\\ b", "a\\;b", "a'b'\"c\"", '"a\\"b\\$c\\\\d\\e"', "''", "'a'\\''b'", "$", "a$", '"$"',
    "a=b", "a#b", "{}", "{a}", "a,b", "~", "-l", "--x='y z'", "\"'\"", "'\"'", "é", '"é€"', "\\é", "!", "^", "%", "@",
    "a:b", "]", "[", "a]", '"a\nb"', "'a\nb'", "\\{a,b}", '{a","b}', "'{a,b}'", '"*"', "\\*", "'?'", "HEAD~1", "--x~",
    "~/a", '~/"a b"', "$HOME", '"$HOME/a b"', '"~"', "\\~", "a=\\~", "a='~'", "a/~", "${HOME}/a",
    "$'a'", "{a,b}", "{{},b}", "*", "$x", "`x`", '"$(x)"', "{1..3}", "a=~", "a=b:~/c", "a~b=~/c", "~root", "~+", "$_",
    "$RANDOM", "${HOME:-x}", "$((1 + 1))", '~"/a"', "[a]", "a?", "<(x)", "$@", "$1", "${x}", '"$x"',
]  # fmt: skip
_LAST_KNOWN = WORDS.index("${HOME}/a")


@pytest.mark.parametrize("home", ["/home/ann", "/home/ann b", "/home/*"])
def test_words_that_are_known_are_what_the_shell_makes_of_them(ask: Asker, workspace: Path, home: str) -> None:
    """Only commands whose words are all known have rules."""
    known = []
    for word in WORDS:
        script = f"printf '%s\\0' {word}"
        real = subprocess.run(
            ["bash", "-c", script],
            cwd=workspace / "src" / "deep",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"HOME": home, "x": "y z"},
            check=False,
        ).stdout.decode()
        judgement = ask(f"rm {word}", home=home)
        if judgement.rules("host"):
            known.append(word)
            assert [*judgement.commands[0][1:]] == real.split("\0")[:-1], word
    if home == "/home/ann":
        assert known == WORDS[: _LAST_KNOWN + 1]
