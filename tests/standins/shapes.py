"""Shapes of JSON requests: small checks that say where a value is not what the documentation allows.

The rules of the model stand-ins are built from these; each provider words the `Wrong` in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

Path = tuple[str | int, ...]
Check = Callable[[object, Path], None]
Fault = Literal["missing", "extra", "type", "value", "empty", "long"]


class Wrong(Exception):
    """A value at `path` breaks its shape; `fault` is the kind of mistake, the text says what is expected."""

    def __init__(self, path: Path, fault: Fault, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path
        self.fault = fault
        self.text = text


def anything(value: object, path: Path) -> None:
    """Accept whatever stands there."""


def string(pattern: str | None = None, longest: int | None = None, shortest: int = 0) -> Check:
    compiled = re.compile(pattern) if pattern else None

    def check(value: object, path: Path) -> None:
        if not isinstance(value, str):
            raise Wrong(path, "type", "Input should be a valid string")
        if len(value) < shortest:
            raise Wrong(path, "value", f"String should have at least {shortest} characters")
        if longest is not None and len(value) > longest:
            raise Wrong(path, "long", f"String should have at most {longest} characters")
        if compiled and not compiled.fullmatch(value):
            raise Wrong(path, "value", f"String should match pattern '{pattern}'")

    return check


def number(low: float | None = None, high: float | None = None, *, whole: bool = False) -> Check:
    kind = "integer" if whole else "number"

    def check(value: object, path: Path) -> None:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise Wrong(path, "type", f"Input should be a valid {kind}")
        if low is not None and value < low:
            raise Wrong(path, "value", f"Input should be greater than or equal to {low}")
        if high is not None and value > high:
            raise Wrong(path, "value", f"Input should be less than or equal to {high}")

    return check


def boolean(value: object, path: Path) -> None:
    if not isinstance(value, bool):
        raise Wrong(path, "type", "Input should be a valid boolean")


def one_of(*allowed: str) -> Check:
    def check(value: object, path: Path) -> None:
        if value not in allowed:
            raise Wrong(path, "value", f"Input should be {' or '.join(map(repr, allowed))}")

    return check


def nullable(inner: Check) -> Check:
    def check(value: object, path: Path) -> None:
        if value is not None:
            inner(value, path)

    return check


def array(inner: Check, *, shortest: int = 0, longest: int | None = None) -> Check:
    def check(value: object, path: Path) -> None:
        if not isinstance(value, list):
            raise Wrong(path, "type", "Input should be a valid list")
        if len(value) < shortest:
            raise Wrong(path, "empty", f"List should have at least {shortest} item")
        if longest is not None and len(value) > longest:
            raise Wrong(path, "long", f"List should have at most {longest} items")
        for index, item in enumerate(value):
            inner(item, (*path, index))

    return check


def record(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None, *, more: bool = False) -> Check:
    """An object with these fields and, unless `more`, no others."""
    known = {**required, **(optional or {})}

    def check(value: object, path: Path) -> None:
        if not isinstance(value, dict):
            raise Wrong(path, "type", "Input should be a valid dictionary")
        for name in required:
            if name not in value:
                raise Wrong((*path, name), "missing", "Field required")
        for name, item in value.items():
            if name in known:
                known[name](item, (*path, name))
            elif not more:
                raise Wrong((*path, name), "extra", "Extra inputs are not permitted")

    return check


def tagged(field: str, shapes: Mapping[str, Check], default: str | None = None) -> Check:
    """An object whose `field` says which of the shapes it has."""

    def check(value: object, path: Path) -> None:
        if not isinstance(value, dict):
            raise Wrong(path, "type", "Input should be a valid dictionary")
        tag = value.get(field) or default
        if tag is None:
            raise Wrong((*path, field), "missing", "Field required")
        if not isinstance(tag, str) or tag not in shapes:
            names = ", ".join(map(repr, shapes))
            raise Wrong((*path, field), "value", f"Input tag {tag!r} does not match any of the expected tags: {names}")
        shapes[tag](value, path)

    return check


def text_or(inner: Check) -> Check:
    """A string, or what `inner` accepts."""

    def check(value: object, path: Path) -> None:
        if not isinstance(value, str):
            inner(value, path)

    return check
