"""HEARTBEAT.md: free notes, and tasks that are due at intervals of their own.

    tasks:
      - name: inbox
        interval: 30m
        prompt: Look for urgent mail.

The block may stand anywhere, also in a fence. It is read by people's habits rather than as YAML: a prompt may hold
colons and hashes without quotes, and a faulty entry takes no other with it.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template

from heartbeat.times import parse_duration

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_BLOCK = re.compile(r"( *+)tasks *+: *+(?:\[ *+\])? *+(?:#.*)?")
_ENTRY = re.compile(r"( *)-(?: |$)")
_OURS = re.compile(r" *- +(?:name|interval|prompt) *:")
_KEY = re.compile(r"( *)([A-Za-z_][\w-]*) *:(?: ++(.*))?")
_QUOTED = re.compile(r"""(["'])(.*)\1(?: +#.*)?""", re.DOTALL)
_EMPTY_FENCE = re.compile(r"^[ \t]*(`{3}|~{3})[\w-]*[ \t]*\n\s*\1[ \t]*$", re.MULTILINE)
# A line without content: a heading, an empty item with or without a box, a fence, a rule, an empty quote.
_NOTHING = re.compile(r"#{1,6}(?:\s.*)?|(?:[-*+]|\d{1,9}[.)])?\s*(?:\[[ xX]?\])?|[`~]{3,}[\w-]*|(?:[-*_=]\s*){3,}|>+")
_NAME_LIMIT = 80
_KEYS = ("name", "interval", "prompt")


@dataclass(frozen=True, slots=True)
class Task:
    """A task that is due when `interval_ms` have passed since it was last done."""

    name: str
    interval_ms: int
    prompt: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in HEARTBEAT.md."""

    # Counted from 1.
    line: int
    # A sentence for people.
    cause: str


@dataclass(frozen=True, slots=True)
class Checklist:
    """The content of HEARTBEAT.md."""

    # Everything but tasks and comments; empty if nothing in it says anything.
    notes: str
    tasks: tuple[Task, ...]
    mistakes: tuple[Mistake, ...]


class _WrongError(Exception):
    """An entry is no task. The arguments are the line and the cause."""


def read(text: str) -> Checklist:
    """Read a HEARTBEAT.md. Never raises; mistakes are part of the result."""
    lines = _without_comments(text).split("\n")
    notes: list[str] = []
    tasks: dict[str, Task] = {}
    mistakes: list[Mistake] = []
    at = 0
    while at < len(lines):
        block = _BLOCK.fullmatch(lines[at].expandtabs(2))
        if not block:
            notes.append(lines[at])
            at += 1
            continue
        end = _end_of_block(lines, at + 1, len(block[1]))
        for entry in _entries(lines[at + 1 : end], at + 2, mistakes):
            try:
                task = _task(entry, mistakes)
                if task.name in tasks:
                    raise _WrongError(entry[0][0], f'There is a task "{task.name}" already; names differ.')
                tasks[task.name] = task
            except _WrongError as error:
                mistakes.append(Mistake(*error.args))
        at = end
    rest = _EMPTY_FENCE.sub("", "\n".join(notes)).strip()
    return Checklist("" if is_empty(rest) else rest, tuple(tasks.values()), tuple(mistakes))


def is_empty(text: str) -> bool:
    """Whether a text has nothing but headings, empty items and boxes, comments, fences and rules."""
    return all(_NOTHING.fullmatch(line.strip()) for line in _without_comments(text).split("\n"))


def _without_comments(text: str) -> str:
    """Remove comments but keep their line breaks, so that lines keep their numbers."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)


def _end_of_block(lines: list[str], begin: int, depth: int) -> int:
    """Return the index after the last line of a block.

    Lines that are indented deeper belong to it, and lines that look like entries. Other lists belong to it only if they
    follow without a gap. A line with a hash may be a heading or a comment.
    """
    end, heading = begin, False
    for at in range(begin, len(lines)):
        line = lines[at].expandtabs(2)
        text = line.lstrip()
        if not text:
            continue
        inside = len(line) - len(text) > depth and not heading
        if inside or _OURS.match(line) or (end == at and _ENTRY.match(line)):
            end, heading = at + 1, False
        elif text.startswith("#"):
            heading = True
        else:
            break
    return end


def _entries(lines: list[str], number: int, mistakes: list[Mistake]) -> Iterator[list[tuple[int, str]]]:
    """Yield the entries of a block as numbered lines, the dash replaced by a blank. number: of the first line."""
    entry: list[tuple[int, str]] = []
    depth: int | None = None
    for at, raw in enumerate(lines, number):
        line = raw.expandtabs(2).rstrip()
        begins = _ENTRY.match(line)
        if begins and (depth is None or len(begins[1]) <= depth + (2 if _OURS.match(line) else 0)):
            if entry:
                yield entry
            depth = len(begins[1])
            entry = [(at, line.replace("-", " ", 1).rstrip())]
        elif entry:
            entry.append((at, line))
        elif line and not line.lstrip().startswith("#"):
            mistakes.append(Mistake(at, "A task begins with `- name: …`."))
    if entry:
        yield entry


def _task(entry: list[tuple[int, str]], mistakes: list[Mistake]) -> Task:
    """Read one entry. Raises _WrongError when it is no task. mistakes: collects mistakes that do not matter."""
    values: dict[str, list[str]] = {}
    numbers: dict[str, int] = {}
    key, depth = "", 0
    for number, line in entry:
        found = _KEY.fullmatch(line)
        if key not in ("", "name", "interval") and (not line or len(line) - len(line.lstrip()) > depth):
            values[key].append(line)
        elif not line or line.lstrip().startswith("#"):
            continue
        elif not found:
            raise _WrongError(number, f"`{line.strip()[:60]}` is not `name: …`, `interval: …` or `prompt: …`.")
        else:
            key, depth = found[2].lower(), len(found[1])
            if key in values:
                raise _WrongError(number, f"`{key}` stands twice in this task.")
            if key not in _KEYS:
                mistakes.append(Mistake(number, f"`{key}` is not known here; allowed: {', '.join(_KEYS)}."))
            values[key], numbers[key] = [found[3] or ""], number
    if missing := [key for key in _KEYS if not _text(values.get(key, []))]:
        raise _WrongError(entry[0][0], f"This task lacks its {' and '.join(missing)}.")
    name = " ".join(_text(values["name"]).split())
    if len(name) > _NAME_LIMIT:
        raise _WrongError(numbers["name"], f"A name has at most {_NAME_LIMIT} characters.")
    return Task(name, _milliseconds(_text(values["interval"]), numbers["interval"]), _text(values["prompt"]))


def _milliseconds(span: str, number: int) -> int:
    try:
        milliseconds = round(parse_duration(span.partition(" #")[0]).total_seconds() * 1000)
    except ValueError:
        milliseconds = 0
    if milliseconds < 1000:
        raise _WrongError(number, f"`{span[:60]}` is no interval; write one such as 30m, 2h or 1d, at least 1s.")
    return milliseconds


def _text(lines: list[str]) -> str:
    """Return a value: one line, quoted or not, or several lines, which keep their line breaks after `|` or nothing."""
    first = lines[0].strip() if lines else ""
    if not first or first.startswith("|"):
        return textwrap.dedent("\n".join(lines[1:])).strip()
    text = " ".join(line.strip() for line in (lines[1:] if first.startswith(">") else lines)).strip()
    quoted = _QUOTED.fullmatch(text)
    return quoted[2].replace(f"\\{quoted[1]}", quoted[1]).strip() if quoted else text


# DEFAULT is `heartbeat.prompt` where the configuration has none.
DEFAULT, _END, _JOB, _LATE = (
    words.strip() for words in (resources.files(__package__) / "prompt.md").read_text("utf-8").split("\n---\n")
)


def compose(prompt: str, tasks: Sequence[Task], notes: str, late: str | None = None) -> str:
    """Return the user message of a beat. Its words are in `prompt.md`.

    prompt: of the configuration. tasks: those that are due. notes: the rest of HEARTBEAT.md. late: the due time as
    people write it, if the beat is late.
    """
    parts = [prompt, *_late(late)]
    if notes:
        parts.append(f"HEARTBEAT.md says:\n{notes}")
    if tasks:
        listed = "\n".join(f"- {task.name}: {task.prompt.replace(chr(10), chr(10) + '  ')}" for task in tasks)
        parts.append(f"Tasks of HEARTBEAT.md that are due now:\n{listed}")
    return "\n\n".join((*parts, _END))


def job_prompt(name: str, prompt: str, due: str | None) -> str:
    """Return the user message of a job. due: the due time as people write it, if the job is late."""
    return "\n\n".join((Template(_JOB).substitute(name=f'"{name}"'), *_late(due), prompt))


def _late(due: str | None) -> tuple[str, ...]:
    return () if due is None else (Template(_LATE).substitute(due=due),)
