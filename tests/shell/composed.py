"""Commands composed at random: simple ones in lists, pipes, substitutions, quotes, here documents and loops."""

from hypothesis import strategies as st

_WORDS = (
    "a.txt",
    "b.txt",
    "src",
    "'a b'",
    '"$HOME"',
    '"${A:-x}"',
    "$'a\\tb'",
    "a\\ b",
    "*.md",
    "src/*.py",
    "x{1,2}",
    "--",
    "-1",
    "-n",
    "~",
    ".",
    '"a $(echo x) b"',
    '"`echo y`"',
    "$((1 + 2))",
    "$A",
    "${#A}",
    "'#'",
    "a#b",
    "';'",
    "\\;",
    '"it\'s"',
)
_LOOKING = (
    "ls",
    "ls -la",
    "cat a.txt",
    "head -2 a.txt",
    "tail -n 1 b.txt",
    "grep -n a",
    "grep -rn def src",
    "wc -l",
    "sort -u",
    "uniq -c",
    "cut -d' ' -f1",
    "tr a b",
    "echo",
    "printf '%s\\n'",
    "true",
    "test -f a.txt",
    "[ -n a ]",
    "sed -n '1,3p' a.txt",
    "awk '{print $1}' a.txt",
    "find src -name '*.py'",
    "jq . x.json",
    "git status --short",
    "basename a/b",
    "env A=1 ls",
    "timeout 5 cat a.txt",
    "nice ls",
    "command ls",
    "xargs echo",
    "find . -maxdepth 1 -exec echo {} +",
    "sh -c 'ls src'",
    "eval ls",
    "nohup ls",
    "date -u",
    "pwd",
)
_PIECES = (
    *("'", '"', "\\", "`", "$", "$(", ")", "(", "{", "}", ";", "&", "|", "<", ">", "#", "\n", "\r", "\t", " "),
    *("-", "=", "o", "i", "e", "-o", " -o made", "--output=made", "-exec touch made \\;", "-delete", "*", "?"),
    *("[", "]", "~", "!", ";touch made;", "\ntouch made\n", "$(touch made)", "`touch made`", "|tee made"),
    *(">made", ">../made", "&touch made&", "$'", "'\\''", "${", "$((", "))", "<<X", "<(", "{a,b}", "\\\n"),
    *("\xa0", "\u200b", "eval ", "env ", "xargs ", "w made"),
)
# Not harmless, but nothing that hurts in a workspace of a test.
CHANGING = ("touch made", "mkdir -p made.d", "cp a.txt made", "tee made", "rm -f made", "ln -sf a.txt made")

_redirections = st.sampled_from(
    ["", "", "", "", " 2>/dev/null", " > out.txt", " >> 'out.txt'", " 2>&1", " < a.txt", " &> both.txt", " <<< word"]
)


def _simple(commands: tuple[str, ...]) -> st.SearchStrategy[str]:
    word = st.sampled_from(_WORDS)
    assignment = st.sampled_from(["", "", "", "", "", "", "LC_ALL=C ", "! ", "time "])
    return st.builds(
        lambda before, command, words, behind: before + " ".join([command, *words]) + behind,
        assignment,
        st.sampled_from(commands),
        st.lists(word, max_size=2),
        _redirections,
    )


def _within(line: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Something made of a line or of two."""
    one = st.sampled_from(
        [
            "({0})",
            "{{ {0}; }}",
            "echo $({0})",
            'echo "$({0})"',
            "A=$({0}); echo $A",
            "cat <({0})",
            "for i in 1 2; do {0}; done",
            "for f in *.txt; do {0}; done",
            "if {0}; then echo yes; fi",
            "cat <<'X'\n$({0})\nX",
            "{0} # and more",
            "echo a |\n {0}",
            "{0} &",
            "[[ -n $({0}) ]]",
            "while read -r l; do {0}; break; done < a.txt",
            "{0}; A=b; echo $A",
        ]
    )
    two = st.sampled_from(
        [
            "{0}; {1}",
            "{0} && {1}",
            "{0} || {1}",
            "{0} | {1}",
            "{0}\n{1}",
            "{0} |& {1}",
            "{0} & {1}",
            "if {0}; then {1}; fi",
        ]
    )
    return st.builds(str.format, one, line) | st.builds(str.format, two, line, line)


def lines(*, changing: bool = False) -> st.SearchStrategy[str]:
    """Commands; with `changing`, simple ones that write are among them."""
    simple = _simple(_LOOKING + CHANGING if changing else _LOOKING)
    return st.recursive(simple, _within, max_leaves=5)


def mutated(command: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A command with a few pieces put in at some places: what an attacker does to one that is allowed."""
    pieces = st.sampled_from(_PIECES)

    def put(text: str, changes: list[tuple[float, str]]) -> str:
        for where, piece in changes:
            at = round(where * len(text))
            text = text[:at] + piece + text[at:]
        return text

    return st.builds(put, command, st.lists(st.tuples(st.floats(0, 1), pieces), min_size=1, max_size=2))


_CHANGES_OF_STATE = (
    *("A=ls", "A=ls", "A=ls B=sub", "A=", "read C", "set -u", "true", "false", "[ -f x ]", "break", "return"),
    *("cd sub", "cd sub", "cd sub/a", "cd src", "cd -- sub", "cd ..", "cd $B", "cd none", "echo $((1/0))", "echo $B"),
)
_WHICH_MAY_FAIL = ("", "", "", " < missing", " > none/x", " 2>&9", " >&-", " > o.txt")
_SINKS = ("$A touch made", "touch made", "cd ..; touch made", "cd ..\ntouch made", "(cd ..; pwd); touch made")


def states() -> st.SearchStrategy[str]:
    """Commands that change variables and the folder, or do not; the last one makes a file where a reader was wrong."""
    simple = st.builds(str.__add__, st.sampled_from(_CHANGES_OF_STATE), st.sampled_from(_WHICH_MAY_FAIL))
    one = st.sampled_from(
        [
            *("{{ {0}; }}", "( {0} )", "! {0}", "{0} | cat", "cat a.txt | {0}", "{0} &", "for i in 1 2; do {0}; done"),
            *("for i in; do {0}; done", "for A in ls cat; do {0}; done", "time {0}", "echo $({0})", "sh -c '{0}'"),
            *("{{ {0}; }} < missing", "{{ {0}; }} > none/x", "while {0}; do break; done", "if {0}; then :; fi"),
        ]
    )
    two = st.sampled_from(["{0} && {1}", "{0} || {1}", "{0}; {1}", "{0}\n{1}", "if {0}; then {1}; fi"])
    several = st.recursive(
        simple,
        lambda line: st.builds(str.format, one, line) | st.builds(str.format, two, line, line),
        max_leaves=3,
    )
    between = st.sampled_from(["; ", "\n", " && ", " || "])
    return st.builds(lambda line, then, sink: line + then + sink, several, between, st.sampled_from(_SINKS))
