"""Counters of the process in which tests run.

Counted are calls of this process: what a started program or a forked process does is not. An audit hook cannot be
removed again, so `install` adds one for the whole process.
"""

import asyncio
import multiprocessing.popen_forkserver
import os
import selectors
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.stalls import WATCH

COLUMNS = ("services", "programs", "forks", "files", "databases")
"""Order of the numbers in each list of counts."""
_SERVICES, _PROGRAMS, _FORKS, _FILES, _DATABASES = range(len(COLUMNS))

_EVENTS = {
    "subprocess.Popen": _PROGRAMS,
    "os.exec": _PROGRAMS,
    "os.posix_spawn": _PROGRAMS,
    "os.spawn": _PROGRAMS,
    "os.system": _PROGRAMS,
    "os.fork": _FORKS,
    "os.forkpty": _FORKS,
    "sqlite3.connect": _DATABASES,
}

SHORTEST = 0.25
"""Seconds of a timer that counts; shorter ones are polls, which a busy machine has more of."""
# The loop's own lag is measured every second for as long as a service runs, the memory while commands run.
_TICKS = ("bot.gateway.loop_lag", "agent.tools.low_memory")

Numbers = list[int]


def zero() -> Numbers:
    """Return counts of nothing."""
    return [0] * len(COLUMNS)


class Tally:
    """Counts by the id of a test, and by a fixture that several tests share.

    tests: of each test. shared: of fixtures that are set up once for a module or a session, in each worker that needs
    them. current: where the hooks count at this moment. asleep: seconds of timers that ran out in the current test.
    """

    def __init__(self) -> None:
        self.tests: dict[str, Numbers] = {}
        self.shared: dict[str, Numbers] = {}
        self.current = zero()
        self.asleep = 0.0
        self._installed = False
        # Seconds of silence in all, and what they were when something was last heard or counted.
        self._idle = 0.0
        self._heard = 0.0

    def install(self) -> None:
        """Begin to count in this process."""
        if self._installed:
            return
        self._installed = True
        sys.addaudithook(self._hook())
        self._count_timers(threading.get_ident())
        self._wrap(multiprocessing.popen_forkserver.Popen, "__init__", _FORKS)

    def count_services(self) -> None:
        """Count starts of the service, once its module is imported; it is too large to import it for nothing."""
        if (module := sys.modules.get("bot.service")) and not hasattr(module.Service.start, "__wrapped__"):
            self._wrap(module.Service, "start", _SERVICES)

    def _wrap(self, owner: type, name: str, column: int) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            self.current[column] += 1
            return method(*given, **named)

        counted.__wrapped__ = method  # type: ignore[attr-defined]
        setattr(owner, name, counted)

    def _hook(self) -> Callable[[str, tuple[Any, ...]], None]:
        # Those that tests make. What is read of the system, the libraries and the product is often kept in memory, so
        # that it counts in the first test of each worker.
        temporary = f"{tempfile.gettempdir()}{os.sep}"
        find = _EVENTS.get

        def hook(event: str, given: tuple[Any, ...]) -> None:
            if event == "open":
                path = given[0]
                if type(path) is not str:
                    if isinstance(path, int):
                        return
                    path = os.fsdecode(path)
                if path.startswith(temporary) or not path.startswith(os.sep):
                    self.current[_FILES] += 1
            elif (column := find(event)) is not None:
                self.current[column] += 1

        return hook

    def _count_timers(self, thread: int) -> None:
        """Count the seconds for which the loop of the tests had nothing to do until a timer ran out.

        Time between events would depend on the machine: a busy one lets everything wait. A timer that guards
        something is cancelled however slow the machine is, and only one that was really waited for runs out. One that
        runs out beside other work has cost nothing: what counts is the silence just before it. Where a test moves the
        loop's clock, none was waited for.
        """
        call_at = asyncio.BaseEventLoop.call_at
        select = selectors.DefaultSelector.select
        ident = threading.get_ident

        def selecting(selector: selectors.DefaultSelector, timeout: float | None = None) -> Any:
            if ident() != thread:
                return select(selector, timeout)
            WATCH.end()
            begin = time.monotonic()
            found = select(selector, timeout)
            WATCH.begin()
            if found:
                self._heard = self._idle
            elif timeout and timeout > 0:
                self._idle += min(time.monotonic() - begin, timeout)
            return found

        def counting(
            loop: asyncio.BaseEventLoop, when: float, callback: Callable[..., Any], *given: Any, **named: Any
        ) -> asyncio.TimerHandle:
            if when - loop.time() < SHORTEST or ident() != thread or getattr(callback, "__module__", "") in _TICKS:
                return call_at(loop, when, callback, *given, **named)
            idle = self._idle

            def run_out(*arguments: Any) -> object:
                self.asleep += self._idle - max(idle, self._heard)
                self._heard = self._idle
                return callback(*arguments)

            return call_at(loop, when, run_out, *given, **named)

        selectors.DefaultSelector.select = selecting  # type: ignore[method-assign, assignment]
        asyncio.BaseEventLoop.call_at = counting  # type: ignore[method-assign, assignment]


TALLY = Tally()
"""The one of this process."""
