"""What holds the event loop is noticed, and what does not is not."""

import asyncio
import types
from pathlib import Path
from time import thread_time

import pytest

from tests.stalls import SHORT, WATCH

_PRODUCT = str(Path(__file__).parent.parent / "bot" / "busy.py")
# Until it was looked at often enough, which depends on the machine.
_BUSY = "def busy(least=0.1):\n start = thread_time()\n while thread_time() - start < least or len(seen()) < 12: pass"


@pytest.fixture(autouse=True)
def _strictly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.stalls.MOST", SHORT)


def made(source: str, path: str = _PRODUCT) -> types.FunctionType:
    """Make a function as if it stood in a file."""
    names = {"asyncio": asyncio, "thread_time": thread_time, "seen": lambda: WATCH._samples}
    exec(compile(source, path, "exec"), names)
    busy = names["busy"]
    assert isinstance(busy, types.FunctionType)
    return busy


@pytest.mark.parametrize("source", [_BUSY, f"async {_BUSY}"])
async def test_a_long_callback_of_the_product_is_named(long_steps: list[str], source: str) -> None:
    busy = made(source)
    if asyncio.iscoroutinefunction(busy):
        await asyncio.create_task(busy())
    else:
        asyncio.get_running_loop().call_soon(busy)
    for _ in range(3):
        await asyncio.sleep(0)
    assert ["busy (bot/busy.py:" in said for said in long_steps] == [True]
    long_steps.clear()


async def test_short_callbacks_and_those_of_tests_are_not(long_steps: list[str]) -> None:
    short = made("def busy():\n start = thread_time()\n while thread_time() - start < 0.002: pass")
    for work in (*[short] * 50, made(_BUSY, __file__)):
        asyncio.get_running_loop().call_soon(work)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert long_steps == []
