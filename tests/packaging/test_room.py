"""A module fits on a few screens and a function on one: at most 400 and 60 lines."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for house in ("bot", "channels", "agent", "heartbeat") for path in (ROOT / house).rglob("*.py"))


def test_no_module_is_longer_than_400_lines() -> None:
    long = {str(path.relative_to(ROOT)): lines for path in MODULES if (lines := len(lines_of(path))) > 400}
    assert long == {}


def test_no_function_is_longer_than_60_lines() -> None:
    long = {
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}": length
        for path in MODULES
        for function in statements(parsed(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (function.end_lineno or function.lineno) - function.lineno + 1) > 60
    }
    assert long == {}


def test_every_module_says_what_it_is() -> None:
    silent = [path for path in MODULES if not ast.get_docstring(parsed(path))]
    assert silent == []


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements, without looking into their expressions."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, block, ()):
            yield node
            yield from statements(node)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
