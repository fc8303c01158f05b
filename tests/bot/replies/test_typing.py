"""The sign of work: while a run works, and never once its last block is on its way."""

import asyncio
from pathlib import Path

from bot.replies.showing import Typing
from channels.message import ChatKind, Place
from tests.service import Json, RecordingChannel, running
from tests.standins.script import Fail, Gate, Hang, Say
from tests.watch import LoopTime, Watch

PLACE = Place(channel="telegram", account="bot", chat="1", kind=ChatKind.DIRECT)
TYPING: Json = {"typing_seconds": 5}


async def test_it_is_renewed_while_the_run_works_and_ends_with_its_last_block(tmp_path: Path) -> None:
    time = LoopTime()
    async with running(tmp_path, channel=TYPING) as hark:
        gate = Gate()
        hark.model.add(Say("There.", chunks=1, gate=gate))
        await hark.write("hello")
        await gate.reached()
        for shown in (1, 2, 3):
            await hark.until(lambda shown=shown: len(hark.channel.log) == shown)
            await time.advance(5.1)
        gate.open()
        await hark.until_texts(1)
        await time.advance(20)
        assert hark.channel.log[-1] == ("send", "There.")
        assert hark.channel.log.count(("send", "There.")) == 1


async def test_it_ends_before_a_sentence_about_a_failure_and_at_a_stop(tmp_path: Path) -> None:
    time = LoopTime()
    async with running(tmp_path, channel=TYPING) as hark:
        hark.model.add(Fail(404))
        await hark.say("hello")
        await time.advance(20)
        assert [kind for kind, _ in hark.channel.log] == ["working", "send"]
        hang = Hang()
        hark.model.add(hang)
        await hark.write("hello")
        await hang.entered()
        await hark.until(lambda: len(hark.channel.log) == 3)
        await hark.write("/stop")
        await hark.until_texts(2)
        await time.advance(20)
        assert [kind for kind, _ in hark.channel.log] == ["working", "send", "working", "send"]


async def test_a_channel_whose_sign_hangs_or_fails_holds_nothing_up(tmp_path: Path) -> None:
    async with running(tmp_path, channel=TYPING) as hark:
        release = asyncio.Event()

        async def hang(place: Place) -> None:
            await release.wait()
            raise OSError("typing is broken")

        hark.channel.on_working = hang
        assert len((await hark.say("hello")).texts) == 1
        assert len((await hark.say("hello")).texts) == 1
        release.set()
        assert len((await hark.say("hello")).texts) == 1


async def test_no_call_begins_after_the_stop_and_one_under_way_is_not_cancelled() -> None:
    time = LoopTime()
    channel = RecordingChannel(Watch(), typing_seconds=5)
    under_way, finished = asyncio.Event(), asyncio.Event()

    async def slow(place: Place) -> None:
        await under_way.wait()
        finished.set()

    channel.on_working = slow
    with Typing(channel, PLACE, lambda error: None) as typing:
        await channel.watch.until(lambda: channel.log)
        typing.stop()
    under_way.set()
    await asyncio.wait_for(finished.wait(), 5)
    await time.advance(20)
    assert channel.log == [("working", "1")]


async def test_a_channel_without_a_sign_is_left_alone() -> None:
    channel = RecordingChannel(Watch())
    with Typing(channel, PLACE, lambda error: None), Typing(None, PLACE, lambda error: None):
        await asyncio.sleep(0)
    assert channel.log == []
