"""Judges a shell command: up to which level rules let it run, and what a person who decides should know.

Each simple command of the line is compared with the rules. What rules cannot cover (variables, redirections, words that
are only known when the line runs) lowers the level. A line that cannot be read is not covered at all.
"""

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from agent.shell.parse import parse
from agent.shell.rules import LEVELS, Level, Rule, escaped, is_builtin, is_free, is_harmless_variable, rank
from agent.shell.walk import Redirect, Simple
from agent.shell.words import Word, a_set

_ELEVATING = a_set("sudo doas su runuser pkexec run0 gosu")
_NETWORK = a_set("curl wget nc ncat netcat telnet ftp sftp scp ssh rsync socat dig nslookup host whois ping")
_DOWNLOADS = a_set("npx bunx uvx pipx pnpx")
_INSTALLS = re.compile(r"(pip3?|npm|pnpm|yarn|gem|cargo|apt|apt-get|dnf|yum|brew|apk|go|uv) (install|add|i|ci|get)\b")
_DEVICES = a_set("dd mkfs fdisk parted wipefs shred")
_ENDS = a_set("kill pkill killall shutdown reboot halt poweroff")


def risks_of(name: str, words: Sequence[str]) -> list[str]:
    """Return notes for people about one command, by the name of its program. Nothing is allowed or refused by them."""
    options = "".join(word[1:] for word in words if word.startswith("-") and not word.startswith("--"))
    line = " ".join((name, *words[:2]))
    notes = {
        "Runs with other rights.": name in _ELEVATING,
        "Deletes recursively.": name == "rm" and (re.search("[rR]", options) or "--recursive" in words),
        "Deletes what it finds.": name == "find" and "-delete" in words,
        "Uses the network.": name in _NETWORK
        or (name == "git" and words[:1] and words[0] in ("push", "pull", "fetch", "clone", "ls-remote")),
        "Runs what it downloads.": name in _DOWNLOADS or bool(_INSTALLS.match(line)),
        "Writes to devices or whole disks.": name in _DEVICES or name.startswith("mkfs."),
        "Ends other programs.": name in _ENDS,
        "Throws away changes.": name == "git"
        and bool(
            re.search(r"--hard|--force|^git clean|^git checkout --| -f\b|^git push .*\+", " ".join((name, *words)))
        ),
        "Changes rights or owners.": name in ("chmod", "chown", "chgrp", "setfacl"),
    }
    return [note for note, holds in notes.items() if holds]


def hidden_characters(command: str) -> str:
    """Return a sentence if a command holds characters that people cannot see, else an empty text."""
    for character in command:
        if character in "\t\n" or " " <= character <= "~":
            continue
        kind = unicodedata.category(character)
        if kind[0] in "CZ" or character in "\u115f\u1160\u3164\uffa0\u2800\u034f" or 0xFE00 <= ord(character) <= 0xFE0F:
            name = unicodedata.name(character, f"U+{ord(character):04X}").lower()
            return f"It holds a character that cannot be seen: {name}."
    return ""


class Binaries:
    """Finds the files that are run, for one workspace and one PATH."""

    def __init__(self, workspace: Path, path: str) -> None:
        self._workspace = os.path.realpath(workspace)
        self._path = path.split(os.pathsep)

    def found(self, name: str, folder: str) -> str | None:
        """Return the path of the file that a name runs in a folder; None: there is none, or it is not certain."""
        if "/" in name and ".." in name:
            return None
        for entry in ("",) if "/" in name else self._path:
            candidate = os.path.join(folder, entry, name)
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return os.path.normpath(candidate) if "/" in name else candidate
        return None

    def named(self, name: str) -> str | None:
        """Return the file that the bare name of a rule means; None: there is none, or it lies in the workspace."""
        found = None if "/" in name else self.found(name, "/")
        return found if found and os.path.isabs(found) and not self._in_workspace(found) else None

    def _in_workspace(self, path: str) -> bool:
        """Whether a file lies in the workspace when all links are followed."""
        return os.path.realpath(path).startswith(self._workspace.rstrip("/") + "/")


_MAX_SENTENCES = 10
_NO_FILES = ("/dev/null", "/dev/stdout", "/dev/stderr")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the analysis of a command found."""

    # The words of each simple command. The first one is the path of the program where known; a word whose value is not
    # known stands as its source.
    commands: tuple[tuple[str, ...], ...]
    # Sentences that say why the line could not be read as a whole; empty: it was read.
    unread: tuple[str, ...]
    # Sentences that say what no rule covers at the level "host"; empty if `covered` is "host".
    uncovered: tuple[str, ...]
    # Whether a redirection of the line writes a file, as far as the line was read.
    writes: bool
    # The highest level at which rules let every command run; None: a command has no rule, or the line was not read.
    covered: Level | None
    # Notes for people.
    risks: tuple[str, ...]
    # The highest level at which any rules could let the line run.
    widest: Level | None = None
    # For each command without a rule for "host" the level of the rules that it has, and a rule that would cover exactly
    # this command, if there can be one.
    needed: tuple[tuple[Level | None, Rule | None], ...] = ()

    def rules(self, level: Level) -> tuple[Rule, ...]:
        """Return the rules that would have to be granted to cover the line at a level; none if none can or need be."""
        missing = [rule for had, rule in self.needed if rank(had) < rank(level)]
        if rank(level) > rank(self.widest) or None in missing:
            return ()
        return tuple(dict.fromkeys(replace(rule, level=level) for rule in missing if rule))


class Judge:
    """Judges commands by the allowlist of the configuration and by what people granted."""

    def __init__(self, *, workspace: Path, path: str, allowlist: Sequence[Rule]) -> None:
        """path: the folders of programs, in the form of PATH. allowlist: the rules of the configuration."""
        self._binaries = Binaries(workspace, path)
        self._allowlist = tuple(allowlist)

    def judge(
        self,
        command: str,
        folder: Path,
        granted: Sequence[Rule] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Judgement:
        """Judge a command that runs in `folder`. Blocks for milliseconds; never raises.

        granted: rules that people granted, besides the allowlist. environment: known variables; only `HOME` is used.
        """
        case = _Case(self._binaries, (*self._allowlist, *granted))
        try:
            if hidden := hidden_characters(command):
                case.unread.append(hidden)
                case.risks.append(hidden)
            case.look(command, os.path.realpath(folder), environment.get("HOME"))
        except Exception:  # a bug here must not let a command run
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
            if not (value.exact and is_harmless_variable(name, value.text)):
                self._at_most("work", f"The variable `{name}` is set, which may change what runs.")
        for simple in parsed.commands:
            self._command(simple)

    def _at_most(self, level: Level, reason: str) -> None:
        """Note that no rule lets the line run above a level."""
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
        """Judge one simple command."""
        words, name = simple.words, simple.words[0].text
        shown = [word.text if word.exact else word.shown for word in words]
        if not name:
            self.commands.append(tuple(shown))
            return self._never(f"The command name is not known before it runs: `{words[0].shown}`.")
        self._known(words[1:])
        self.risks += risks_of(os.path.basename(name), [word.text for word in words[1:]])
        if is_builtin(name):
            self.commands.append(tuple(shown))
            if not is_free(name, words[1:]):
                self._never(f"`{name}` is a command of the shell itself, which no rule covers.")
            return None
        binary = self.binaries.found(name, simple.folder)
        self.commands.append((binary or name, *shown[1:]))
        if binary is None:
            return self._never(f"`{name}` is not known here.")
        return self._program(binary, shown, simple, all(word.exact for word in words))

    def _never(self, reason: str) -> None:
        """Note that no rule can cover the present command."""
        self.needed.append((None, None))
        self.uncovered.append(reason)

    def _program(self, binary: str, shown: Sequence[str], simple: Simple, exact: bool) -> None:
        """Compare a program with the rules. exact: whether all of its words are known."""
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
    """Shorten a sentence to a line or two, and replace characters that cannot be printed."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in sentence)
    return shown if len(shown) <= 240 else f"{shown[:160]} \N{HORIZONTAL ELLIPSIS} {shown[-70:]}"
