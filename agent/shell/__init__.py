"""What a shell command would run, and whether it may without asking: the analysis behind `exec` (docs/commands.md)."""

from agent.shell.judge import Judge, Judgement
from agent.shell.names import SAFE_ENVIRONMENT, is_refused_variable
from agent.shell.rules import Rule, load_rule, parse_rule, rule_json

__all__ = [
    "SAFE_ENVIRONMENT",
    "Judge",
    "Judgement",
    "Rule",
    "is_refused_variable",
    "load_rule",
    "parse_rule",
    "rule_json",
]
