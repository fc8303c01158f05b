"""What the offline model understands of a person's words: first how to answer, then actions one after the other.

It uses plain regular expressions, so that demonstrations and tests can rely on the result.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

HELP = Path(__file__).with_name("offline_help.md").read_text(encoding="utf-8").rstrip("\n")

# The line with the time that the service puts above a person's words; in groups it ends with the sender's name.
STAMP = re.compile(r"\A\s*(?:\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\]\n]*\](?: [^\n]+:)?[ \t]*(?:\n|\Z))+")

# Words of messages that no person wrote: in every beat, and at the beginning of a job (heartbeat/prompt.md).
_BEAT, _JOB = "HEARTBEAT_OK", "This is the scheduled job "
_BULLET = re.compile(r"(?:(?<!\s)\s*+|(?<=\s))(?:[-*+]|(?<!\d)\d++[.)])\s+(?:\[[ x]\]\s+)?")
_SLOW = re.compile(r"\bbe slow\b", re.I)
_LONG = re.compile(r"\b(?:write )?(?:(\d{1,5}) words of|(?:a )?long) markdown\b", re.I)
_HELP = re.compile(r"\A(?:help|what can you do)\W*\Z", re.I)
_JOIN = re.compile(r"(?<![\s,;.])[\s,;.]*\b(and then|then|and|,)\s+(?=(?:say|read|write|run|call)\s)", re.I)
_ACTION = re.compile(
    r"(?:(?:please|now)\s+)?(?:say\s+(?P<say>.+)|read\s+(?P<read>.+)"
    r"|write\s+(?=\S)(?P<content>.+(?<!\s))\s+to\s+(?P<write>\S+)|run\s+(?P<exec>.+)"
    r"|call\s+`?(?P<call>[\w-]+)`?(?:\s+with\s+(?P<arguments>.*))?)",
    re.I | re.S,
)
_FIRST_PARAMETER = {"read": "path", "write": "path", "exec": "command"}


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call to make."""

    tool: str
    arguments: str
    # Whether the person named the tool, so that it is called even if it does not exist.
    named: bool = False


@dataclass(slots=True)
class Asked:
    """What a message asks for."""

    words: str
    say: list[str] = field(default_factory=list)
    # The calls of each step.
    steps: list[list[Call]] = field(default_factory=list)
    # How many words of Markdown to write; 0: none.
    long: int = 0
    slow: bool = False
    help: bool = False
    # Whether no person wrote the message, but a beat or a job.
    unasked: bool = False


def spoken(text: str) -> str:
    """Return the text of a message without the line that says when it was written."""
    return STAMP.sub("", text).strip()


def understand(words: str) -> Asked:
    """Read a message without its time. Of a beat the first line that is understood counts, of a job its prompt."""
    unasked = _JOB in words or _BEAT in words
    if _JOB in words:
        words = words.rpartition("\n\n")[2]
    elif _BEAT in words:
        lines = (_BULLET.sub("", line) for line in words.splitlines())
        words = next(filter(_ACTION.match, lines), f"say {_BEAT}")
    asked, rest = Asked(words, unasked=unasked), words
    if found := _SLOW.search(rest):
        asked.slow, rest = True, _without(rest, found)
    if found := _LONG.search(rest):
        asked.long, rest = int(found[1] or 600), _without(rest, found)
    asked.help = bool(_HELP.match(rest))
    next_step = True
    while rest:
        clause, joint, rest = _clause(rest)
        call = _action(clause.strip(" \t\n,;"), asked)
        if call is not None:
            if next_step or not asked.steps:
                asked.steps.append([])
            asked.steps[-1].append(call)
            next_step = False
        next_step |= "then" in joint
    return asked


def _without(words: str, found: re.Match[str]) -> str:
    """Return the words without the match and without the "and" that joined it to them."""
    before = re.sub(r"(?<![\s,;.])(?:[\s,;.]|\b(?:and|then)\b)+\Z", "", words[: found.start()], flags=re.I)
    after = re.sub(r"\A(?:[\s,;.]|\b(?:and|then)\b)+", "", words[found.end() :], flags=re.I)
    return f"{before} and {after}" if before and after else before or after


def _clause(words: str) -> tuple[str, str, str]:
    """Return the first clause, the words that join it to the next one, and the rest. JSON arguments stay whole."""
    start = 0
    if (call := _ACTION.match(words.lstrip())) and call["arguments"]:
        try:
            start = json.JSONDecoder().raw_decode(words, words.find(call["arguments"]))[1]
        except (ValueError, RecursionError):
            start = 0
    joint = _JOIN.search(words, start)
    return (words[: joint.start()], joint[1].lower(), words[joint.end() :]) if joint else (words, "", "")


def _action(clause: str, asked: Asked) -> Call | None:
    """Return the call that a clause asks for; otherwise note in `asked` what the clause asks to be said, if it does."""
    found = _ACTION.fullmatch(clause)
    if found is None:
        return None
    given = {name: value.strip() for name, value in found.groupdict().items() if value is not None}
    if "say" in given:
        asked.say.append(given["say"])
    elif "call" in given:
        return Call(given["call"], given.get("arguments", "").rstrip(".") or "{}", named=True)
    else:
        tool = next(name for name in _FIRST_PARAMETER if name in given)
        given[_FIRST_PARAMETER[tool]] = given.pop(tool)
        values = {name: value.strip("`") for name, value in sorted(given.items())}
        return Call(tool, json.dumps(values, ensure_ascii=False))
    return None
