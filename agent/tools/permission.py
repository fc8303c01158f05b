"""Whether a command may run, and where: in the sandbox with so much as it needs, or on the machine itself; at once,
when a person has said so, or not at all. Called by `exec` and `process`.
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

# What runs without a question where there is no sandbox: these lines, to the letter. None of them reads a file that
# somebody could have written for it.
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
_NO_SANDBOX = "No sandbox holds commands in here, so it runs on this machine itself, with all rights of the service."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided of a command: the level at which it runs, and why a person must be asked; no reason: it may run.

    rules: with which it would be allowed there.
    """

    level: Level
    missed: tuple[str, ...]
    risks: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """As the configuration has it. security: how far commands may go at all; with deny there are no such tools.

    asking: when a person is asked. fallback: what may run when nobody decides. in_sandbox, network: whether a command
    may write in its room, or use the network, without a question. confined: there is a sandbox. grants: what people
    have allowed for always, those of other tools among it.
    """

    security: Security
    asking: Asking
    fallback: Security
    in_sandbox: Literal["ask", "allow"]
    network: Literal["ask", "allow", "deny"]
    confined: bool
    judge: Judge
    grants: Callable[[], Collection[str]] = tuple

    def of(
        self,
        command: str,
        folder: Path,
        environment: dict[str, str],
        needs: Level | None,
        *,
        only_look: bool = False,
        unruled: Sequence[str] = (),
    ) -> Verdict:
        """Where a command runs, and whether a person must be asked. needs: what the model says. only_look: whoever asks
        may have no more. unruled: what there is to it besides its line, of which no rule speaks, in sentences: where it
        reaches further than its room, a person is asked about it. Blocking. Raises Refused."""
        granted = [load_rule(grant.removeprefix(GRANT)) for grant in self.grants() if grant.startswith(GRANT)]
        judgement = self.judge.judge(command, folder, granted, environment)
        level = self._level(needs, judgement, only_look)
        beyond = tuple(unruled) if level in ("network", "host") else ()
        free = self._is_free(level) or (not self.confined and command in HARMLESS and not beyond)
        covered = rank(_ruled(judgement)) >= rank(level) and not beyond
        missed = () if free or covered else (self.shown(level), *judgement.unread, *beyond)
        return Verdict(level, missed, judgement.risks, () if beyond or judgement.writes else judgement.rules(level))

    def shown(self, level: Level) -> str:
        """What a command may do at a level, for people."""
        return _SHOWN[level] if self.confined else _NO_SANDBOX

    def _level(self, needs: Level | None, judgement: Judgement, only_look: bool) -> Level:
        if only_look and not self.confined:
            raise Refused("It was not executed: whoever asks may only look, and there is no sandbox here to look from.")
        if only_look and needs not in (None, "look"):
            raise Refused(f"It was not executed: whoever asks may only look, so needs: {needs} is not for them.")
        if needs == "network" and self.network == "deny":
            raise Refused("It was not executed: no command may use the network here (tools.exec.network: deny).")
        if not self.confined:
            return "host"
        if needs is None and not only_look:
            return self._unsaid(judgement)
        return needs or "look"

    def _unsaid(self, judgement: Judgement) -> Level:
        """What a command gets when nothing is said: as far as rules let it, else as much as it may have unasked, or
        needs for a file that it evidently writes."""
        if (ruled := _ruled(judgement)) and self.asking != "always":
            return "work" if (ruled, self.network) == ("network", "deny") else ruled
        return "work" if self._is_free("work") or judgement.writes else "look"

    def _is_free(self, level: Level) -> bool:
        """Whether every command may run at a level."""
        full = self.security == "full"
        return self.confined and (
            level == "look"
            or (level == "work" and (full or self.in_sandbox == "allow"))
            or (level == "network" and (full or self.network == "allow"))
        )

    def input_missed(self, level: Level, shown: str) -> tuple[str, ...]:
        """Why a person must be asked about what is given to a command that runs at a level."""
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
    ) -> Ask | None:
        """What a person must decide; None: it may run. bound: all that a decision holds for, as JSON has it.

        missed: why it is not allowed; facts: what else there is to know; rules: with which it would be allowed. Raises
        Refused.
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
            runs_unanswered=self.fallback == "full" or (self.fallback == "allowlist" and not missed),
        )


def _ruled(judgement: Judgement) -> Level | None:
    """Up to which level rules let a line run. They speak of programs: commands of the shell need none, and a file that
    the line itself writes is in none of them."""
    by_rule = any("/" in words[0] for words in judgement.commands)
    return judgement.covered if by_rule and not judgement.writes else None


def _in_words(rule: Rule) -> str:
    arguments = "any arguments" if rule.arguments is None else shlex.join(rule.arguments) or "no arguments"
    fed = f", fed by `{shorten(rule.fed, 80)}`" if rule.fed else ""
    where = f" in {rule.folder}" if rule.folder else ""
    return f"`{rule.binary}` with {arguments}{fed}{where} ({'this machine' if rule.level == 'host' else rule.level})"
