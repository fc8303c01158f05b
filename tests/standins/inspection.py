"""Stand-ins answer for their clients when a test ends, whether the test thinks of it or not.

A stand-in reports itself with `made`; the fixture of tests/conftest.py puts `inspected` around every test. A test that
wants a violation says so to the stand-in, with `tolerate`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_open: list[list["StandIn"]] = []


class StandIn(Protocol):
    """What can be asked whether all was well."""

    def check(self) -> None:
        """Raise AssertionError for each violation that the test does not tolerate."""


def made(stand_in: StandIn) -> None:
    """A stand-in begins its life; outside of tests (in a benchmark) nobody asks it."""
    if _open:
        _open[-1].append(stand_in)


@contextmanager
def inspected() -> Iterator[list[StandIn]]:
    """Ask every stand-in that is made inside, at the end; yields them. An error inside is enough by itself."""
    stand_ins: list[StandIn] = []
    _open.append(stand_ins)
    try:
        yield stand_ins
    finally:
        _open.pop()
    wrong = [f"{type(stand_in).__name__}: {words}" for stand_in in stand_ins if (words := _complaint(stand_in))]
    assert not wrong, "\n".join(wrong)


def _complaint(stand_in: StandIn) -> str:
    try:
        stand_in.check()
    except AssertionError as error:
        return str(error)
    return ""
