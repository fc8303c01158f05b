"""The verdict on a shell command: up to which level rules let it run, and which rules would.

The line is read, each simple command in it is held against the rules, and whatever rules cannot speak of (variables,
redirections, words that are made while it runs) narrows the level. A line that could not be read is covered by nothing.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from agent.shell import builtins
from agent.shell.parse import parse
from agent.shell.paths import Binaries
from agent.shell.risks import hidden_characters, risks_of
from agent.shell.rules import LEVELS, Level, Rule, escaped, rank
from agent.shell.walk import Redirect, Simple
from agent.shell.words import Word

_MAX_SENTENCES = 10
_NO_FILES = ("/dev/null", "/dev/stdout", "/dev/stderr")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found in a command.

    commands: the words of each simple command; the first one is the resolved path where known, an unknown word stands
    as its source. unread: why the line could not be read as a whole, in sentences; empty: it was read. uncovered: what
    of it no rule covers on the host, in sentences; empty when `covered` is that. writes: a redirection of the line
    writes a file, as far as it was read. covered: the widest level up to which rules let every command of it run; None:
    some command has no rule, or the line was not read. risks: notes for people. widest: the level up to which any rules
    could let it run. needed: of each command that has no rule for the host, the level of those that it has, and one of
    its own if there can be one.
    """

    commands: tuple[tuple[str, ...], ...]
    unread: tuple[str, ...]
    uncovered: tuple[str, ...]
    writes: bool
    covered: Level | None
    risks: tuple[str, ...]
    widest: Level | None = None
    needed: tuple[tuple[Level | None, Rule | None], ...] = ()

    def rules(self, level: Level) -> tuple[Rule, ...]:
        """Which rules, granted as well, would cover the line at this level; none where no rule can, or none is
        needed."""
        missing = [rule for had, rule in self.needed if rank(had) < rank(level)]
        if rank(level) > rank(self.widest) or None in missing:
            return ()
        return tuple(dict.fromkeys(replace(rule, level=level) for rule in missing if rule))


class Judge:
    """Judges commands by the allowlist of the configuration and by what people granted."""

    def __init__(self, *, workspace: Path, path: str, allowlist: Sequence[Rule]) -> None:
        """path: where commands are found, as PATH has it."""
        self._binaries = Binaries(workspace, path)
        self._allowlist = tuple(allowlist)

    def judge(
        self,
        command: str,
        folder: Path,
        granted: Sequence[Rule] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Judgement:
        """The verdict on `command`, run in `folder`. environment: what variables are known to be; of these `HOME` is
        followed. Blocks for milliseconds; never raises."""
        case = _Case(self._binaries, (*self._allowlist, *granted))
        try:
            if hidden := hidden_characters(command):
                case.unread.append(hidden)
                case.risks.append(hidden)
            case.look(command, os.path.realpath(folder), environment.get("HOME"))
        except Exception:  # a fault of ours must not let a command run
            case.unread.append("The command could not be analysed.")
        return case.judgement()


@dataclass(slots=True)
class _Case:
    """One command while it is judged."""

    binaries: Binaries
    allowed: tuple[Rule, ...]
    commands: list[tuple[str, ...]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    risks: list[str] = field(default_factory=list)
    needed: list[tuple[Level | None, Rule | None]] = field(default_factory=list)
    writes: bool = False
    widest: Level = "host"

    def judgement(self) -> Judgement:
        widest = None if self.unread else self.widest
        covered = min((widest, *(had for had, _ in self.needed)), key=rank)
        unread, uncovered, risks = (
            tuple(dict.fromkeys(map(_said, some)))[:_MAX_SENTENCES]
            for some in (self.unread, self.uncovered, self.risks)
        )
        return Judgement(
            tuple(self.commands), unread, uncovered, self.writes, covered, risks, widest, tuple(self.needed)
        )

    def look(self, command: str, folder: str, home: str | None) -> None:
        parsed = parse(command, folder, home)
        self.unread += parsed.misses
        for redirect in parsed.redirects:
            self._redirect(redirect)
        for name, value in parsed.assigned:
            if not (value.exact and builtins.is_harmless_variable(name, value.text)):
                self._at_most("work", f"The variable `{name}` is set, which may change what runs.")
        for simple in parsed.commands:
            self._command(simple)

    def _at_most(self, level: Level, reason: str) -> None:
        """No rule lets the line run beyond this level."""
        self.widest = min(self.widest, level, key=rank)
        self.uncovered.append(reason)

    def _redirect(self, redirect: Redirect) -> None:
        operator, target = redirect.operator, redirect.target
        if operator in ("<<", "<<<"):
            return self._known([target])
        if operator in (">&", "<&") and target.exact and re.fullmatch(r"\d", target.text):
            return None
        if target.exact and target.text in _NO_FILES:
            return None
        self.writes = self.writes or operator != "<"
        file = target.exact and not target.text.startswith("/dev/")  # the shell connects to a host at /dev/tcp
        return self._at_most(
            "network" if file else "work",
            f"A redirection {'reads' if operator == '<' else 'writes'} a file: `{target.shown}`.",
        )

    def _known(self, words: Sequence[Word]) -> None:
        for word in words:
            if not word.exact:
                self._at_most("network", f"It is not known before it runs what becomes of `{word.shown}`.")

    def _command(self, simple: Simple) -> None:
        """One command in one folder."""
        words, name = simple.words, simple.words[0].text
        shown = [word.text if word.exact else word.shown for word in words]
        if not name:
            self.commands.append(tuple(shown))
            return self._never(f"The command name is not known before it runs: `{words[0].shown}`.")
        self._known(words[1:])
        self.risks += risks_of(os.path.basename(name), [word.text for word in words[1:]])
        if builtins.known(name):
            self.commands.append(tuple(shown))
            if not builtins.is_free(name, words[1:]):
                self._never(f"`{name}` is a command of the shell itself, which no rule covers.")
            return None
        binary = self.binaries.found(name, simple.folder)
        self.commands.append((binary or name, *shown[1:]))
        if binary is None:
            return self._never(f"`{name}` is not known here.")
        return self._program(binary, shown, simple, all(word.exact for word in words))

    def _never(self, reason: str) -> None:
        """No rule covers this command."""
        self.needed.append((None, None))
        self.uncovered.append(reason)

    def _program(self, binary: str, shown: Sequence[str], simple: Simple, exact: bool) -> None:
        """exact: all words are known."""
        arguments = shown[1:] if exact else None
        by_name = self.binaries.named(os.path.basename(binary)) == binary
        matching = [
            rule for rule in self.allowed if rule.matches(binary, by_name, arguments, simple.folder, simple.fed)
        ]
        had = max((rule.level for rule in matching), key=rank, default=None)
        if had == LEVELS[-1]:
            return
        own = Rule(escaped(binary), tuple(map(escaped, shown[1:])), simple.folder, fed=simple.fed) if exact else None
        self.needed.append((had, own))
        self.uncovered.append(
            f"No rule allows `{' '.join(shown)}`" + (f" with more than {had}." if had else " with these words.")
        )


def _said(sentence: str) -> str:
    """A sentence that fits on a line or two, whatever it quotes."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in sentence)
    return shown if len(shown) <= 240 else f"{shown[:160]} \N{HORIZONTAL ELLIPSIS} {shown[-70:]}"
