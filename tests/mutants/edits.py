"""Edits of source by its syntax: they stand re-formatting, renamed locals and moved files.

`code("A.commit(B)", "A.commit()")`: an expression, or statements that follow each other. Single capital letters stand
for any expression, and for the same one wherever they occur again; `...` stands for any further arguments, elements or
statements. Without a second one, what is found is taken out of the list in which it stands.
`text("AND epoch=? AND {held}", "AND {held}")`: a part of a string, such as SQL, with what an f-string puts in as it is
written there; white space is any white space.
"""

import ast
import copy
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

PACKAGES = ("agent", "bot", "channels", "heartbeat")
_ANY = re.compile("[A-Z]")
_DEFINES = re.compile(r"^[ ]*(?:(?:(?:async )?def|class) (\w+)|(\w+) ?(?:: [^=\n]+)?=[ (])", re.MULTILINE)
_PASSED_OVER = {"ctx", "type_comment", "kind", "type_ignores"}

Make = Callable[[], None]
Bound = dict[str, Any]


class NotOnePlace(Exception):
    """What an edit names is not exactly once in its place, so that the fault has to be written anew."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes what; made by `code` and `text`."""

    kind: Literal["code", "text"]
    old: str
    new: str


def code(old: str, new: str = "") -> Edit:
    """Another expression or other statements."""
    return Edit("code", old, new)


def text(old: str, new: str) -> Edit:
    """Another part of a string."""
    return Edit("text", old, new)


def broken(root: Path, place: str, edit: Edit) -> tuple[str, str]:
    """Return the file of a place and its text with the edit made. Raises NotOnePlace.

    place: qualified name of a function or class, or of a constant of a module or class; or a file that is not Python.
    """
    if "/" in place:
        whole = (root / place).read_text(encoding="utf-8") if (root / place).exists() else ""
        _one(whole.count(edit.old), place, edit)
        return place, whole.replace(edit.old, edit.new)
    found = list(_found(root, place, edit))
    _one(len(found), place, edit)
    (file, at), *_ = found
    tree = copy.deepcopy(_tree(root / file))
    nodes = [node for name, node in _named(tree, "") if name == place]
    [make for node in nodes for make in _ways(node, edit)][at]()
    return file, ast.unparse(ast.fix_missing_locations(tree))


def check(root: Path, place: str, edit: Edit) -> None:
    """Raise NotOnePlace unless the edit can be made."""
    if "/" in place:
        broken(root, place, edit)
    else:
        _one(len(list(_found(root, place, edit))), place, edit)


def _one(count: int, place: str, edit: Edit) -> None:
    if count != 1:
        raise NotOnePlace(f"{edit.kind} {edit.old!r} is {count} times in {place}, the fault has to be written anew")


def _found(root: Path, place: str, edit: Edit) -> Iterator[tuple[str, int]]:
    """Yield where an edit can be made: the file, and the how manieth way of the place there it is."""
    defined = _defined(root)
    for file in sorted(set.intersection(*(defined.get(name, set()) for name in place.split(".")))):
        nodes = _nodes(root / file).get(place, [])
        yield from ((file, at) for at, _ in enumerate(make for node in nodes for make in _ways(node, edit)))


@functools.cache
def _defined(root: Path) -> dict[str, set[str]]:
    """Files that define a name, without what they mean by it."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            file = str(path.relative_to(root))
            for function, constant in _DEFINES.findall(path.read_text(encoding="utf-8")):
                found[function or constant].add(file)
    return found


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def _nodes(path: Path) -> dict[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = defaultdict(list)
    for name, node in _named(_tree(path), ""):
        found[name].append(node)
    return found


def _named(tree: ast.AST, above: str, in_function: bool = False) -> Iterator[tuple[str, ast.AST]]:
    """Yield functions, classes, and constants outside functions, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield above + name, node
                yield from _named(node, f"{above}{name}.", not isinstance(node, ast.ClassDef))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if not in_function:
                yield above + name, node
            case ast.stmt() | ast.ExceptHandler() | ast.match_case():
                yield from _named(node, above, in_function)


def _ways(place: ast.AST, edit: Edit) -> Iterator[Make]:
    """Yield for each occurrence in a place what makes the edit there."""
    if edit.kind == "text":
        yield from _texts(place, edit)
        return
    old, new = _parsed(edit.old), _parsed(edit.new) if edit.new else []
    if any(isinstance(one, ast.stmt) for one in (*old, *new)):
        yield from _statements(place, [_statement(one) for one in old], [_statement(one) for one in new])
    else:
        yield from _expressions(place, old[0], new)


def _parsed(source: str) -> list[Any]:
    match ast.parse(source).body:
        case [ast.Expr(value)]:
            return [value]  # an element with a star among them, such as *("read", "write")
        case statements:
            return list(statements)


def _statement(node: ast.AST) -> ast.AST:
    return ast.Expr(node) if isinstance(node, ast.expr) else node


def _texts(place: ast.AST, edit: Edit) -> Iterator[Make]:
    wanted = re.compile(r"\s+".join(map(re.escape, edit.old.split())))
    # documentation is no string of the program; parts of an f-string belong to it
    passed = {id(node.value) for node in ast.walk(place) if isinstance(node, ast.Expr)}
    passed |= {id(part) for node in ast.walk(place) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(place):
        match node:
            case ast.Constant(value=str(whole)) if id(node) not in passed:
                for hit in wanted.finditer(whole):
                    yield functools.partial(
                        setattr, node, "value", whole[: hit.start()] + edit.new + whole[hit.end() :]
                    )
            case ast.JoinedStr(values=parts):
                written = [str(part.value) if isinstance(part, ast.Constant) else _put_in(part) for part in parts]
                whole = "".join(written)
                known = {
                    name: part for name, part in zip(written, parts, strict=True) if not isinstance(part, ast.Constant)
                }
                for hit in wanted.finditer(whole):
                    changed = whole[: hit.start()] + edit.new + whole[hit.end() :]
                    yield functools.partial(setattr, node, "values", list(_joined(changed, known)))


def _put_in(part: ast.expr) -> str:
    assert isinstance(part, ast.FormattedValue)
    return f"{{{ast.unparse(part.value)}}}"


def _joined(whole: str, known: dict[str, ast.expr]) -> Iterator[ast.expr]:
    """Yield the parts of an f-string again, from its text and what was put in."""
    names = "|".join(map(re.escape, known))
    for piece in re.split(f"({names})", whole) if known else [whole]:
        if piece:
            yield known.get(piece) or ast.Constant(piece)


def _lists(place: ast.AST) -> Iterator[list[Any]]:
    for node in ast.walk(place):
        yield from (value for _, value in ast.iter_fields(node) if isinstance(value, list))


def _statements(place: ast.AST, old: list[ast.AST], new: list[ast.AST]) -> Iterator[Make]:
    for body in _lists(place):
        if not body or not isinstance(body[0], ast.stmt):
            continue
        for at in range(len(body) - len(old) + 1):
            bound: Bound = {}
            if all(_matches(one, body[at + number], bound) for number, one in enumerate(old)):
                yield functools.partial(_replace, body, at, at + len(old), new or [ast.Pass()], bound)


def _expressions(place: ast.AST, old: ast.AST, new: list[ast.AST]) -> Iterator[Make]:
    for node in ast.walk(place):
        for name, value in ast.iter_fields(node):
            bound: Bound = {}
            if isinstance(value, list):
                for at, one in enumerate(value):
                    bound = {}
                    if isinstance(one, ast.expr) and _matches(old, one, bound):
                        yield functools.partial(_replace, value, at, at + 1, new, bound)
            elif isinstance(value, ast.expr) and _matches(old, value, bound):
                if new:
                    yield functools.partial(_set, node, name, new[0], bound)
                elif isinstance(node, ast.Expr):
                    yield functools.partial(_set, node, name, ast.Constant(None), bound)


def _replace(body: list[Any], begin: int, end: int, new: list[ast.AST], bound: Bound) -> None:
    body[begin:end] = [_filled(copy.deepcopy(one), bound) for one in new]


def _set(node: ast.AST, name: str, new: ast.AST, bound: Bound) -> None:
    setattr(node, name, _filled(copy.deepcopy(new), bound))


def _matches(old: Any, node: Any, bound: Bound) -> bool:
    if isinstance(old, ast.Name) and _ANY.fullmatch(old.id):
        known = bound.setdefault(old.id, node)
        return isinstance(node, ast.expr) and ast.dump(_loaded(known)) == ast.dump(_loaded(node))
    if isinstance(old, ast.Call) and isinstance(node, ast.Call) and any(map(_is_rest, old.args)):
        return _matches(old.func, node.func, bound) and _matches_call(old, node, bound)
    if isinstance(old, list):
        return isinstance(node, list) and _match_list(old, node, bound)
    if not isinstance(old, ast.AST):
        return type(old) is type(node) and bool(old == node)
    return type(old) is type(node) and all(
        _matches(getattr(old, name, None), getattr(node, name, None), bound)
        for name in old._fields
        if name not in _PASSED_OVER
    )


def _match_list(old: list[Any], node: list[Any], bound: Bound) -> bool:
    rest = [at for at, one in enumerate(old) if _is_rest(one)]
    if not rest:
        return len(old) == len(node) and all(map(functools.partial(_matches, bound=bound), old, node))
    begin, after = rest[0], len(old) - rest[0] - 1
    if len(node) < begin + after:
        return False
    end = len(node) - after
    bound["..."] = node[begin:end]
    return all(
        _matches(one, other, bound)
        for one, other in zip(old[:begin] + old[begin + 1 :], node[:begin] + node[end:], strict=True)
    )


def _matches_call(old: ast.Call, node: ast.Call, bound: Bound) -> bool:
    """Arguments by position as a list, those by name in any order; `...` stands for the others of both kinds."""
    given = {one.arg: one for one in node.keywords}
    bound["...="] = [one for one in node.keywords if one.arg not in {wanted.arg for wanted in old.keywords}]
    return _match_list(old.args, node.args, bound) and all(
        one.arg in given and _matches(one.value, given[one.arg].value, bound) for one in old.keywords
    )


def _is_rest(node: Any) -> bool:
    value = node.value if isinstance(node, ast.Expr) else node
    return isinstance(value, ast.Constant) and value.value is ...


def _loaded(node: ast.AST) -> ast.AST:
    """The same expression, wherever it is assigned to."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(node.value, node.attr, ast.Load())
    return node


class _Filling(ast.NodeTransformer):
    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not _ANY.fullmatch(node.id) or node.id not in self._bound:
            return node
        found: ast.AST = copy.deepcopy(self._bound[node.id])
        if isinstance(found, ast.Name | ast.Attribute):
            found.ctx = node.ctx
        return found

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if any(map(_is_rest, node.args)):
            node.keywords = [*node.keywords, *copy.deepcopy(self._bound.get("...=", []))]
        return self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and "..." in self._bound:
                value[:] = [
                    one
                    for given in value
                    for one in (copy.deepcopy(self._bound["..."]) if _is_rest(given) else [given])
                ]
        return super().generic_visit(node)


def _filled(new: Any, bound: Bound) -> Any:
    return ast.Expr(_Filling(bound).visit(new.value)) if isinstance(new, ast.Expr) else _Filling(bound).visit(new)
