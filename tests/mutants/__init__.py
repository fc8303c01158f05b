"""Deliberate faults, and the tests that must notice each: a suite that stays green under one of them proves nothing.

`make mutants` makes those that no machine makes, one at a time in a copy of the checkout, and runs the tests named.
Each module with `FAULTS` has a subject. `make mutants MODULES=…` lets a machine make small ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from tests.mutants.edits import Edit, code, text

__all__ = ["Fault", "code", "every", "fault", "text"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: the edit is made in its place, and then `tests` fail."""

    # Area and words, as in `store/synchronous-off`.
    name: str
    # A function, a class or a constant of ours by its qualified name, wherever it lies; a file that is not Python.
    place: str
    edit: Edit
    # Node ids, few and fast; of each at least one case must fail.
    tests: tuple[str, ...]


def fault(name: str, place: str, edit: Edit, *tests: str) -> Fault:
    """Return a fault of these tests."""
    return Fault(name, place, edit, tests)


def every() -> tuple[Fault, ...]:
    """All faults, subject by subject."""

    def of_all() -> Iterator[Fault]:
        for name in sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_")):
            yield from getattr(import_module(f"{__name__}.{name}"), "FAULTS", ())

    return tuple(of_all())
