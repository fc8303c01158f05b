"""Finds the functions of the product that take others' words, and makes what else they need to be called.

A function takes words if a parameter that is a text has one of the names of `TEXTS`. Methods are called on an object
that is made from the annotations of its class, coroutines are run up to their first wait.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from tests.pumps import HOUSES, modules

# Parameters that hold what others write.
TEXTS = {
    *("text", "words", "word", "markdown", "content", "source", "written", "beginning", "begun", "line", "name"),
    *("command", "label", "pattern", "arguments", "result", "details", "sentence", "typed", "given", "message"),
    *("value", "url", "address", "expression", "head", "title", "gap", "sent", "wanted", "said", "body"),
}


class NotMade(Exception):
    """There is no simple value of a type."""


def made(kind: Any, depth: int = 0) -> Any:
    """Return the simplest value of a type. Raises NotMade."""
    origin, members = get_origin(kind), get_args(kind)
    if kind is str or kind is Any or kind is object or isinstance(kind, TypeVar):
        return "a"
    if kind in (int, float, bool, bytes):
        return kind() if kind is bytes else kind(1)
    if kind in (None, NoneType):
        return None
    if origin in (Union, UnionType):
        return None if NoneType in members else made(members[0], depth)
    if origin is Literal:
        return members[0]
    if kind is re.Pattern or origin is re.Pattern:
        return re.compile("a")
    if kind is datetime:
        return datetime(2026, 11, 28, tzinfo=UTC)
    if getattr(kind, "__metadata__", None):
        return made(members[0], depth)
    kind = origin or kind
    if kind is Callable:
        return lambda *words, **_: words[0] if words else ""
    if not isinstance(kind, type) or depth > 5:
        raise NotMade(kind)
    if issubclass(kind, Path):
        return Path("/proc/nowhere")
    if issubclass(kind, Enum):
        return next(iter(kind))
    if issubclass(kind, Mapping):
        return {}
    if kind.__module__.partition(".")[0] not in HOUSES:
        if issubclass(kind, Iterable):
            return iter(()) if kind is Iterator else kind() if kind in (list, set, frozenset) else ()
        raise NotMade(kind)
    return _object(kind, depth)


def _object(kind: type, depth: int) -> Any:
    """Return an object of a class of the product."""
    if getattr(kind, "_is_protocol", False) or inspect.isabstract(kind):
        raise NotMade(kind)
    given = dict[str, Any]()
    with suppress(NameError):  # a name that only type checkers import
        if issubclass(kind, BaseModel):
            wanted = {name: field.annotation for name, field in kind.model_fields.items() if field.is_required()}
            return kind.model_construct(**{name: made(one, depth + 1) for name, one in wanted.items()})
        if is_dataclass(kind):
            hints = get_type_hints(kind)
            for field in fields(kind):
                if field.init and field.default is MISSING and field.default_factory is MISSING:
                    given[field.name] = made(hints[field.name], depth + 1)
        elif kind.__init__ is not object.__init__ or hasattr(kind, "_fields"):
            given = others(kind.__new__ if hasattr(kind, "_fields") else kind.__init__, ("self", "_cls"), depth + 1)
        with suppress(Exception):
            return kind(**given)
    raise NotMade(kind)


def others(function: Callable[..., Any], besides: Collection[str], depth: int = 0) -> dict[str, Any]:
    """Return values of the parameters that a function must be given. Raises NotMade."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError:
        raise NotMade(function) from None
    return {
        name: made(hints.get(name, object), depth)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
        and name not in besides
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }


def takers(left_out: tuple[str, ...]) -> Iterator[tuple[str, Callable[[str], object] | None]]:
    """Yield the places that take others' words, each with what calls it, None where that cannot be made."""
    for module, _ in modules():
        for name, one in vars(module).items():
            if getattr(one, "__module__", "") != module.__name__ or f"{module.__name__}.{name}".startswith(left_out):
                continue
            if inspect.isfunction(one):
                yield from _of(one, None, f"{module.__name__}.{name}")
            elif isinstance(one, type):
                for member, inner in vars(one).items():
                    function = inner.__func__ if isinstance(inner, classmethod | staticmethod) else inner
                    if inspect.isfunction(function) and not member.startswith("__"):
                        owner = None if isinstance(inner, staticmethod) else one
                        place = f"{module.__name__}.{name}.{member}"
                        if not place.startswith(left_out):
                            yield from _of(function, owner, place)


def _of(
    function: Callable[..., Any], owner: type | None, place: str
) -> Iterator[tuple[str, Callable[[str], object] | None]]:
    parameters = list(inspect.signature(function).parameters.values())[owner is not None :]
    texts = [one.name for one in parameters if one.name in TEXTS and one.annotation in (str, str | None)]
    if not texts:
        return
    try:
        first = [] if owner is None else [made(owner)]
        given = others(function, (*texts, *(("self", "cls") if owner else ())))
    except NotMade:
        yield place, None
        return

    def call(text: str) -> object:
        return finished(function(*first, **given | dict.fromkeys(texts, text)))

    yield place, call


def finished(result: Any) -> object:
    """Exhaust what yields, and run what waits up to its first wait."""
    if inspect.isgenerator(result):
        return [*result]
    if asyncio.iscoroutine(result):
        try:
            result.send(None)
        except StopIteration as end:
            return end.value
        finally:
            result.close()
    return result
