"""Faults that a test orders of the stand-in of a platform, and what becomes of them."""

import asyncio
import contextlib
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.standins.ledger import Violation


@dataclass(slots=True, eq=False)
class Fault:
    """One ordered fault; `reached` is set when a call is held, `release()` lets it go on.

    name: of the calls that it meets; None is a silence, which meets every call until it is released. place: the
    conversation that they must go to, if that matters. answer: what is said instead, a status or a refusal.
    """

    name: str | None
    answer: Any = None
    drop: bool = False
    times: int = 1
    after_apply: bool = False
    place: object = None
    gate: asyncio.Event | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    fired: int = 0

    def release(self) -> None:
        if self.gate is not None:
            self.gate.set()

    @contextlib.contextmanager
    def spoiling(self, refusal: type[Exception]) -> Iterator[None]:
        """Around a call that is carried out, and whose answer is spoiled.

        One that is refused is no such call, but silence hides that too.
        """
        try:
            yield
        except refusal:
            if self.name is not None:
                self.fired -= 1
                raise


class Faults:
    """All that were ordered. rule: broken by those that did not happen. meets: whether a name means a call."""

    def __init__(self, rule: StrEnum, meets: Callable[[str, str], bool] = operator.eq) -> None:
        self.ordered: list[Fault] = []
        self._rule = rule
        self._meets = meets

    def order(self, name: str | None, **more: Any) -> Fault:
        """more: fields of the fault."""
        fault = Fault(name, **more)
        self.ordered.append(fault)
        return fault

    def take(self, call: str, place: object = None) -> Fault | None:
        """The next fault of a call; it counts as fired."""
        for fault in self.ordered:
            meets = fault.name is not None and self._meets(fault.name, call)
            if meets and fault.place in (None, place) and fault.fired < fault.times:
                fault.fired += 1
                return fault
        return None

    def silence(self) -> Fault | None:
        """The silence that holds now; it counts as fired."""
        for fault in self.ordered:
            if fault.name is None and fault.gate is not None and not fault.gate.is_set():
                fault.fired += 1
                return fault
        return None

    def release_all(self) -> None:
        for fault in self.ordered:
            fault.release()

    def unfired(self) -> list[Violation]:
        return [
            Violation(self._rule, f"{fault.name or 'silence'}: {fault.fired} of {fault.times}")
            for fault in self.ordered
            if fault.fired < fault.times
        ]
