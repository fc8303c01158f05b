"""Counts the Python calls of our four packages while something happens, in all threads."""

import dis
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent", "bot", "channels", "heartbeat")
# Frames of their own up to Python 3.11, and no calls.
_COMPREHENSIONS = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


@dataclass(frozen=True, slots=True, order=True)
class Function:
    """A function of ours."""

    # Its file, from the root of the project on.
    file: str
    # Its name within the file, with those of the classes and functions around it.
    name: str

    @property
    def package(self) -> str:
        """The package at the top."""
        return self.file.partition("/")[0]


@dataclass
class Trace:
    """What was called, in order."""

    # The function that was called, and the one of ours that it was called from: None where a task, a thread or a
    # callback begins.
    calls: list[tuple[Function, Function | None]] = field(default_factory=list)
    # The package of each call that a profiler would count: the same, coroutines and generators that go on after a
    # pause, comprehensions, and calls of what is written in C.
    profiled: list[str] = field(default_factory=list)

    def functions(self) -> Counter[Function]:
        """How often each function was called."""
        return Counter(function for function, _ in self.calls)

    def files(self) -> Counter[str]:
        """How many calls went into each file."""
        return Counter(function.file for function, _ in self.calls)

    def packages(self) -> Counter[str]:
        """How many calls went into each package."""
        return Counter(function.package for function, _ in self.calls)

    def crossings(self) -> Counter[tuple[str, str]]:
        """How often one package called another."""
        pairs = ((caller.package, function.package) for function, caller in self.calls if caller is not None)
        return Counter((one, other) for one, other in pairs if one != other)


class Tracer:
    """Watches the thread that calls `watching`, and all threads that begin from then on.

    A call is a function whose body begins: a coroutine or generator that goes on after a pause is none, and no
    comprehension or generator expression. What the standard library makes of our classes, such as the `__init__` of a
    dataclass, has no file of ours and does not count.
    """

    def __init__(self) -> None:
        self._trace: Trace | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Make the interpreter tell of calls; nothing is kept before `begin`."""
        before = sys.getprofile()
        threading.setprofile(self._on_event)
        sys.setprofile(self._on_event)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)

    def begin(self) -> Trace:
        """Keep every call from here on in the trace that is returned."""
        self._trace = Trace()
        return self._trace

    def end(self) -> None:
        """Keep no more calls."""
        self._trace = None

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> None:
        trace = self._trace
        if trace is None or event not in ("call", "c_call"):
            return
        function = _function(frame.f_code)
        if function is None:
            return
        trace.profiled.append(function.package)
        if event == "call" and frame.f_lasti == _beginning(frame.f_code) and _is_call(frame.f_code):
            trace.calls.append((function, _caller(frame)))


@cache
def _function(code: CodeType) -> Function | None:
    """The function that a code belongs to; None for one that is not ours."""
    file = code.co_filename.removeprefix(f"{ROOT}/")
    return Function(file, code.co_qualname) if file.startswith(tuple(f"{one}/" for one in PACKAGES)) else None


def _is_call(code: CodeType) -> bool:
    return code.co_name not in _COMPREHENSIONS


@cache
def _beginning(code: CodeType) -> int:
    """Where the body begins: at its first RESUME, which for a coroutine is not its first instruction."""
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")


def _caller(frame: FrameType) -> Function | None:
    above = frame.f_back
    while above is not None:
        function = _function(above.f_code)
        if function is not None and _is_call(above.f_code):
            return function
        above = above.f_back
    return None
