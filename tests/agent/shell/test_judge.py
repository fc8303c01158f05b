"""What is allowed without asking, and what is not."""

import subprocess

import pytest

from agent.shell import is_refused_variable
from tests.agent.shell.asked import ASKED

ALLOWED = r"""
ls -la src
git status --short && git diff HEAD~1 --stat
git log --oneline -10 | cat
git log -n 5 --format='%h %s' --since="2 weeks ago"
git show HEAD:README.md | sed -n '1,10p'
git -C src log -1; git branch -a; git remote -v
cat README.md | head -20
head -n 5 README.md; tail -5 src/a.py
rg -n "foo|bar" src
grep -rn "def main" --include='*.py' .
find . -name '*.py' -not -path './x/*' | head
find . -type f -exec grep -l foo {} +
wc -l src/*.py
cd src && ls -la && git status --short 2>&1 | tail -5
cd src; cat a.py
ls 2>/dev/null || true
python3 --version; node --version
echo "hello $(date)" > out.txt
for f in src/*.py; do echo "== $f"; head -5 "$f"; done
if [ -f README.md ]; then cat README.md; else ls; fi
[[ -d src && -f README.md ]] && ls
while read -r line; do echo "$line"; done < README.md
jq '.scripts' README.md
sort README.md | uniq -c | sort -rn | head
env
LC_ALL=C sort README.md
x=README.md; cat $x
diff <(ls src) <(ls .)
bash -c 'ls | wc -l'
timeout 5 nice -n 3 git status
time ls
find . -name '*.py' | xargs echo
ls -la | awk '{print $1, $NF}'
sed 's/a/b/g' README.md
ls \
  -la
cat ~/notes.txt
cat /etc/hosts /proc/cpuinfo
command -v git
echo $((1 + 2)) ${x:-none} 'a;b' "c|d" \; a#b
printf '%s\n' a b
! ls
(cd src && ls)
ls > src/deep/list.txt
set -euo pipefail
[ ! -f x ] && echo none
command -V git
cat src/* | head
cat src/*.py src/[ab].py
grep -n def src/*.py
wc -l s*/*.py *.md
grep -rn x --include=*.md --exclude=*.py .
find src -name '*.py' -exec wc -l {} +
sed -n -e 1p -e '3,$p' README.md
sed -e 's/a/b/' README.md
awk -F: '$3 >= 1000 {s += $1} END {printf "%d\n", s}' README.md
awk 'length > 80 {print FILENAME": "FNR}' README.md
git tag --list 'v*'; git config user.name; git config --get user.name
ps aux --sort=-%mem; ps -eo pid,comm
VAR=src; ls $VAR; (x=README.md; cat $x)
echo $((2**10 - 1)) {a,b}{1,2} {1..20}
"""

HEREDOCS = {
    "cat <<'EOF' > notes.md\nrm $(x)\nit's\nEOF": True,
    "cat <<EOF > notes.md\nhello $name\nEOF\nls": True,
    "cat > notes.md <<'EOF' && ls\na\nEOF\n": True,
    "cat <<-EOF | head\n\ta\n\tEOF\nls": True,
    "cat <<EOF\n$(rm x)\nEOF": False,
    "cat <<EOF\n`rm x`\nEOF": False,
    "cat <<'EOF'\na\nEOF\nrm x": False,
    "cat <<'EOF'\na\n EOF\nrm x\nEOF": True,
    "cat <<A <<B\na\nA\nb\nB": False,
    "cat <<'EOF' > ../x\na\nEOF": False,
    "bash <<'EOF'\nls\nEOF": False,
    "python3 - <<'EOF'\nprint()\nEOF": False,
    'echo "<<EOF\n$(rm x)\nEOF\n"': False,
    "cat << EOF ; rm x\nEOF": False,
    "# <<EOF\nrm x\nEOF": False,
    "cat <<'EOF' \"\nEOF\n$(rm x)\"": False,
    "echo \"$(cat <<'EOF'\nx)\nEOF\n)\"": False,  # older shells end the substitution at the parenthesis
}

LINES = (
    "ls\\\n-l",  # one word for the shell
    'echo "$\\\n(rm x)"',
    "ls\rrm x",
    "ls\x00rm",
    "ls\u00a0-l",
    "ls \u202e x",
    "l\u0455",
    "echo a\u200bb",
    "ls\nrm x",
    "ls # it's\nrm x",
    "ls $(ls # )\n)",
    "echo 'a\nb'; rm x",
    "ls 'a",
    'ls "a',
    "ls $(ls",
    "(" * 5000,
    "$(" * 2000,
    "ls;" * 3000,
    "if ls; then " * 100,
    "x" * 30_000,
    "nice " * 6 + "ls",
    "".join(f"for a{n} in 1 2 3 4 5 6 7 8; do " for n in range(8)) + "ls" + "; done" * 8,
    "for a in " + " ".join("123456789" * 30) + "; do ls; done",
    "ls\ud800",
)


@pytest.mark.parametrize("command", [line for line in ALLOWED.replace("\\\n", "\\\f").strip().split("\n") if line])
def test_what_only_reads_is_allowed(ask, command: str) -> None:  # type: ignore[no-untyped-def]
    assert ask(command.replace("\f", "\n")).misses == ()


@pytest.mark.parametrize("command", ASKED)
def test_a_person_is_asked_about_what_does_more(ask, command: str) -> None:  # type: ignore[no-untyped-def]
    judgement = ask(command)
    assert judgement.misses
    assert all(len(miss) < 300 and miss.endswith(".") for miss in judgement.misses)


@pytest.mark.parametrize(("command", "allowed"), HEREDOCS.items())
def test_here_documents_are_text_or_asked_about(ask, command: str, allowed: bool) -> None:  # type: ignore[no-untyped-def]
    assert (ask(command).misses == ()) is allowed


@pytest.mark.parametrize("command", LINES, ids=range(len(LINES)))
def test_what_may_be_read_in_two_ways_is_asked_about(ask, command: str) -> None:  # type: ignore[no-untyped-def]
    assert ask(command).misses


def test_what_takes_several_lines_is_allowed(ask) -> None:  # type: ignore[no-untyped-def]
    for command in (
        'for f in README.md src/a.py\ndo\n  cat "${f}"   # its text\ndone',
        "if ls; then\n  pwd\nelif [ -d src ]; then\n  ls src\nelse\n  date\nfi\n",
        "# first\nls |\n  head &&\n  cat README.md\n\n",
    ):
        assert ask(command).misses == (), command


def test_the_folder_is_followed_exactly(ask) -> None:  # type: ignore[no-untyped-def]
    for command in (
        "cd .git && echo x > config",
        "cd .git && cat < ../README.md | cat > config",
        "cd .. && ls 2>&1 | tail -5 > x",
        "false && cd src; ls > ../x",
        "cd link && ls",
        "cd link/tmp; ls",
        "cd src && cd ../.. && ls > x",
        "(cd .. && ls > x)",
        "cd src || cd ..; ls > x",
        "cd src < missing; cd ..; ls > x",
        "{ cd src; } < missing; cd ..; ls > x",
        "echo $((1/0)); cd src\ncd ..; ls > x",
        "cd -P; ls",
        "for i in 1 2; do cd ..; done",
        "command cd ..; ls > x",
    ):
        assert ask(command).misses, command
    for command in (
        "cd src && ls > x",
        "cd src; ls > ../x",
        "(cd src; ls) > x",
        "cd .. | ls > x",
    ):
        assert ask(command).misses == (), command


def test_redirections_write_plain_files_of_the_workspace(ask, workspace) -> None:  # type: ignore[no-untyped-def]
    for target in ("out", "link/tmp/x", "src", "../x", "/tmp/x", ".git/x", "src/.GIT", "$x", "*", "/dev/sda", "~/x"):
        assert ask(f"ls > {target}").misses, target
    for target in ("new", "src/new", "README.md", "'a b'", "/dev/null", f"{workspace}/x", "src/../new", ".gitignore"):
        assert ask(f"ls >> {target} 2>&1").misses == (), target


def test_a_pattern_may_become_an_option(ask, workspace) -> None:  # type: ignore[no-untyped-def]
    assert ask("wc *.md").misses == ask("grep x *.md").misses == ()
    (workspace / "--files0-from=x.md").touch()
    for command in ("wc *.md", "wc ?-*", "grep x *.md", "du *-*", "wc -*"):
        assert ask(command).misses, command
    assert ask("ls *; cat R*.md").misses == ()


def test_variables_are_followed_when_they_are_set_once(ask) -> None:  # type: ignore[no-untyped-def]
    for command in (
        "x=README.md; read -r x < src/a.py; cat $x",
        "x=README.md; x=/proc/1/environ; cat $x",
        "false && x=README.md; cat $x",
        "x=README.md | cat $x",
        "cat $x; x=README.md",
        "x='README.md /etc/shadow'; cat $x",
        "for x in README.md /proc/1/environ; do cat $x; done",
        "x=rm; $x README.md",
        "x=$y; cat $x",
        "cat $HOME/.ssh/id_rsa",
    ):
        assert ask(command).misses, command
    for command in ("x='a b'; cat \"$x\"", "x=src; cat ${x}/a.py", "cat $HOME/notes", "for x in a b; do cat $x; done"):
        assert ask(command).misses == (), command


def test_a_file_of_the_workspace_is_no_known_command(ask, workspace) -> None:  # type: ignore[no-untyped-def]
    (workspace / "node_modules" / ".bin").mkdir(parents=True)
    (workspace / "node_modules" / ".bin" / "cat").touch(0o755)
    (workspace / "env").touch(0o755)
    for command in ("./ls", f"{workspace}/ls", f"{workspace}/env ls", "./env ls", "src/../env ls", "link/../ls"):
        assert ask(command).misses, command
    assert ask("cat README.md").misses
    assert ask("../bin/ls").misses
    assert ask(f"{workspace.parent}/bin/ls").misses == ask("ls").misses == ()


def test_git_is_not_run_where_settings_may_be_anybodys(ask, workspace, tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name in ("objects", "refs"):
        (workspace / "evil.git" / name).mkdir(parents=True)
    assert ask("git status", folder="src").misses == ()
    for command in ("cd evil.git && git status", "git -C evil.git status", "git -C .. status", "cd / && git log"):
        assert ask(command).misses, command


def test_what_was_found_is_said(ask, binaries) -> None:  # type: ignore[no-untyped-def]
    judgement = ask("sudo rm -rf x | cat; $x; timeout 5 rm -r y")
    assert judgement.commands == (
        (f"{binaries}/sudo", "rm", "-rf", "x"),
        (f"{binaries}/cat",),
        ("$x",),
        (f"{binaries}/timeout", "5", "rm", "-r", "y"),
        (f"{binaries}/rm", "-r", "y"),
    )
    assert "The command name is not known before it runs: `$x`." in judgement.misses
    assert "Deletes recursively." in judgement.risks
    assert "Runs with other rights." in judgement.risks


def test_variables_that_lead_programs_are_refused() -> None:
    refused = (
        "LD_PRELOAD DYLD_INSERT_LIBRARIES PATH IFS BASH_ENV ENV PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS PYTHONPATH "
        "PYTHONSTARTUP NODE_OPTIONS PERL5LIB PERL5OPT RUBYOPT GIT_DIR GIT_SSH_COMMAND PAGER EDITOR VISUAL LESSOPEN "
        "MANPAGER RIPGREP_CONFIG_PATH GREP_OPTIONS TERMINFO LOCPATH HOME XDG_CONFIG_HOME LANG LC_ALL https_proxy "
        "JAVA_TOOL_OPTIONS MAKEFLAGS npm_config_x CDPATH TMPDIR"
    )
    assert [name for name in [*refused.split(), "BASH_FUNC_ls%%", "a-b", ""] if not is_refused_variable(name)] == []
    assert [name for name in ("DEBUG", "x", "PORT", "TZ", "MY_FLAG", "line") if is_refused_variable(name)] == []


WORDS = [
    "a", "'a b'", '"a b"', "a\\ b", "a\\;b", "a'b'\"c\"", '"a\\"b\\$c\\\\d\\e"', "''", "'a'\\''b'", "$", "a$", '"$"',
    "a=b", "a#b", "{}", "{a}", "a,b", "~", "-l", "--x='y z'", "\"'\"", "'\"'", "é", '"é€"', "\\é", "!", "^", "%", "@",
    "a:b", "]", "[", "a]", '"a\nb"', "'a\nb'", "\\{a,b}", '{a","b}', "'{a,b}'", '"*"', "\\*", "'?'", "$'a'", "{a,b}",
    "{{},b}", "*", "$x", "`x`", '"$(x)"', "{1..3}",
]  # fmt: skip


def test_words_that_are_known_are_what_the_shell_makes_of_them(ask, workspace) -> None:  # type: ignore[no-untyped-def]
    """An unknown word is said by its source; only commands whose words are all known have rules."""
    for word in WORDS:
        found = ask(f"true {word}")
        script = f"printf '%s\\0' {word}"
        real = subprocess.run(
            ["bash", "-c", script],
            cwd=workspace / "src" / "deep",
            capture_output=True,
            env={"HOME": "/home/somebody"},
            check=False,
        ).stdout.decode()
        exact = ask(f"mkdir {word}").rules
        if exact:
            assert [*found.commands[0][1:]] == real.split("\0")[:-1], word
    assert all(not ask(f"mkdir {word}").rules for word in WORDS[-8:])
    assert all(ask(f"mkdir {word}").rules for word in WORDS[:-8])
