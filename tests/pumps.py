"""What makes a program that reads texts slow: repetitions made from its regular expressions, and a time-keeper."""

import ast
import builtins
import contextlib
import importlib
import inspect
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import count
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import regex  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent
HOUSES = ("agent", "bot", "channels", "heartbeat")
# Programs that run as soon as they are imported.
_PROGRAMS = ("__main__.py", "probe.py")
# How every text ends, so that what takes everything must go back.
_END = "\x00\u2603\n!"
LENGTH, SHORT = 20_000, 1_000
# How much longer four times as long a text may take before it is looked at closely: four times is right.
_STEEP = 6
# How many pumps are tried with longer texts. Seconds of processor time: up to which they are, and from which it is
# tried with shorter texts at first.
_CLOSELY, _DEAR, _HEAVY = 2, 0.008, 0.0002
# Seconds of processor time: what is never looked at, and what is never waited for.
_UNSEEN, _MOST = 0.02, 0.4
# Seconds of processor time that nothing may take on the event loop.
_SLOW = 0.05
_METHODS = {"match", "fullmatch", "search", "sub", "subn", "findall", "finditer", "split"}
# Marks and words of which texts are made that are hard to read, alone; and what such marks follow.
_MARKS = (
    *"<[(*_`|#-:.\\\"'1a \n",
    *(
        "> ",
        "- ",
        "a ",
        "*]",
        "[a](",
        "![",
        "||",
        "\n|a",
        "$$",
        "```",
        "<!--",
        "<details>",
        "://",
        "„",
        "\u200b",
        "{a,",
    ),
)
# What comes first, what is repeated, and perhaps what comes last.
Pump = tuple[str, ...]
_SECTIONS = (
    ("<details>\n", "</details>"),
    ("$$a\n", "\n$$"),
    ("<!--a\n", "\n-->"),
    ("a\n", "\n```"),
    ("> ```\n", "\n```"),
)
MARKED = (*(("", mark) for mark in _MARKS), ("<", " "), *(("", pump, last) for pump, last in _SECTIONS))
_COMPILES = re.compile(r"\bre\.[a-z]+\(")
_CANDIDATES = "a1 -\n.<_:/A\t(é!=\"'`[*~"


def modules() -> Iterator[tuple[ModuleType, Path]]:
    """Yield the modules of the product."""
    for house in HOUSES:
        for path in sorted((ROOT / house).rglob("*.py")):
            if path.name not in _PROGRAMS:
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                yield importlib.import_module(name), path


def expressions() -> dict[str, tuple[re.Pattern[str], frozenset[str]]]:
    """Return the expressions of the product by their place, each with the methods that its module calls of it."""
    used = dict[str, tuple[re.Pattern[str], frozenset[str]]]()
    seen = set[tuple[str, int]]()
    for module, path in modules():
        found, source = dict[str, re.Pattern[str]](), path.read_text()
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__:
                for member, inner in vars(value).items():
                    _collect(inner, member, found)
            else:
                _collect(value, name, found)
        found = {name: one for name, one in found.items() if (one.pattern, one.flags) not in seen}
        if not found and not _COMPILES.search(source):
            continue
        calls, anyhow = _written(ast.parse(source), module, found)
        for name, pattern in found.items():
            bare = name.partition("[")[0]
            methods = {bare.rpartition(" ")[2]} if " " in bare else set(calls.get(bare, ())) & _METHODS
            if not methods or bare in anyhow or "[" in name:
                methods = {"finditer"}
            if isinstance(pattern.pattern, str) and (pattern.pattern, pattern.flags) not in seen:
                seen.add((pattern.pattern, pattern.flags))
                used[f"{module.__name__}.{name}"] = pattern, frozenset(methods)
    return used


def _collect(value: object, place: str, found: dict[str, re.Pattern[str]], depth: int = 0) -> None:
    if isinstance(value, re.Pattern | regex.Pattern):
        found.setdefault(place, value)
    elif depth > 3 or isinstance(value, type):
        return
    elif isinstance(value, Mapping):
        for n, inner in enumerate(value.values()):
            _collect(inner, f"{place}[{n}]", found, depth + 1)
    elif isinstance(value, (tuple, list, set, frozenset)):
        for n, inner in enumerate(value):
            _collect(inner, f"{place}[{n}]", found, depth + 1)
    elif is_dataclass(value):
        for field in fields(value):
            _collect(getattr(value, field.name, None), f"{place}[{field.name}]", found, depth + 1)
    elif inspect.isfunction(value):
        for cell in value.__closure__ or ():
            with contextlib.suppress(ValueError):
                _collect(cell.cell_contents, f"{place}[in it]", found, depth + 1)


class _Names(dict[str, Any]):
    """The names of a module; what only a function knows is a word."""

    def __missing__(self, name: str) -> object:
        return getattr(builtins, name, "word")


def _written(
    tree: ast.AST, module: ModuleType, found: dict[str, re.Pattern[str]]
) -> tuple[dict[str, set[str]], set[str]]:
    """Note the expressions that stand in functions.

    Returns the methods that are called of each name, and the names that are used in other ways.
    """
    called, calls, anyhow = set[int](), dict[str, set[str]](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "re":
            called.add(id(node.value))
            calls.setdefault(node.value.id, set()).add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            anyhow.add(node.id)
        elif isinstance(node, ast.Call) and node.args and ast.unparse(node.func).startswith("re."):
            _evaluate(node, ast.unparse(node.func).removeprefix("re."), module, found)
    return calls, anyhow


def _evaluate(call: ast.Call, method: str, module: ModuleType, found: dict[str, re.Pattern[str]]) -> None:
    """Compile what a function compiles, where names that only the running function knows are words."""
    with contextlib.suppress(Exception):  # made of more than names, or of no expression
        names = _Names(vars(module))
        written = eval(compile(ast.Expression(call.args[0]), "", "eval"), names)
        given = [one.value for one in call.keywords if one.arg == "flags"] or call.args[-1:]
        flags = eval(compile(ast.Expression(given[0]), "", "eval"), names)
        method = "finditer" if method == "compile" else method
        found.setdefault(f"{call.lineno} {method}", re.compile(written, flags if isinstance(flags, int) else 0))


def pumps(pattern: re.Pattern[str]) -> tuple[Pump, ...]:
    """Return what comes first and what is repeated: each literal, class and group of an expression."""
    if isinstance(pattern, regex.Pattern):
        return *MARKED, *(("", word) for word in re.findall(r"[A-Z]{3,}", pattern.pattern))
    made = dict[tuple[str, str], None]()
    whole = _sample(_parser.parse(pattern.pattern, pattern.flags), "", {}, made)
    made |= {("", whole): None} | {("", pump): None for _, pump in made}
    return tuple(one for one in made if one[1])


def _sample(sequence: Any, before: str, groups: dict[int, str], made: dict[tuple[str, str], None]) -> str:
    """Return a text that a part of an expression is likely to match, and note its pumps."""
    text = run = ""
    for operation, value in sequence:
        here, one = before + text, ""
        if operation is sre.LITERAL:
            one = chr(value)
            run += one
            text += one
            continue
        if run:
            made[here.removesuffix(run), run] = None
            run = ""
        match operation:
            case sre.ANY:
                one = "a"
            case sre.NOT_LITERAL:
                one = next(sign for sign in _CANDIDATES if ord(sign) != value)
            case sre.IN:
                members = _members(value)
                made |= {(here, member): None for member in members}
                one = members[0]
            case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
                least, most, inner = value
                once = _sample(inner, here, groups, made)
                one = once * min(least, 40)
                if most > 1:
                    made[here, once] = None
            case sre.SUBPATTERN:
                one = _sample(value[-1], here, groups, made)
                groups[value[0] or 0] = one
            case sre.ATOMIC_GROUP:
                one = _sample(value, here, groups, made)
            case sre.BRANCH:
                ways = [_sample(way, here, groups, made) for way in value[1]]
                made |= {(here, way): None for way in ways}
                one = ways[0]
            case sre.ASSERT | sre.ASSERT_NOT:
                looked = _sample(value[1], here, groups, made)
                if operation is sre.ASSERT and value[0] < 0 and not here.endswith(looked):
                    text += looked
            case sre.GROUPREF:
                one = groups.get(value, "")
        text += one
        made[before, text] = None
    if run:
        made[(before + text).removesuffix(run), run] = None
    return text


def _members(items: list[tuple[Any, Any]]) -> list[str]:
    """Return signs of a class: the first of each of its parts, or one that it does not exclude."""
    kept = [item for item in items if item[0] is not sre.NEGATE]
    if len(kept) < len(items):
        return [next((sign for sign in _CANDIDATES if not any(_has(item, sign) for item in kept)), "\u2603")]
    found = [next(sign for sign in (_first(item), *_CANDIDATES) if sign and _has(item, sign)) for item in kept]
    return [*found, "\n"] if any(str(value).endswith("CATEGORY_SPACE") for _, value in kept) else found


def _first(item: tuple[Any, Any]) -> str:
    operation, value = item
    return chr(value) if operation is sre.LITERAL else chr(value[0]) if operation is sre.RANGE else ""


def _has(item: tuple[Any, Any], sign: str) -> bool:
    operation, value = item
    if operation is sre.LITERAL:
        return bool(ord(sign) == value)
    if operation is sre.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    name = str(value)
    kinds = {"DIGIT": sign.isdigit(), "SPACE": sign.isspace(), "WORD": sign.isalnum() or sign == "_"}
    return kinds[name.rpartition("_")[2]] != ("_NOT_" in name)


class _LateError(BaseException):
    """It took too long."""


def _late(*_: object) -> None:
    raise _LateError


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time that some work took, at most `_MOST`; what it raises is no matter.

    It is that of the thread: the clock of the process stands still between ticks while the timer is set.
    """
    before = signal.signal(signal.SIGVTALRM, _late)
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST)
    start = time.thread_time()
    try:
        with contextlib.suppress(Exception):
            work()
        return min(_MOST, time.thread_time() - start)
    except _LateError:
        return _MOST
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


_NUMBERS = count()


def took(work: Callable[[str], object], made: Pump, size: int, times: int = 1) -> float:
    """Return the least time for a text of about this size. No text is given twice: some parsers remember the last."""
    first, pump, *last = made
    text = first + pump * (size // len(pump)) + "".join(last)
    return min(seconds(partial(work, f"{text}{next(_NUMBERS)}{_END}")) for _ in range(times))


def slow(work: Callable[[str], object], made: Pump, length: int = LENGTH) -> str:
    """Say how a text of a pump takes more than thrice as long when it is twice as long; empty: it does not."""
    if length < LENGTH and took(work, made, length, 2) < _SLOW:
        return ""  # nobody gives it more
    size = min(SHORT, length)
    while took(work, made, size) < _UNSEEN and size < length:  # as long as it takes to be measured
        size = min(length, 2 * size)
    if (once := took(work, made, size, 3)) < _UNSEEN:
        return ""
    twice = took(work, made, 2 * size, 3)
    if twice <= 3 * once or (twice < _MOST and took(work, made, 4 * size, 2) <= 3 * min(twice, _MOST / 3.1)):
        return ""  # or an accident
    return f"{made[0][:30]!r} + {made[1][:30]!r} * n: {once:.3f} s for {size} characters, {twice:.3f} s for 2 n"


def worst(work: Callable[[str], object], made: Collection[Pump], length: int = LENGTH) -> str:
    """Say with which pump some work is slow, if it is with one.

    Each is tried with short texts; the steepest ones then with longer ones, for as long as they take little.
    """
    steep = list[tuple[float, int, Pump]]()
    for one in made:
        size = min(SHORT, length)
        if (quarter := took(work, one, size // 4)) > _HEAVY:
            size = size // 4
            most, quarter = quarter, took(work, one, size // 4)
        elif (most := took(work, one, size)) * (length / size) ** 2 < _UNSEEN:
            continue  # too little to be seen, also if it takes four times as long for twice as much
        if (
            most > _STEEP * quarter
            and most > _STEEP * took(work, one, size // 4, 3)
            and (said := slow(work, one, length))
        ):
            return said
        steep.append((most / quarter, size, one))
    for _, size, one in sorted(steep, reverse=True)[:_CLOSELY]:
        most = took(work, one, size)
        while most < _DEAR and 4 * size <= length:
            size, least, most = 4 * size, most, took(work, one, 4 * size)
            if most > _STEEP * max(least, took(work, one, size // 4)) and (said := slow(work, one, length)):
                return said
    return ""
