"""Builtins of the shell: which do no harm, with which words. All others always ask, since no rule can name them."""

import re
from collections.abc import Sequence

from agent.shell.names import a_set, is_refused_variable
from agent.shell.table import names
from agent.shell.words import Word

_ALL = names("builtins")
_HARMLESS = names("harmless_builtins")
_SET = re.compile(r"[-+][eux]+|[-+][eux]*o|pipefail|errexit|nounset")
_UNARY = a_set("-e -f -d -r -w -x -s -n -z -L -h -S -p -b -c -g -k -u -O -G -N")
_BINARY = a_set("= == != < > -nt -ot -ef")
_NUMERIC = a_set("-eq -ne -lt -le -gt -ge")  # which evaluate more in `[[`


def known(name: str) -> bool:
    """Whether the shell has it itself."""
    return name in _ALL


def reason(name: str, words: Sequence[Word], direct: bool) -> str:
    """Why it is not harmless with these words behind it; empty when it is. direct: nothing wraps it, so that what it
    changes is known to what follows."""
    if name in ("cd", "read", "set") and not direct:
        return f"`{name}` is not understood here."
    if name == "cd" or _harmless(name, words):
        return ""
    return f"`{name}` with these words is not known to be harmless."


def _harmless(name: str, words: Sequence[Word]) -> bool:
    if name in _HARMLESS:
        return name != "wait" or all(word.exact and word.text.isdigit() for word in words)
    if name in ("[", "[[", "test"):
        if name == "test":
            return _test(words, False)
        return bool(words) and words[-1].text == {"[": "]", "[[": "]]"}[name] and _test(words[:-1], name == "[[")
    if name == "printf":
        return bool(words) and words[0].exact and not words[0].text.startswith("-")
    if name == "set":
        return bool(words) and all(word.exact and _SET.fullmatch(word.text) for word in words)
    if name == "command":
        return bool(words) and words[0].exact and words[0].text in ("-v", "-V")
    if name == "read":
        names = [word for word in words if word.text != "-r"]
        return bool(names) and all(
            word.exact and word.shown == word.text and not is_refused_variable(word.text) for word in names
        )
    return False


def _test(words: Sequence[Word], double: bool) -> bool:
    """Tests whose words are all of the shape that was meant: an operator among them could evaluate what it is given."""
    if double:
        for at, word in enumerate(words):
            if word.exact and word.shown == word.text and word.text in ("&&", "||"):
                return _test(words[:at], True) and _test(words[at + 1 :], True)
    if words and words[0].exact and words[0].text == "!":
        return _test(words[1:], double)
    if not double and not all(word.one for word in words):
        return False
    operator = words[-2].text if len(words) > 1 and words[-2].exact else ""
    if len(words) == 1:
        return words[0].text not in ("(", ")")
    if len(words) == 2:
        return operator in _UNARY
    return len(words) == 3 and (operator in _BINARY or (operator in _NUMERIC and not double))
