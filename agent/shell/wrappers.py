"""Commands that run what their words say: which of those words are the command, and which commands run code."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.shell.table import names
from agent.shell.words import Word

# Whoever runs something through these is asked each time: other rights, other roots, other machines, or a command in
# a form that is not analysed here.
ALWAYS_ASK = names("always_ask")
ELEVATING = names("elevating")


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """flags, values: its harmless options. before: a pattern of the word before the command, if there is one."""

    flags: str = ""
    values: str = ""
    before: str = ""


_WRAPPERS = {
    "env": _Wrapper(),
    "nice": _Wrapper("", "-n --adjustment"),
    "ionice": _Wrapper("-t", "-c -n --class --classdata"),
    "nohup": _Wrapper(),
    "timeout": _Wrapper("--preserve-status --foreground -v --verbose", "-k -s --kill-after --signal", r"[\d.]+[smhd]?"),
    "stdbuf": _Wrapper("", "-i -o -e --input --output --error"),
    "setsid": _Wrapper("-w --wait"),
    "time": _Wrapper("-p"),
    "xargs": _Wrapper(
        "-0 -r -t -x --null --no-run-if-empty --verbose --exit",
        "-n -P -L -s -d --max-args --max-procs --delimiter",
    ),
}

_INTERPRETERS = names("interpreters")
_PROGRAM_FIRST = names("program_first")


class NotUnderstood(Exception):
    """A wrapper with words that are not analysed; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """What a wrapper runs: a command with variables given to it, or the text of one."""

    words: tuple[Word, ...] = ()
    exported: tuple[tuple[str, Word], ...] = ()
    text: str | None = None


def unwrap(name: str, words: Sequence[Word]) -> Unwrapped | None:
    """What `name` with these words behind it runs; None: it is no wrapper, or runs nothing. Raises NotUnderstood."""
    if name == "bash" and words and words[0].exact and re.fullmatch("-[eux]*c", words[0].text):
        if len(words) < 2 or not words[1].exact:
            raise NotUnderstood("What `bash -c` runs is not known before.")
        return Unwrapped(text=words[1].text)
    wrapper = _WRAPPERS.get(name)
    if wrapper is None:
        return None
    at = 0
    while at < len(words) and words[at].may_be_option():
        option = words[at].text
        value = next((flag for flag in wrapper.values.split() if option.startswith(flag)), "")
        if not words[at].exact or (option not in wrapper.flags.split() and not value and option != "--"):
            raise NotUnderstood(f"`{words[at].shown}` of `{name}` is not analysed.")
        rest = option[len(value) :] if value else ""
        at += 1
        if value and not rest:
            if at >= len(words) or not words[at].exact:
                raise NotUnderstood(f"`{option}` of `{name}` is not analysed.")
            at += 1
        elif value.startswith("--") and not rest.startswith("="):
            raise NotUnderstood(f"`{option}` of `{name}` is not analysed.")
        if option == "--":
            break
    if wrapper.before:
        if at >= len(words) or not words[at].exact or not re.fullmatch(wrapper.before, words[at].text):
            raise NotUnderstood(f"How `{name}` is called here is not analysed.")
        at += 1
    exported = list[tuple[str, Word]]()
    while name == "env" and at < len(words) and "=" in (words[at].text or "="):
        if not words[at].exact:
            raise NotUnderstood(f"`{words[at].shown}` of `env` is not analysed.")
        name_, _, value_ = words[at].text.partition("=")
        exported.append((name_, Word(value_)))
        at += 1
    inner = tuple(words[at:])
    if name == "time" and not inner:
        raise NotUnderstood("`time` without a command is not understood.")
    if name == "xargs":
        inner = (*(inner or (Word("echo"),)), Word("", "unknown", one=False, shown="what xargs reads"))
    return Unwrapped(inner, tuple(exported)) if inner or exported else None


def runs_code(name: str, words: Sequence[Word]) -> bool:
    """Whether an interpreter gets code in its words or from its input, rather than a file: no rule allows that."""
    interpreter = re.sub(r"[\d.]+$", "", name)
    if interpreter not in _INTERPRETERS:
        return False
    first, second = (word.text if word.exact else "" for word in (*words, Word(""), Word(""))[:2])
    if interpreter in ("python", "pypy") and first == "-m":
        return second in ("", "code", "timeit", "pdb", "trace", "cProfile")
    return interpreter in _PROGRAM_FIRST or re.match(r"$|-|/dev/|/proc/|eval$|repl$", first) is not None
