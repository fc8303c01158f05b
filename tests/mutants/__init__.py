"""Deliberate faults, and the tests that must notice each: a suite that stays green under one of them proves nothing.

`make mutants` puts them one at a time into a copy of the checkout and runs the tests named. Each area has a module
with `FAULTS`. Not collected by pytest.
"""

from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: in `file`, `text` (which stands there exactly once) becomes `instead`, and then `tests` fail.

    name: area and words, `store/synchronous-off`. tests: node ids, few and fast; of each at least one case must fail.
    """

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]


def every() -> tuple[Fault, ...]:
    """All faults, area by area."""
    areas = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    return tuple(fault for area in areas for fault in import_module(f"{__name__}.{area}").FAULTS)
