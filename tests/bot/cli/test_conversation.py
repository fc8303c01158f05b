"""A conversation with a service that comes and goes: it waits, also while the service is only starting."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.cli.terminal.client import Client, Rejected
from bot.cli.terminal.conversation import Conversation, ShownPosition
from bot.gateway.views import ConsoleView
from tests.bot.gateway.house import PATIENCE, house
from tests.bot.gateway.test_closing import another


class Noting(Client):
    """Notes that the service refused to say where to begin."""

    def __init__(self, socket: Path) -> None:
        super().__init__(socket)
        self.refused = asyncio.Event()

    async def console(self, position: int) -> ConsoleView:
        try:
            return await super().console(position)
        except Rejected:
            self.refused.set()
            raise


@pytest.mark.waits
async def test_a_service_that_was_never_reached_may_take_its_time_to_start(tmp_path: Path) -> None:
    """Waits as a person does who starts the service second."""
    said: list[str] = []
    lost, back = asyncio.Event(), asyncio.Event()

    def show(pieces: Sequence[object]) -> None:
        said.extend(map(str, pieces))
        if any("is not there" in one for one in said):
            lost.set()
        if any("is back" in one for one in said):
            back.set()

    async with house(tmp_path) as at:
        client = Noting(tmp_path / "hark.sock")
        listening = asyncio.create_task(Conversation(client, ShownPosition(tmp_path / "shown")).listen(show))
        gateway = another(at, tmp_path)
        try:
            async with asyncio.timeout(PATIENCE):
                await lost.wait()
                await gateway.start()
                await client.refused.wait()
                gateway.open()
                await back.wait()
        finally:
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening
            await client.aclose()
            await gateway.close()
