"""Rules: which commands need no person's consent, and up to which level."""

import json
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, TypeGuard, get_args

Level = Literal["look", "work", "network", "host"]
LEVELS: tuple[Level, ...] = get_args(Level)  # from what can do least to what can do most


@dataclass(frozen=True, slots=True)
class Rule:
    """One command that is allowed.

    binary: a name, which is looked up where commands are, or an absolute path, or a glob of one. arguments: None for
    any; otherwise one glob for each argument, a last `**` for any rest. folder: only there; empty for anywhere. level:
    up to which it is allowed. fed: what the line gives it to read, as `walk.Simple` has it, because there are programs
    that run what they read; None for anything.
    """

    binary: str
    arguments: tuple[str, ...] | None = None
    folder: str = ""
    level: Level = "host"
    fed: str | None = None

    def matches(self, binary: str, by_name: bool, arguments: Sequence[str] | None, folder: str, fed: str) -> bool:
        """Whether it speaks of this command. binary: absolute path of what would run. by_name: whether a bare name may
        mean that file. arguments: None when they are not all known. fed: what the line gives it to read."""
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
    """Levels by how much they let happen; 0: nothing."""
    return LEVELS.index(level) + 1 if level else 0


def _fits(given: str, wanted: str) -> bool:
    """No pattern goes up a folder where its entry does not."""
    return fnmatchcase(given, wanted) and given.split("/").count("..") <= wanted.split("/").count("..")


def parse_rule(text: str) -> Rule:
    """An entry of `tools.exec.allowlist`: shell words, the binary first, `git push origin *`. No words behind it: any
    arguments. It holds on the host. Raises ValueError with a sentence."""
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
    """The rule as text that `load_rule` reads."""
    return json.dumps([rule.binary, rule.arguments, rule.folder, rule.level, rule.fed], ensure_ascii=False)


def load_rule(text: str) -> Rule:
    """The rule of a text, which may lack a level (it holds on the host) and what the command is fed with (nothing).
    Raises ValueError when the text is no rule."""
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
    """A glob that matches the text alone."""
    return re.sub(r"([*?\[])", r"[\1]", text)
