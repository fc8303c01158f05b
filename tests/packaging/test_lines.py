"""The tests stay in proportion to the product: lines of code, without blanks, comments and docstrings."""

import ast
import io
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 1.75
"""Lines of tests for each line of the product; goes down, and not up without a reason in the commit."""
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


def test_the_tests_are_not_too_long() -> None:
    product = lines_below("agent", "bot", "channels", "heartbeat")
    tests = lines_below("tests")
    assert product > 10_000
    assert tests <= MOST * product, f"{tests} lines of tests for {product} of the product: {tests / product:.3f}"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", 0),
        ('"""A module."""\n\n# said\nimport os  # counted\n', 1),
        ('def f():\n    """Do it.\n\n    Well.\n    """\n    return (\n        1,\n\n        # one\n    )\n', 4),
        ('class C:\n    """It."""\n\n    x: int = 0\n    """A field."""\n', 3),
        ('async def f():\n    "It."\n    if f:\n        def g():\n            """It."""\n', 3),
        ('TEXT = """a\n\n# b\n"""\n', 4),
        ("for x in y:\n    pass\nelse:\n    class C:\n        '''It.'''\n", 4),
    ],
)
def test_what_counts_as_a_line(text: str, lines: int) -> None:
    assert code_lines(text) == lines


def lines_below(*folders: str) -> int:
    return sum(code_lines(path.read_text(encoding="utf-8")) for one in folders for path in (ROOT / one).rglob("*.py"))


def code_lines(text: str) -> int:
    """Count the lines that hold code."""
    documentation = docstring_lines(ast.parse(text))
    rest = [line for number, line in enumerate(text.splitlines(), 1) if number not in documentation]
    if not any('"""' in line or "'''" in line for line in rest):
        return sum(1 for line in rest if (code := line.strip()) and code[0] != "#")
    # A blank line within a text is code, which only the tokens tell; they take three times as long.
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documentation)


def _is_text(begin: list[ast.stmt]) -> bool:
    expression = begin[0].value if begin and isinstance(begin[0], ast.Expr) else None
    return isinstance(expression, ast.Constant) and isinstance(expression.value, str)


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines of docstrings."""
    found = set[int]()
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, _DOCUMENTED) and _is_text(node.body[:1]):
            found.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, block, ())
            left += inner if isinstance(inner, list) else ()
    return found
