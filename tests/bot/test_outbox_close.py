"""The end of the outbox: what it has begun is settled, and nothing keeps it from ending."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.clock import Clock
from bot.completion import run_to_completion
from bot.outbox import Outbox
from bot.people.people import People
from bot.store.store import Store
from channels.message import ChatKind, InboundKind, Place
from channels.outgoing import Delivery, DeliveryState, Planned, SendResult, Sent
from channels.sources import sentence
from tests.bot.store.opened import accept, accept_and_claim, opened
from tests.service import RecordingChannel, running
from tests.stored import Stored, disk_full
from tests.watch import PATIENCE, ManualTime, Watch


async def plan(store: Store, outbox: Outbox, text: str) -> None:
    """Something to deliver."""
    seq = await accept(store, "/help", InboundKind.COMMAND)
    kept = await store.commands.answer(seq, [Planned(source=sentence(text), body=text, nonce=1)])
    outbox.send(kept.deliveries)


async def test_what_is_just_being_begun_is_sent(tmp_path: Path) -> None:
    """Else it would stand as `sending` in the store, and count as a call of unknown outcome at the next start."""
    held, reached, let_go, loop = threading.Event(), asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def probe(at: str) -> None:
        if at == "before" and held.is_set():
            loop.call_soon_threadsafe(reached.set)
            assert let_go.wait(PATIENCE)

    async with opened(tmp_path, probe=probe) as store:
        channel = RecordingChannel(Watch())
        outbox = Outbox(store, Clock(), 60_000, People(store, ()))
        outbox.add_channel(channel)
        await plan(store, outbox, "words")
        held.set()
        await reached.wait()
        closing = asyncio.create_task(outbox.close(0))
        for _ in range(5):
            await asyncio.sleep(0)
        let_go.set()
        await closing
        assert Stored(tmp_path).deliveries("state") == [("sent",)]
        assert channel.texts() == ["words"]


async def test_what_is_stored_as_begun_is_sent_although_its_task_has_not_run_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()

    async def send(delivery: Delivery) -> SendResult:
        if delivery.body == "busy":
            reached.set()
            await gate.wait()
        return Sent("1")

    async with opened(tmp_path) as store:
        channel = RecordingChannel(Watch())
        channel.on_send = send
        outbox = Outbox(store, Clock(), 60_000, People(store, ()))
        outbox.add_channel(channel)
        await outbox.tell(
            Place(channel="telegram", account="bot", chat="2", kind=ChatKind.DIRECT), sentence("busy"), "busy"
        )
        await reached.wait()
        turn = await accept_and_claim(store)
        blocks = [Planned(source=sentence("block"), body="words", nonce=1, step=1)]
        with outbox.planning(turn.conv_id, turn.place, blocks) as where:
            planned = await store.turns.plan(turn.run, where, blocks)
            assert planned[0].state is DeliveryState.SENDING

            async def meanwhile(*_: object, **__: object) -> None:
                """In the place of a wait that ends just when something was stored."""
                outbox.send(planned)
                gate.set()

            monkeypatch.setattr("bot.outbox.asyncio", SimpleNamespace(**{**vars(asyncio), "wait": meanwhile}))
            await outbox.close(0)
        assert Stored(tmp_path).deliveries("state") == [("sent",), ("sent",)]
        assert sorted(one.body for one in channel.sent) == ["busy", "words"]


async def test_it_ends_while_the_store_cannot_write(tmp_path: Path) -> None:
    full = threading.Event()

    def probe(at: str) -> None:
        if at == "before" and full.is_set():
            raise disk_full()

    async def send(delivery: Delivery) -> SendResult:
        full.set()
        return Sent("1")

    watch = Watch()
    time = ManualTime(watch)
    async with opened(tmp_path, probe=probe) as store:
        channel = RecordingChannel(watch)
        channel.on_send = send
        outbox = Outbox(store, Clock(time.now, time.monotonic, time.sleep), 60_000, People(store, ()))
        outbox.add_channel(channel)
        await plan(store, outbox, "words")
        await time.until_pause(1)
        closing = asyncio.create_task(outbox.close(0))
        await asyncio.sleep(0)
        time.advance(1)
        async with asyncio.timeout(PATIENCE):
            await closing
        assert channel.texts() == ["words"]


# The end of the service when the store cannot write: it comes, and what is doubtful is settled at the next start.


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


# Work that is begun ends, whatever becomes of whoever waits for it.


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
