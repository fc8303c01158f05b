"""Notices what holds the event loop: a step of the product that takes more than 50 ms of its thread's processor time.

It is asked for with STALLS=all, on an idle machine: a busy one takes longer for the same.

The time of the collector of garbage is left out, and so are steps that import something, which is once in a
process. Steps of tests and stand-ins are theirs.
"""

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import thread_time
from types import CodeType
from typing import Any

import pytest

MOST = 0.05
_ROOT = Path(__file__).parent.parent
_HOUSES = tuple(f"{_ROOT / house}/" for house in ("agent", "bot", "channels", "heartbeat"))
# Functions that may take longer, with the reason.
ALLOWED: dict[str, str] = {}


@contextmanager
def watched() -> Iterator[list[str]]:
    """Yield a list that gets a line for each step that took too long."""
    said, run, collecting, begun = list[str](), asyncio.Handle._run, [0.0], [0.0]

    def timed(handle: asyncio.Handle) -> None:
        there, collected, start = len(sys.modules), collecting[0], thread_time()
        run(handle)
        took = thread_time() - start
        if took > MOST and took - (collecting[0] - collected) > MOST and there == len(sys.modules):
            code = _code(handle)
            if code is not None and code.co_filename.startswith(_HOUSES) and code.co_qualname not in ALLOWED:
                place = f"{Path(code.co_filename).relative_to(_ROOT)}:{code.co_firstlineno}"
                said.append(f"{code.co_qualname} ({place}) held the event loop for {took * 1000:.0f} ms")

    def collector(phase: str, _: object) -> None:
        if phase == "start":
            begun[0] = thread_time()
        else:
            collecting[0] += thread_time() - begun[0]

    gc.callbacks.append(collector)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", timed)
            yield said
    finally:
        gc.callbacks.remove(collector)


def _code(handle: Any) -> CodeType | None:
    """Return the code of what a step ran: the coroutine of a task, or a callback."""
    callback = handle._callback
    callback = getattr(callback, "func", callback)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return getattr(owner.get_coro(), "cr_code", None)
    return getattr(callback, "__code__", None)
