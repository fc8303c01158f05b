"""Makes small faults by rule, in functions of any kind: decorated ones, methods and nested ones as well.

A mutant is named by its function, what is done, and to which source text, so that it is the same one wherever the
function moves inside its file and however it is formatted.
"""

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("agent", "bot", "channels", "heartbeat")
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_LENGTH = 100
"""Characters of the source text in a name."""

Put = Callable[[ast.AST], None]
"""Put another node into the place of one."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small fault; `function` is file and qualified name, as in `agent/loop.py:Loop.run`."""

    function: str
    change: str

    @property
    def file(self) -> str:
        """Path in the checkout."""
        return self.function.partition(":")[0]


def in_file(root: Path, file: str) -> list[Mutant]:
    """Return all mutants of a file, in the order of its lines."""
    return [mutant for mutant, _ in _all(file, ast.parse((root / file).read_text(encoding="utf-8")))]


def apply(root: Path, mutant: Mutant) -> ast.Module:
    """Return its file's tree with the mutant made. Raises LookupError when the file has no such mutant."""
    tree = ast.parse((root / mutant.file).read_text(encoding="utf-8"))
    for found, make in _all(mutant.file, tree):
        if found == mutant:
            make()
            return ast.fix_missing_locations(tree)
    raise LookupError(f"{mutant.function} has no: {mutant.change}")


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield the functions and methods of a module with their qualified names; nested ones belong to theirs."""

    def walk(node: ast.AST, above: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                yield above + child.name, child
            else:
                yield from walk(child, f"{above}{child.name}." if isinstance(child, ast.ClassDef) else above)

    return walk(tree, "")


def _all(file: str, tree: ast.Module) -> Iterator[tuple[Mutant, Callable[[], None]]]:
    for name, function in functions(tree):
        numbers: Counter[str] = Counter()
        for node, put in list(_slots(function)):
            for what, new in _changes(node):
                text = " ".join(ast.unparse(node).split())
                change = f"{what} in: {text[:_LENGTH]}"
                numbers[change] += 1
                number = f" (no. {numbers[change]})" if numbers[change] > 1 else ""
                yield Mutant(f"{file}:{name}", change + number), lambda put=put, new=new: put(new())  # type: ignore[misc]


def _slots(node: ast.AST) -> Iterator[tuple[ast.AST, Put]]:
    """Yield each node of a function's body with what puts another into its place; no annotations, no docstring."""
    for name, value in ast.iter_fields(node):
        if name in ("args", "decorator_list", "returns", "annotation", "type_params") and not isinstance(
            node, ast.Call
        ):
            continue
        if isinstance(value, ast.AST):
            yield value, lambda new, name=name: setattr(node, name, new)  # type: ignore[misc]
            yield from _slots(value)
        elif isinstance(value, list):
            for at, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield child, lambda new, value=value, at=at: value.__setitem__(at, new)  # type: ignore[misc]
                    yield from _slots(child)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], ast.AST]]]:
    """Yield what can be done to a node: in words, and what makes the new one."""
    match node:
        case ast.Expr(value=ast.Constant() | ast.Yield()):
            pass
        case (
            ast.Expr()
            | ast.AugAssign()
            | ast.Delete()
            | ast.Raise()
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
        ):
            yield "drop the statement", ast.Pass
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return None", lambda: ast.Return(ast.Constant(None))
        case ast.BoolOp(op=op, values=values):
            for at in range(len(values)):
                yield f"drop operand {at + 1}", lambda at=at: _joined(op, values[:at] + values[at + 1 :])  # type: ignore[misc]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "drop not", lambda: operand
        case ast.Compare(ops=[op]):
            yield "compare otherwise", lambda: ast.Compare(node.left, [_COMPARED[type(op)]()], node.comparators)
        case ast.Call(keywords=keywords):
            for at, keyword in enumerate(keywords):
                if keyword.arg:
                    yield (
                        f"drop argument {keyword.arg}",
                        lambda at=at: ast.Call(node.func, node.args, keywords[:at] + keywords[at + 1 :]),  # type: ignore[misc]
                    )
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            yield "one more", lambda: ast.Constant(number + 1)
        case ast.If() | ast.IfExp() | ast.While():
            for constant in (True, False):
                if not (constant and isinstance(node, ast.While)):
                    yield f"condition {constant}", lambda constant=constant: _with_test(node, constant)  # type: ignore[misc]
        case ast.comprehension(ifs=[_, *_]):
            yield "no condition", lambda: ast.comprehension(node.target, node.iter, [], node.is_async)


def _joined(op: ast.boolop, values: list[ast.expr]) -> ast.expr:
    return values[0] if len(values) == 1 else ast.BoolOp(op, values)


def _with_test(node: ast.AST, value: bool) -> ast.AST:
    made = copy.copy(node)
    made.__dict__["test"] = ast.Constant(value)
    return made
