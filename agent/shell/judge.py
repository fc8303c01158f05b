"""The verdict on a shell command: may it run, or must a person be asked, and what would they allow.

Nothing is allowed early: the text is parsed, each simple command is looked at, with what it wraps, and each reason why
it is not allowed is a miss. No miss: allowed. The only caller is `exec`, which runs commands in `SAFE_ENVIRONMENT`.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from agent.shell import builtins, wrappers
from agent.shell.finds import find
from agent.shell.names import is_harmless_variable, is_refused_variable
from agent.shell.parse import parse
from agent.shell.paths import Paths, plain_folder
from agent.shell.risks import hidden_characters, risks_of
from agent.shell.rules import Rule, escaped
from agent.shell.table import Harmful, harmless
from agent.shell.walk import Redirect
from agent.shell.words import Word

_MAX_NESTING = 4
_MAX_SENTENCES = 10
_MAX_COMMANDS = 200
_MAX_LOOKS = 20  # at folders, for patterns


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found in a command.

    commands: the words of each simple command, wrappers and what they wrap; the first one is the resolved path where
    known, an unknown word stands as its source. misses: why a person must be asked; none: allowed. risks: notes for
    people. rules: with these granted as well nothing would be missed; none where no rule can do that.
    """

    commands: tuple[tuple[str, ...], ...] = ()
    misses: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()


class Judge:
    """Judges commands by the read-only table, the allowlist of the configuration and what people granted."""

    def __init__(self, *, workspace: Path, path: str, allowlist: Sequence[Rule], private: Sequence[Path] = ()) -> None:
        """path: where commands are found, as PATH has it. private: files and folders of the service that nobody is to
        read without being asked about, the workspace excepted."""
        self._paths = Paths(workspace, path, private)
        self._allowlist = tuple(allowlist)

    def judge(
        self,
        command: str,
        folder: Path,
        granted: Sequence[Rule] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Judgement:
        """The verdict on `command`, run in `folder`. environment: what variables are known to be; with `HOME` in it
        `~` is followed. Blocks for milliseconds; never raises."""
        case = _Case(self._paths, (*self._allowlist, *granted), environment)
        try:
            if hidden := hidden_characters(command):
                case.never(hidden)
                case.risks.append(hidden)
            case.text(command, os.path.realpath(folder), 0)
        except Exception:  # a fault of ours must not let a command run
            case.never("The command could not be analysed.")
        return case.judgement()


@dataclass(slots=True)
class _Case:
    """One command while it is judged."""

    paths: Paths
    allowed: tuple[Rule, ...]
    environment: Mapping[str, str]
    commands: list[tuple[str, ...]] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    risks: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    hopeless: bool = False
    looks: int = 0

    def judgement(self) -> Judgement:
        rules = () if self.hopeless else tuple(dict.fromkeys(self.rules))
        misses, risks = (tuple(dict.fromkeys(map(_said, some)))[:_MAX_SENTENCES] for some in (self.misses, self.risks))
        return Judgement(tuple(self.commands), misses, risks, rules)

    def never(self, reason: str) -> None:
        """A miss that no rule covers."""
        self.hopeless = True
        self.misses.append(reason)

    def text(self, command: str, folder: str, nesting: int) -> None:
        """Judge the text of a shell."""
        if nesting > _MAX_NESTING:
            return self.never("Shells are nested too deeply to be analysed.")
        known = {name: value for name, value in self.environment.items() if not nesting or name == "HOME"}
        parsed = parse(command, folder, known)  # a shell within may have been given others
        for reason in parsed.misses:
            self.never(reason)
        for name in parsed.assigned:
            if is_refused_variable(name) or name in self.environment:
                self.never(f"`{name}` is a variable that changes how commands run.")
        for redirect in parsed.redirects:
            self._redirect(redirect)
        for simple in parsed.commands:
            self._exported(simple.exported)
            self._simple(simple.words, simple.folder, nesting, direct=True)
        return None

    def _exported(self, variables: Iterable[tuple[str, Word]]) -> None:
        for name, value in variables:
            if not (value.exact and is_harmless_variable(name, value.text)):
                self.never(f"`{name}` is given to a command, which may change what that runs.")

    def _redirect(self, redirect: Redirect) -> None:
        operator, target = redirect.operator, redirect.target
        if operator == "<<<":
            return
        if not target.exact:
            return self.never(f"It is not known which file is meant by `{target.shown}`.")
        if operator in (">&", "<&") and re.fullmatch(r"\d", target.text):
            return None
        if operator == "<":
            reason = self.paths.unreadable(target.text, redirect.folder)
        elif operator in (">", ">>", ">|", "&>", "&>>"):
            reason = self.paths.unwritable(target.text, redirect.folder)
        else:
            reason = f"The redirection `{operator}` is not analysed."
        if reason:
            self.never(reason)
        return None

    def _simple(self, words: Sequence[Word], folder: str, nesting: int, direct: bool = False) -> None:
        """One command in one folder. direct: nothing wraps it."""
        if len(self.commands) >= _MAX_COMMANDS or nesting > _MAX_NESTING:
            return self.never("The command is made of too many commands to be analysed.")
        name = words[0].text
        shown = [word.text if word.exact else word.shown for word in words]
        if not words[0].exact or not name:
            self.commands.append(tuple(shown))
            return self.never(f"The command name is not known before it runs: `{words[0].shown}`.")
        exact = [word.text for word in words[1:]] if all(word.exact for word in words) else None
        self.risks += risks_of(os.path.basename(name), [word.text for word in words[1:]], self.paths)
        binary = self.paths.binary(name, folder)
        known = name == "time" or (binary is not None and self.paths.trusted(name, binary))
        if "/" not in name and builtins.known(name) and (direct or known):
            self.commands.append(tuple(shown))
            if reason := builtins.reason(name, words[1:], direct):
                self.never(reason)
            return None
        if binary is None and name != "time":
            self.commands.append(tuple(shown))
            return self.never(f"`{name}` is not known here.")
        self.commands.append((binary or name, *shown[1:]))
        return self._known(binary or name, name, words[1:], exact, folder, nesting)

    def _known(
        self, binary: str, name: str, words: Sequence[Word], exact: list[str] | None, folder: str, nesting: int
    ) -> None:
        base = os.path.basename(name)
        if base in wrappers.ALWAYS_ASK:
            return self.never(f"What `{base}` runs is not analysed, so it is always asked.")
        trusted = self.paths.trusted(name, binary)
        if base == "find":
            found = find(words) if trusted else None
            for inner_words in found or ():
                self._simple(inner_words, folder, nesting + 1)
            if found is not None:
                return None
            if any(word.text.startswith(("-exec", "-ok")) for word in words):
                return self.never("What `find` runs here is not analysed.")
        try:
            inner = wrappers.unwrap(base, words) if trusted or name == "time" else None
        except wrappers.NotUnderstood as error:
            return self.never(str(error))
        if inner:
            self._exported(inner.exported)
            if inner.text is not None:
                return self.text(inner.text, folder, nesting + 1)
            if inner.words:
                self._simple(inner.words, folder, nesting + 1)
            return None
        reason = self._harmful(base, words, folder) if trusted else f"`{name}` is not on the list of allowed commands."
        if not reason:
            return None
        if wrappers.runs_code(base, words):
            return self.never(f"`{base}` may run code that is given to it here, which is always asked.")
        if any(rule.matches(binary, self.paths.named(rule.binary), exact, folder) for rule in self.allowed):
            return None
        self.misses.append(reason)
        if exact is None:
            self.hopeless = True
        else:
            self.rules.append(Rule(escaped(binary), tuple(map(escaped, exact)), folder))
        return None

    def _harmful(self, base: str, words: Sequence[Word], folder: str) -> str:
        """Why the table does not allow it; empty when it does."""
        if base == "git":
            if len(words) > 1 and words[0].exact and words[0].text == "-C" and words[1].exact:
                folder, words = plain_folder(folder, words[1].text) or "/", words[2:]
            if reason := self.paths.foreign_repository(folder):
                return reason
        try:
            reading = harmless(base, words)
        except Harmful as error:
            return str(error)
        if reading.does != "reads":
            return ""
        self.looks += sum(reading.follows or word.kind == "pattern" for word in reading.operands)
        if self.looks > _MAX_LOOKS:
            return "There are too many patterns to be looked at."
        return next((why for word in reading.operands if (why := self.paths.hides(word, folder, reading))), "")


def _said(sentence: str) -> str:
    """A sentence that fits on a line or two, whatever it quotes."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in sentence)
    return shown if len(shown) <= 240 else f"{shown[:160]} \N{HORIZONTAL ELLIPSIS} {shown[-70:]}"
