"""The end of the service when the store cannot write: it comes, and what is doubtful is settled at the next start."""

import asyncio
import threading
from pathlib import Path

from channels.outgoing import Delivery, SendResult, Sent
from tests.service import running
from tests.stored import disk_full
from tests.watch import PATIENCE


async def test_a_send_whose_outcome_cannot_be_written_does_not_keep_the_service_from_ending(tmp_path: Path) -> None:
    full = threading.Event()

    def fail(at: str) -> None:
        if at == "before" and full.is_set():
            raise disk_full()

    async def send(delivery: Delivery) -> SendResult:
        full.set()
        return Sent("7")

    async with running(tmp_path, probe=fail) as hark:
        hark.channel.on_send = send
        await hark.write("hello")
        await hark.until(lambda: hark.service.parts.store.failure)
        await hark.until_texts(1)
        closing = asyncio.create_task(hark.service.parts.outbox.close(0))
        await asyncio.sleep(0)
        hark.time.advance(1)
        await asyncio.wait_for(closing, PATIENCE)
        assert hark.stored.deliveries("state") == [("sending",)]
    async with running(tmp_path) as hark:
        await hark.delivered()
        assert len(hark.channel.texts()) == 1  # once more, as for any send whose outcome nobody knows
