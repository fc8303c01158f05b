"""Notices what holds the event loop: a callback in which the product takes long, by its thread's processor time.

So long are 50 ms where STALLS is set in the environment, and else half a second: a machine that many programs share
is slower at times than any measure of it says.

Measured is each turn of the loop, from one `select` to the next (`tests/counts/tally.py`). A thread looks every 10 ms
at the stack of a turn that lasts: the time belongs to the innermost function of the product, or of the tests, whose
callback it is. Left out are the time of the collector of garbage, imports, and what tests and stand-ins do. On a slow
machine, or at a moment at which it is slow, more is allowed.
"""

import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from pathlib import Path
from time import thread_time
from types import CodeType, FrameType
from typing import NamedTuple

SHORT = 0.05
MOST = SHORT if os.environ.get("STALLS") else 10 * SHORT
"""Seconds of processor time that one callback may take."""
_EVERY = 0.01
# Seconds that `_work` takes on a machine on which nothing more is allowed.
_USUAL = 0.004
# How much more must have been taken where other callbacks of the turn may have had a part of it.
_SURELY = 3
_ROOT = Path(__file__).parent.parent
_HOUSES = tuple(f"{_ROOT / house}{os.sep}" for house in ("agent", "bot", "channels", "heartbeat"))
_TESTS = f"{_ROOT / 'tests'}{os.sep}"
_WAITS = CO_COROUTINE | CO_ASYNC_GENERATOR
# Functions that may take longer, with the reason.
ALLOWED: dict[str, str] = {}


class _Sample(NamedTuple):
    """What ran at a moment.

    spent: processor time of the thread. number: of the callback in its turn of the loop. call: the outermost frame of
    the product in it, which a test or the loop has called.
    """

    turn: int
    spent: float
    number: int
    place: str
    call: FrameType | None


class Watch:
    """Measures the turns of the loop of one thread. said: a line for each callback that took too long."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self._turn = 0
        self._began = -1.0  # processor time of the thread when a turn began; less than 0 while the loop waits
        self._samples: list[_Sample] = []
        self._collecting = self._collected = 0.0
        self._usual = 1.0

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        """Look at the loops of the present thread."""
        ended, ident = threading.Event(), threading.get_ident()
        clock = time.pthread_getcpuclockid(ident)
        self._usual = slowness()

        def look() -> None:
            while not ended.wait(_EVERY):
                turn, began = self._turn, self._began
                if began < 0 or (spent := time.clock_gettime(clock)) - began < _EVERY:
                    continue
                number, place, call = where(sys._current_frames().get(ident))
                if turn == self._turn and number >= 0:
                    self._samples.append(_Sample(turn, spent, number, place, call))

        gc.callbacks.append(self._collector)
        thread = threading.Thread(target=look, name="stalls", daemon=True)
        thread.start()
        try:
            yield self.said
        finally:
            ended.set()
            thread.join()
            gc.callbacks.remove(self._collector)

    def begin(self) -> None:
        """The loop has something to do."""
        self._collected = 0.0
        self._began = thread_time()

    def end(self) -> None:
        """The loop has nothing more to do in this turn."""
        began, self._began = self._began, -1.0
        self._turn += 1
        if self._samples:
            samples, self._samples = self._samples, []
            if began >= 0 and thread_time() - began - self._collected > MOST:
                self._judge(began, [one for one in samples if one.turn == self._turn - 1])

    def _judge(self, began: float, samples: list[_Sample]) -> None:
        before, taken = _Sample(0, began, 0, "", None), dict[tuple[int, FrameType | None], float]()
        for sample in samples:
            sure = sample.number == before.number and before.call in (None, sample.call)
            key, took = (sample.number, sample.call), sample.spent - before.spent
            taken[key] = taken.get(key, 0) + took / (1 if sure else _SURELY)
            before = sample
        for key, took in taken.items():
            places = [one.place for one in samples if (one.number, one.call) == key]
            place = max(places, key=places.count)
            took -= self._collected
            if not place or place.partition(" ")[0] in ALLOWED or took < MOST * max(1, self._usual):
                continue
            if took > MOST * slowness():
                self.said.append(f"{place} held the event loop for {took * 1000:.0f} ms")

    def _collector(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collecting = thread_time()
        else:
            self._collected += thread_time() - self._collecting


WATCH = Watch()
"""The one of this process."""


def slowness() -> float:
    """Return how much longer this machine takes than a usual one at this moment."""

    def work() -> float:
        begin = thread_time()
        sum(number % 7 for number in range(60_000))
        return thread_time() - begin

    return min(work() for _ in range(3)) / _USUAL


def where(frame: FrameType | None) -> tuple[int, str, FrameType | None]:
    """Return of a stack the number of the callback that it is in, and the innermost and the outermost of the product.

    The innermost is named, empty where it is not the product that works. The number is less than 0 outside of a loop.
    """
    place: str | None = None
    inner: CodeType | None = None
    call, is_called = None, False
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_run_once" and code.co_filename.endswith("base_events.py"):
            return int(frame.f_locals.get("i", -1)), place or "", call
        if place is None:
            if code.co_filename.startswith(_HOUSES):
                place = f"{code.co_qualname} ({Path(code.co_filename).relative_to(_ROOT)}:{frame.f_lineno})"
            elif code.co_filename.startswith((_TESTS, "<frozen importlib")):
                place = ""
        elif code.co_filename.startswith(_TESTS) and inner and not inner.co_flags & _WAITS:
            place = ""  # a test calls it, perhaps often
        is_called = is_called or code.co_filename.startswith(_TESTS)
        call = frame if not is_called and code.co_filename.startswith(_HOUSES) else call
        frame, inner = frame.f_back, code
    return -1, "", None
