"""Builtins of the shell: which of them need no rule. No rule covers the others, because they run no program."""

import re
from collections.abc import Sequence

from agent.shell.names import a_set
from agent.shell.words import Word

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


def known(name: str) -> bool:
    """Whether the shell has it itself."""
    return name in _ALL


def is_free(name: str, words: Sequence[Word]) -> bool:
    """Whether it changes nothing but the shell that runs it, with these words behind it. Where a `cd` leads is followed
    when the line is read; it is no line that was read where that cannot be done."""
    if name == "set":
        return bool(words) and all(word.exact and _SET.fullmatch(word.text) for word in words)
    return name == "cd" or name in _FREE
