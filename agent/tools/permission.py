"""Whether a command may run: at once, when a person has said so, or not at all. Called by `exec` and `process`."""

import hashlib
import json
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.shell import Judge, Judgement, Rule, load_rule, rule_json
from agent.tools.base import Ask, Refused

Security = Literal["deny", "allowlist", "full"]
Asking = Literal["off", "on-miss", "always"]
GRANT = "exec:"


@dataclass(frozen=True, slots=True)
class Permission:
    """As the configuration has it. security: what may run without asking; with deny there are no such tools.

    ask: when a person is asked. fallback: what may run when nobody decides. grants: what people have allowed for
    always, those of other tools among it.
    """

    security: Security
    asking: Asking
    fallback: Security
    judge: Judge
    grants: Callable[[], Collection[str]] = tuple

    @property
    def is_free(self) -> bool:
        """Everything may run, and nobody is asked."""
        return self.security == "full" and self.asking != "always"

    def of(self, command: str, folder: Path, environment: dict[str, str]) -> Judgement:
        """What there is to say of a command. Blocking."""
        granted = [load_rule(grant.removeprefix(GRANT)) for grant in self.grants() if grant.startswith(GRANT)]
        return self.judge.judge(command, folder, granted, environment)

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
        reasons = missed if self.security != "full" else ()
        if reasons and self.asking == "off":
            raise Refused(
                f"It was not executed. {' '.join(reasons)} Nobody is asked; who runs this bot can allow it in the "
                "configuration (tools.exec.allowlist, tools.exec.ask)."
            )
        if not reasons and self.asking != "always":
            return None
        rules = () if self.asking == "always" else rules
        return Ask(
            digest=hashlib.sha256(json.dumps(bound, sort_keys=True).encode()).hexdigest(),
            subject=subject,
            why=(*(reasons or ("The configuration wants each command to be asked about.",)), *facts),
            risks=tuple(risks),
            grants=tuple(f"{GRANT}{rule_json(rule)}" for rule in rules),
            granted="; ".join(map(_in_words, rules)) + (", in every conversation" if rules else ""),
            otherwise="Nobody decided in time. It was not executed, and nothing of it has happened.",
            runs_unanswered=self.fallback == "full" or (self.fallback == "allowlist" and not missed),
        )


def _in_words(rule: Rule) -> str:
    arguments = "any arguments" if rule.arguments is None else shlex.join(rule.arguments) or "no arguments"
    fed = f", fed by `{rule.fed.strip()}`" if rule.fed else ""
    return f"`{rule.binary}` with {arguments}{fed}" + (f" in {rule.folder}" if rule.folder else "")
