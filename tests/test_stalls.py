"""What holds the event loop is noticed, and what does not is not."""

import asyncio
import gc
import types
from pathlib import Path
from time import thread_time

import pytest

_PRODUCT = str(Path(__file__).parent.parent / "bot" / "busy.py")


def of_product(source: str) -> types.FunctionType:
    """Make a function as if it stood in the product."""
    names = {"asyncio": asyncio, "gc": gc, "thread_time": thread_time}
    exec(compile(source, _PRODUCT, "exec"), names)
    made = names["busy"]
    assert isinstance(made, types.FunctionType)
    return made


BUSY = "def busy(until=0.06):\n start = thread_time()\n while thread_time() - start < until: pass"


@pytest.mark.parametrize(
    ("source", "line"),
    [(BUSY, "busy (bot/busy.py:1) held the event loop for "), (f"async {BUSY}", "busy (bot/busy.py:1) held the event")],
)
async def test_a_long_step_of_the_product_is_named(long_steps: list[str], source: str, line: str) -> None:
    busy = of_product(source)
    if asyncio.iscoroutinefunction(busy):
        await asyncio.create_task(busy())
    else:
        asyncio.get_running_loop().call_soon(busy)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert [said.startswith(line) for said in long_steps] == [True]
    long_steps.clear()


async def test_short_steps_and_those_of_tests_are_not(long_steps: list[str]) -> None:
    of_test: dict[str, object] = {"thread_time": thread_time}
    exec(BUSY, of_test)
    for work in (of_product(BUSY.replace("0.06", "0.01")), of_test["busy"]):
        asyncio.get_running_loop().call_soon(work)  # type: ignore[arg-type]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert long_steps == []
