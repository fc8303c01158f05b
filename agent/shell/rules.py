"""Which commands need no person's consent: those that a rule allows, up to its level, and harmless shell builtins."""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeGuard, get_args

from agent.shell.words import Word, a_set

Level = Literal["look", "work", "network", "host"]
LEVELS: tuple[Level, ...] = get_args(Level)  # from what can do least to what can do most


@dataclass(frozen=True, slots=True)
class Rule:
    """A command that is allowed."""

    # A bare name, which is looked up in PATH, an absolute path, or a glob of absolute paths.
    binary: str
    # One glob for each argument, the last may be `**` for any further arguments; None: any arguments.
    arguments: tuple[str, ...] | None = None
    # The only folder in which the rule holds; empty: anywhere.
    folder: str = ""
    # The highest level at which the command is allowed.
    level: Level = "host"
    # The input that the line gives the command, see `walk.Simple`, because some programs run what they read; None: any.
    fed: str | None = None

    def matches(self, binary: str, by_name: bool, arguments: Sequence[str] | None, folder: str, fed: str) -> bool:
        """Whether the rule covers a command.

        binary: absolute path of what would run. by_name: whether a bare name may mean that file. arguments: None when
        they are not all known. fed: the input that the line gives the command.
        """
        name = os.path.basename(binary)
        found = fnmatchcase(binary, self.binary) if "/" in self.binary else by_name and self.binary == name
        if not found or (self.folder and self.folder != folder) or self.fed not in (None, fed):
            return False
        if self.arguments is None:
            return True
        if arguments is None:
            return False
        wanted, given = self.arguments, list(arguments)
        if wanted and wanted[-1] == "**":
            wanted, given = wanted[:-1], given[: len(wanted) - 1]
        return len(wanted) == len(given) and all(map(_fits, given, wanted))


def rank(level: Level | None) -> int:
    """Return the rank of a level, from 1 for what allows least; 0 for None."""
    return LEVELS.index(level) + 1 if level else 0


def _fits(given: str, wanted: str) -> bool:
    """Whether an argument matches its glob. `*` does not match a `..` that the glob does not have."""
    return fnmatchcase(given, wanted) and given.split("/").count("..") <= wanted.split("/").count("..")


def parse_rule(text: str) -> Rule:
    """Read an entry of `tools.exec.allowlist`: shell words, the binary first, such as `git push origin *`.

    A binary alone may have any arguments. The rule has the level "host". Raises ValueError with a sentence.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: the quotation marks do not match.") from error
    if not words or not words[0]:
        raise ValueError("an entry names a command, such as `git push origin *`.")
    binary, *arguments = words
    if "/" in binary and not os.path.isabs(binary):
        raise ValueError(f"{binary!r}: a command is a bare name or an absolute path.")
    if "/" not in binary and re.search(r"[*?\[]", binary):
        raise ValueError(f"{binary!r}: a bare name is no pattern; patterns are of absolute paths, `/opt/tools/*`.")
    if {"|", "||", "&", "&&", ";", ">", ">>", "<", "|&"} & set(text.split()):
        raise ValueError(f"{text!r}: an entry is one command; each of a list or a pipeline is judged by itself.")
    if "**" in arguments[:-1]:
        raise ValueError(f"{text!r}: `**` stands only at the end.")
    return Rule(binary, tuple(arguments) or None)


def rule_json(rule: Rule) -> str:
    """Return a rule as text that `load_rule` reads."""
    return json.dumps([rule.binary, rule.arguments, rule.folder, rule.level, rule.fed], ensure_ascii=False)


def load_rule(text: str) -> Rule:
    """Read a rule from its text, which may lack the level (then "host") and the input (then none).

    Raises ValueError when the text is no rule.
    """
    match json.loads(text):
        case [str(binary), arguments, str(folder), *more] if len(more) <= 2:
            level, fed = (more[0] if more else "host"), (more[1] if len(more) > 1 else "")
            if _is_level(level) and (fed is None or isinstance(fed, str)):
                match arguments:
                    case None:
                        return Rule(binary, None, folder, level, fed)
                    case list() if all(isinstance(part, str) for part in arguments):
                        return Rule(binary, tuple(arguments), folder, level, fed)
    raise ValueError("no rule")


def _is_level(value: object) -> TypeGuard[Level]:
    return value in LEVELS


def escaped(text: str) -> str:
    """Return a glob that matches only the text itself."""
    return re.sub(r"([*?\[])", r"[\1]", text)


_ALL = a_set(
    ". : [ [[ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf "
    "pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit "
    "umask unalias unset wait"
)
# Builtins that are harmless with any words. `printf`, `read` and `wait` are not, because they assign variables, and
# `test` evaluates its words.
_FREE = a_set(": true false echo pwd break continue return exit")
_SET = re.compile(r"[-+][eu]+|[-+][eu]*o|pipefail|errexit|nounset")


# There is no terminal: programs show all of their output at once, and git asks for no password.
SAFE_ENVIRONMENT: Mapping[str, str] = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
}

# A shell reads the same words as this package only if the encoding is UTF-8.
_HARMLESS = re.compile(
    r"(LANG|LC_[A-Z]+)=(C|POSIX|\w+\.(UTF-8|utf8))?|TZ=(\w[\w/]*)?"
    r"|(COLUMNS|LINES|NO_COLOR|CLICOLOR(_FORCE)?|FORCE_COLOR|CI)=\w*"
)


def is_harmless_variable(name: str, value: str) -> bool:
    """Whether every command may have this variable: language, time zone, width or colours."""
    return _HARMLESS.fullmatch(f"{name}={value}") is not None


def is_builtin(name: str) -> bool:
    """Whether a name is a builtin of the shell. Rules do not cover builtins, because these run no program."""
    return name in _ALL


def is_free(name: str, words: Sequence[Word]) -> bool:
    """Whether a builtin with these words changes nothing but the shell that runs it, so that it needs no rule.

    `cd` is free because reading a line fails if the folder of a `cd` is not known.
    """
    if name == "set":
        return bool(words) and all(word.exact and _SET.fullmatch(word.text) for word in words)
    return name == "cd" or name in _FREE
