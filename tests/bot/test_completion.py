"""Work that is begun ends, whatever becomes of whoever waits for it."""

import asyncio

import pytest

from bot.completion import run_to_completion


class Work:
    """Ends when it is let, with what it is told."""

    def __init__(self, error: Exception | None = None) -> None:
        self.let, self.ended = asyncio.Event(), False
        self._error = error

    async def __call__(self) -> str:
        await self.let.wait()
        self.ended = True
        if self._error is not None:
            raise self._error
        return "done"


async def waiting(work: Work) -> "asyncio.Task[str]":
    """A task that has begun to wait for it."""
    task = asyncio.create_task(run_to_completion(work()))
    await asyncio.sleep(0)
    return task


async def test_its_result_and_its_error_are_passed_on() -> None:
    work = Work()
    work.let.set()
    assert await run_to_completion(work()) == "done"
    failing = Work(ValueError("no"))
    failing.let.set()
    with pytest.raises(ValueError, match="no"):
        await run_to_completion(failing())


@pytest.mark.parametrize("error", [None, ValueError("no")])
async def test_it_ends_before_a_cancellation_is_told(error: Exception | None) -> None:
    work = Work(error)
    task = await waiting(work)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    work.let.set()
    with pytest.raises(asyncio.CancelledError) as told:
        await task
    assert work.ended
    assert told.value.__cause__ is error
