"""Decides whether a command may run at once, after a person allowed it, or not at all, and at which level.

A level says what a command may do in the sandbox; the level "host" means on this machine itself.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Literal

from agent.shell import Judge, Judgement, Level, Rule, load_rule, rule_json
from agent.shell.rules import rank
from agent.tools.base import Ask, Refused

Security = Literal["deny", "allowlist", "full"]
Asking = Literal["off", "on-miss", "always"]
GRANT = "exec:"

# The exact lines that run without a question where there is no sandbox. None of them reads a file that somebody could
# have prepared for it.
HARMLESS = (
    *("date", "df -h", "free -h", "hostname", "id", "ls", "ls -a", "ls -l", "ls -la", "pwd"),
    *("uname -a", "uptime", "whoami"),
)

_SHOWN: dict[Level, str] = {
    "look": "It only looks: in the sandbox, where it can change nothing and reach no network.",
    "work": "It may change files of the workspace: in the sandbox, without network.",
    "network": "It may change files of the workspace and use the network: in the sandbox.",
    "host": "It runs on this machine itself, outside of the sandbox, with all rights of the service.",
}
# What the model is told of a command that runs on the host for lack of a sandbox, where nobody can be asked.
_ALONE = (
    "It was not executed: the sandbox of this machine holds only commands that look, so a person must decide. Nobody "
    "can be asked here. The operator can install bubblewrap, or add a rule for this command to tools.exec.allowlist."
)
_NO_SANDBOX = "No sandbox holds commands in here, so it runs on this machine itself, with all rights of the service."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about a command."""

    # The level at which it runs.
    level: Level
    # Why a person must be asked, in sentences; empty: it may run.
    missed: tuple[str, ...]
    # Notes for the person who decides.
    risks: tuple[str, ...] = ()
    # Rules that would allow the command at this level.
    rules: tuple[Rule, ...] = ()
    # Whether rules of the operator alone allow it.
    by_operator: bool = False
    # Why it is refused where nobody can be asked; empty: the request waits there as well.
    alone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """The settings of `tools.exec` by which commands are allowed."""

    # How far commands may go at all; with "deny" the tools do not exist.
    security: Security
    # When a person is asked.
    asking: Asking
    # What may run when nobody decides in time.
    fallback: Security
    # Whether commands in the sandbox may write in their room, or use the network, without a question.
    in_sandbox: Literal["ask", "allow"]
    network: Literal["ask", "allow", "deny"]
    # The levels at which a sandbox holds commands; those of the others run on the host.
    held: Collection[Level]
    judge: Judge
    # Returns what people have allowed in a session, grants for other tools included.
    grants: Callable[[str], Collection[str]] = lambda session_key: ()

    def of(
        self,
        command: str,
        folder: Path,
        environment: dict[str, str],
        needs: Level | None,
        *,
        session_key: str = "",
        only_look: bool = False,
        unruled: Sequence[str] = (),
        on_host: Callable[[], Sequence[str]] = tuple,
    ) -> Verdict:
        """Decide at which level a command runs, and whether a person must be asked. Blocking. Raises Refused.

        needs: the level that the model asked for. session_key: of the session in which the command runs. only_look:
        whether the caller may have no other level. unruled: sentences about what no rule covers besides the line; above
        the level "work" a person is asked about these. on_host: returns more of them for a command of the host.
        """
        grants = self.grants(session_key)
        granted = [load_rule(grant.removeprefix(GRANT)) for grant in grants if grant.startswith(GRANT)]
        judgement = self.judge.judge(command, folder, granted, environment)
        wanted = self._level(needs, judgement, only_look)
        level: Level = wanted if wanted in self.held else "host"
        beyond = tuple(unruled) if level in ("network", "host") else ()
        beyond += tuple(on_host()) if level == "host" else ()
        free = self._is_free(level) or (not self.held and command in HARMLESS and not beyond)
        covered = rank(_ruled(judgement)) >= rank(level) and not beyond
        missed = () if free or covered else (self.shown(level), *judgement.unread, *beyond)
        ungranted = self.judge.judge(command, folder, (), environment) if granted else judgement
        own = covered and rank(_ruled(ungranted)) >= rank(level)
        rules = () if beyond or judgement.writes else judgement.rules(level)
        alone = _ALONE if self.held and wanted != level else ""
        return Verdict(level, missed, judgement.risks, rules, own, alone)

    def shown(self, level: Level) -> str:
        """Say to people what a command may do at a level."""
        return _SHOWN[level] if self.held else _NO_SANDBOX

    def _level(self, needs: Level | None, judgement: Judgement, only_look: bool) -> Level:
        """Return the level that a command needs. Raises Refused."""
        if only_look and not self.held:
            raise Refused("It was not executed: whoever asks may only look, and there is no sandbox here to look from.")
        if only_look and needs not in (None, "look"):
            raise Refused(f"It was not executed: whoever asks may only look, so needs: {needs} is not for them.")
        if needs == "network" and self.network == "deny":
            raise Refused("It was not executed: no command may use the network here (tools.exec.network: deny).")
        if not self.held:
            return "host"
        if needs is None and not only_look:
            return self._unsaid(judgement)
        return needs or "look"

    def _unsaid(self, judgement: Judgement) -> Level:
        """Return the level of a command for which the model named none.

        It is the level that rules allow; without rules "work" if that is free or the line writes a file, else "look".
        """
        if (ruled := _ruled(judgement)) and self.asking != "always":
            return "work" if (ruled, self.network) == ("network", "deny") else ruled
        return "work" if self._is_free("work") or judgement.writes else "look"

    def _is_free(self, level: Level) -> bool:
        """Whether every command may run at a level without a question."""
        full = self.security == "full"
        return level in self.held and (
            level == "look"
            or (level == "work" and (full or self.in_sandbox == "allow"))
            or (level == "network" and (full or self.network == "allow"))
        )

    def input_missed(self, level: Level, shown: str) -> tuple[str, ...]:
        """Say why a person must be asked about input for a command that runs at a level; empty: nobody is asked."""
        return () if self._is_free(level) else (f"It is given to {shown}, which may do anything with it.",)

    def ask(
        self,
        *,
        bound: Sequence[object],
        subject: str,
        missed: Sequence[str],
        facts: Sequence[str] = (),
        risks: Sequence[str] = (),
        rules: Sequence[Rule] = (),
        alone: str = "",
    ) -> Ask | None:
        """Return what a person must decide; None: the command may run. Raises Refused when nobody may be asked.

        bound: JSON values of everything that the decision is bound to. missed: why the command is not allowed. facts:
        what else a person should know. rules: what would allow the command for good.
        alone: see Verdict.
        """
        if missed and self.asking == "off":
            raise Refused(
                f"It was not executed. {' '.join(missed)} Nobody is asked; who runs this bot can allow it in the "
                "configuration (tools.exec.allowlist, tools.exec.in_sandbox, tools.exec.ask)."
            )
        if not missed and self.asking != "always":
            return None
        rules = () if self.asking == "always" else rules
        return Ask(
            digest=hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest(),
            subject=subject,
            why=(*(missed or ("The configuration wants each command to be asked about.",)), *facts),
            risks=tuple(risks),
            grants=tuple(f"{GRANT}{rule_json(rule)}" for rule in rules),
            granted="; ".join(map(_in_words, rules)) + (", in every conversation" if rules else ""),
            otherwise="Nobody decided in time. It was not executed, and nothing of it has happened.",
            alone=alone,
            runs_unanswered=self.fallback == "full" or (self.fallback == "allowlist" and not missed),
        )


def _ruled(judgement: Judgement) -> Level | None:
    """Return up to which level rules let a line run; None if no rule does.

    Rules are about programs. A line of shell builtins alone has no rule, and a line that writes a file itself is not
    covered by any.
    """
    by_rule = any("/" in words[0] for words in judgement.commands)
    return judgement.covered if by_rule and not judgement.writes else None


def _in_words(rule: Rule) -> str:
    arguments = "any arguments" if rule.arguments is None else shlex.join(rule.arguments) or "no arguments"
    fed = f", fed by `{shorten(rule.fed, 80)}`" if rule.fed else ""
    where = f" in {rule.folder}" if rule.folder else ""
    return f"`{rule.binary}` with {arguments}{fed}{where} ({'this machine' if rule.level == 'host' else rule.level})"
