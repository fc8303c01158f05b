"""What a shell command would run, and up to where rules let it: the analysis behind `exec` (docs/commands.md).

The package reads the language of the shell, not the programs: it says which programs a line starts, with which words,
in which folder and with what to read, whether the line itself writes files or sets variables, and whether rules allow
exactly that. What a program does with its words is not known here, and nothing is allowed because somebody knew the
program. A line that cannot be read as a whole is covered by no rule.
"""

from agent.shell.builtins import SAFE_ENVIRONMENT, is_harmless_variable
from agent.shell.judge import Judge, Judgement
from agent.shell.rules import LEVELS, Level, Rule, load_rule, parse_rule, rule_json

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
