"""What of a shell needs no rule: some of its builtins, and the variables that any command may be given.

No rule covers the other builtins, because they run no program.
"""

import re
from collections.abc import Mapping, Sequence

from agent.shell.words import Word, a_set

_ALL = a_set(
    ". : [ [[ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf "
    "pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit "
    "umask unalias unset wait"
)
# They say something, or end something of the line, whatever their words are. `printf`, `read` and `wait` assign
# variables; `test` evaluates what it is given.
_FREE = a_set(": true false echo pwd break continue return exit")
_SET = re.compile(r"[-+][eu]+|[-+][eu]*o|pipefail|errexit|nounset")


# Nobody sits before a terminal: programs show all of their output at once, and git asks for no password.
SAFE_ENVIRONMENT: Mapping[str, str] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
}

# In other encodings than UTF-8 a shell reads other words than this package does.
_HARMLESS = re.compile(
    r"(LANG|LC_[A-Z]+)=(C|POSIX|\w+\.(UTF-8|utf8))?|TZ=(\w[\w/]*)?"
    r"|(COLUMNS|LINES|NO_COLOR|CLICOLOR(_FORCE)?|FORCE_COLOR|CI)=\w*"
)


def is_harmless_variable(name: str, value: str) -> bool:
    """Whether any command may be given this variable: language, time zone, width, colours."""
    return _HARMLESS.fullmatch(f"{name}={value}") is not None


def known(name: str) -> bool:
    """Whether the shell has it itself."""
    return name in _ALL


def is_free(name: str, words: Sequence[Word]) -> bool:
    """Whether it changes nothing but the shell that runs it, with these words behind it. Where a `cd` leads is followed
    when the line is read; it is no line that was read where that cannot be done."""
    if name == "set":
        return bool(words) and all(word.exact and _SET.fullmatch(word.text) for word in words)
    return name == "cd" or name in _FREE
