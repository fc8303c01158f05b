"""The first message after a start, in a service whose messages wait for more of their sender as long as by default."""

import asyncio
from pathlib import Path

import pytest

from bot.config.model import Config
from bot.service import PROBE_EVERY, SWEEP_EVERY
from tests.scripted_model import ScriptedModel
from tests.service import Json, running

WAIT = Config().queue.debounce_ms / 1000
ON: Json = {"queue": {"debounce_ms": Config().queue.debounce_ms}}


class SlowLibrary(ScriptedModel):
    """A model whose library is imported when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.imported = asyncio.Event()

    async def preload(self) -> None:
        await self.imported.wait()


@pytest.mark.parametrize("imported_after", [0.0, WAIT / 2, WAIT, 3.0])
async def test_it_is_answered_as_soon_as_it_is_ready_and_the_model_can_be_asked(
    tmp_path: Path, imported_after: float
) -> None:
    model = SlowLibrary()
    async with running(tmp_path, config=ON, model=model) as hark:
        assert WAIT > 0
        begun = hark.time.monotonic()
        await hark.write("hello?")
        await hark.time.until_pause(WAIT, 1 + (WAIT == PROBE_EVERY))  # the service's own pause may be as long
        (beginning,) = (task for task in asyncio.all_tasks() if task.get_name() == "begin-runs")
        hark.time.advance(imported_after)
        await asyncio.sleep(0)
        model.imported.set()
        await beginning
        hark.time.advance(max(0.0, WAIT - imported_after))
        await hark.until_texts(1)
        assert hark.time.monotonic() - begun == max(WAIT, imported_after) < SWEEP_EVERY


async def test_one_that_waited_when_the_service_stopped_is_answered_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        await hark.write("one", "two")
    assert hark.model.requests == []
    async with running(tmp_path, config=ON, model=(model := SlowLibrary())) as hark:
        model.imported.set()
        await hark.until_texts(1)
        assert [message.text.rpartition("\n")[2] for message in model.requests[0].messages] == ["one", "two"]
