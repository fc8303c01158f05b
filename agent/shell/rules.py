"""Rules: which commands need no person's consent."""

import json
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Rule:
    """One command that is allowed.

    binary: a name, which is looked up where commands are, or an absolute path, or a glob of one. arguments: None for
    any; otherwise one glob for each argument, a last `**` for any rest. folder: only there; empty for anywhere.
    """

    binary: str
    arguments: tuple[str, ...] | None = None
    folder: str = ""

    def matches(self, binary: str, named: str | None, arguments: Sequence[str] | None, folder: str) -> bool:
        """binary: absolute path of what would run. named: where this rule's bare name leads. arguments: None when they
        are not all known."""
        found = named == binary if "/" not in self.binary else fnmatchcase(binary, self.binary)
        if not found or (self.folder and self.folder != folder):
            return False
        if self.arguments is None:
            return True
        if arguments is None:
            return False
        wanted, given = self.arguments, list(arguments)
        if wanted and wanted[-1] == "**":
            wanted, given = wanted[:-1], given[: len(wanted) - 1]
        return len(wanted) == len(given) and all(map(_fits, given, wanted))


def _fits(given: str, wanted: str) -> bool:
    """No pattern goes up a folder where its entry does not."""
    return fnmatchcase(given, wanted) and given.split("/").count("..") <= wanted.split("/").count("..")


def parse_rule(text: str) -> Rule:
    """An entry of `tools.exec.allowlist`: shell words, the binary first, `git push origin *`. No words behind it: any
    arguments. Raises ValueError with a sentence."""
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
    return json.dumps([rule.binary, rule.arguments, rule.folder], ensure_ascii=False)


def load_rule(text: str) -> Rule:
    """Raises ValueError when the text is no rule."""
    match json.loads(text):
        case [str(binary), None, str(folder)]:
            return Rule(binary, None, folder)
        case [str(binary), list(arguments), str(folder)] if all(isinstance(part, str) for part in arguments):
            return Rule(binary, tuple(arguments), folder)
    raise ValueError("no rule")


def escaped(text: str) -> str:
    """A glob that matches the text alone."""
    return re.sub(r"([*?\[])", r"[\1]", text)
