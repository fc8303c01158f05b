"""What the offline model understands of a person's words: modifiers first, then actions one after the other.

Plain regular expressions on purpose: it is a demonstration that can be relied on, not an imitation of understanding.
"""

import json
import re
from dataclasses import dataclass, field

from agent.errors import ErrorKind

HELP = """I understand, one after the other or joined by "and" (same step) or "then" (next step):

- `say WORDS` · `think about SOMETHING`
- `read FILE` · `write TEXT to FILE` · `run COMMAND` · `call TOOL with {"json": "arguments"}`
- `write 3000 words of Markdown` · `long markdown`
- `be slow` · `fail with rate_limit` (or `fail twice with overloaded`, any error kind) · `break after 20 words`

Everything else I repeat."""

# The line that the service puts above a person's words; in groups it ends with the sender's name.
STAMP = re.compile(r"\A\s*(?:\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} \d{2}:\d{2}[^\]\n]*\](?: [^\n]+:)?[ \t]*(?:\n|\Z))+")

_SLOW = re.compile(r"\bbe slow\b", re.I)
_BREAK = re.compile(r"\bbreak after (\d{1,6}) words?\b", re.I)
_FAIL = re.compile(
    r"\bfail(?: (once|twice|(\d{1,3}) times))? with (" + "|".join(ErrorKind) + r")\b(?: (?:for|after) (\d{1,5}) s\w*)?",
    re.I,
)
_LONG = re.compile(r"\b(?:write )?(?:(\d{1,5}) words of|(?:a )?long) markdown\b", re.I)
_HELP = re.compile(r"\A(?:help|what can you do)\W*\Z", re.I)
_JOIN = re.compile(r"[\s,;.]*\b(and then|then|and|,)\s+(?=(?:say|think about|read|write|run|call)\s)", re.I)
_ACTIONS = (
    ("think", re.compile(r"think about\s+(?P<what>.+)", re.I | re.S)),
    ("say", re.compile(r"say\s+(?P<what>.+)", re.I | re.S)),
    ("read", re.compile(r"read\s+(?P<path>.+)", re.I | re.S)),
    ("write", re.compile(r"write\s+(?P<content>.+)\s+to\s+(?P<path>\S+)", re.I | re.S)),
    ("exec", re.compile(r"run\s+(?P<command>.+)", re.I | re.S)),
)
_POLITE = re.compile(r"\A(?:please|now)\s+", re.I)
_CALL = re.compile(r"call\s+`?(?P<tool>[\w-]+)`?(?:\s+with\s+(?P<arguments>.*))?", re.I | re.S)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call to make. named: the person named the tool, so it is called even when it is not there."""

    tool: str
    arguments: str
    named: bool = False


@dataclass(slots=True)
class Asked:
    """What a person asked for. steps: the calls of each step. failures: how often to fail, None: not at all."""

    words: str
    say: list[str] = field(default_factory=list)
    think: list[str] = field(default_factory=list)
    steps: list[list[Call]] = field(default_factory=list)
    long: int = 0
    slow: bool = False
    break_after: int | None = None
    fail: ErrorKind | None = None
    fail_times: int | None = None
    retry_after: float | None = None
    help: bool = False


def spoken(text: str) -> str:
    """A stored message without the line that tells when it was written."""
    return STAMP.sub("", text).strip()


def understand(words: str) -> Asked:
    """Read a message (without its time-stamp)."""
    asked = Asked(words)
    rest = _modifiers(words, asked)
    if found := _LONG.search(rest):
        asked.long = int(found[1] or 600)
        rest = _without(rest, found)
    asked.help = bool(_HELP.match(rest))
    next_step = True
    while rest:
        clause, joint, rest = _clause(rest)
        next_step |= not asked.steps
        if _action(_POLITE.sub("", clause.strip(" \t\n,;")), asked, next_step):
            next_step = False
        next_step |= "then" in joint
    return asked


def _modifiers(words: str, asked: Asked) -> str:
    """Take in how to answer; returns what is left of the words."""
    if found := _SLOW.search(words):
        asked.slow = True
        words = _without(words, found)
    if found := _BREAK.search(words):
        asked.break_after = int(found[1])
        words = _without(words, found)
    if found := _FAIL.search(words):
        asked.fail = ErrorKind(found[3].lower())
        times = (found[1] or "").lower()
        asked.fail_times = {"": None, "once": 1, "twice": 2}.get(times, int(found[2] or 0))
        asked.retry_after = float(found[4]) if found[4] else None
        words = _without(words, found)
    return words


def _without(words: str, found: re.Match[str]) -> str:
    """The words without the match and without the "and" that joined it to them."""
    before = re.sub(r"(?:[\s,;.]|\b(?:and|then)\b)+\Z", "", words[: found.start()], flags=re.I)
    after = re.sub(r"\A(?:[\s,;.]|\b(?:and|then)\b)+", "", words[found.end() :], flags=re.I)
    return f"{before} and {after}" if before and after else before or after


def _clause(words: str) -> tuple[str, str, str]:
    """The first clause, what joins it to the next, and the rest. JSON arguments are never cut in two."""
    start = 0
    if (call := _CALL.match(words.lstrip())) and call["arguments"]:
        begin = words.find(call["arguments"])
        try:
            start = json.JSONDecoder().raw_decode(words, begin)[1]
        except (ValueError, RecursionError):
            start = 0
    joint = _JOIN.search(words, start)
    return (words[: joint.start()], joint[1].lower(), words[joint.end() :]) if joint else (words, "", "")


def _action(clause: str, asked: Asked, next_step: bool) -> bool:
    """Take in one clause; whether it was a call."""
    call: Call | None = None
    if found := _CALL.fullmatch(clause):
        call = Call(found["tool"], (found["arguments"] or "{}").strip().rstrip(".") or "{}", named=True)
    for name, pattern in _ACTIONS:
        if call is None and (found := pattern.fullmatch(clause)):
            if name in ("say", "think"):
                (asked.say if name == "say" else asked.think).append(found["what"].strip())
                return False
            values = {key: value.strip().strip("`") for key, value in found.groupdict().items()}
            call = Call(name, json.dumps(values, ensure_ascii=False))
    if call is None:
        return False
    if next_step:
        asked.steps.append([])
    asked.steps[-1].append(call)
    return True
