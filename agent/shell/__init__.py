"""Analyses shell commands: what a line would run, and up to which level rules allow it (docs/commands.md).

The package knows the language of the shell, and no programs. It finds which programs a line starts, with which words
and input and in which folder, whether the line itself writes files or sets variables, and whether rules allow exactly
that. What a program does with its words is not known, and no program is allowed because it is known. No rule covers a
line that cannot be read as a whole.
"""

from agent.shell.judge import Judge, Judgement
from agent.shell.rules import (
    LEVELS,
    SAFE_ENVIRONMENT,
    Level,
    Rule,
    is_harmless_variable,
    load_rule,
    parse_rule,
    rule_json,
)

__all__ = [
    "LEVELS",
    "SAFE_ENVIRONMENT",
    "Judge",
    "Judgement",
    "Level",
    "Rule",
    "is_harmless_variable",
    "load_rule",
    "parse_rule",
    "rule_json",
]
