"""Deliberate faults, and the tests that must notice each: a suite that stays green under one of them proves nothing.

`make mutants` puts them one at a time into a copy of the checkout and runs the tests named. Each area has a module
with `FAULTS`. Not collected by pytest.
"""

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

PACKAGES = ("agent", "bot", "channels", "heartbeat")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: in a place `text`, which stands there exactly once, becomes `instead`, and then `tests` fail."""

    # Area and words, as in `store/synchronous-off`.
    name: str
    # A function or class of ours by its qualified name, wherever it lies; the file, for what stands in none of them.
    place: str
    text: str
    instead: str
    # Node ids, few and fast; of each at least one case must fail.
    tests: tuple[str, ...]


class Found(NamedTuple):
    """Where the text of a fault begins: in which file, and at which of its characters."""

    file: Path
    at: int


class NoSuchText(Exception):
    """The text of a fault does not stand exactly once in its place, so that the fault has to be written anew."""


def find(fault: Fault, root: Path) -> Found:
    """The one place of a fault's text in the checkout `root`. Raises NoSuchText."""
    file = root / fault.place
    if file.is_file() or fault.place.endswith(".py"):
        whole = file.read_text(encoding="utf-8") if file.exists() else ""
        found = [Found(file, at) for at in _all(fault.text, whole)]
    else:
        found = [
            Found(file, begin + at)
            for file, begin, body in _bodies(root).get(fault.place, ())
            for at in _all(fault.text, body)
        ]
    if len(found) != 1:
        raise NoSuchText(f"it stands {len(found)} times in {fault.place}, the fault has to be written anew")
    return found[0]


def _all(text: str, whole: str) -> Iterator[int]:
    at = whole.find(text)
    while at >= 0:
        yield at
        at = whole.find(text, at + len(text))


@functools.cache
def _bodies(root: Path) -> dict[str, list[tuple[Path, int, str]]]:
    """Of each qualified name of a function or class: file, where it begins there, and its text."""
    found: dict[str, list[tuple[Path, int, str]]] = defaultdict(list)
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            whole = file.read_text(encoding="utf-8")
            lines = whole.splitlines(keepends=True)
            for name, node in _named(ast.parse(whole), ""):
                first = min(node.lineno, *(one.lineno for one in node.decorator_list), node.lineno) - 1
                begin = sum(map(len, lines[:first]))
                found[name].append((file, begin, "".join(lines[first : node.end_lineno])))
    return found


def _named(tree: ast.AST, above: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield above + node.name, node
            yield from _named(node, f"{above}{node.name}.")
        else:
            yield from _named(node, above)


def every() -> tuple[Fault, ...]:
    """All faults, area by area."""
    areas = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    return tuple(fault for area in areas for fault in import_module(f"{__name__}.{area}").FAULTS)
