"""Parts of one message (an album, a long paste) in a group where the bot has to be named: all of them, or none."""

import asyncio
import re
from pathlib import Path

import pytest

from channels.message import Attachment, InboundMessage
from tests.bot.inbound.test_groups import said, settings
from tests.scripted_model import texts
from tests.service import Hark, running
from tests.standins.script import Hang


def album(hark: Hark, *captions: str, named: int | None, sender: str = "2", of: str = "a") -> list[InboundMessage]:
    """A picture for each caption; that of the number names the bot."""
    return [
        said(
            hark,
            caption,
            sender,
            attachments=(Attachment(kind="image", ref=f"{sender}{number}", name=f"{caption or number}.png"),),
            part_of=f"album:{of}",
            mentioned=number == named,
        )
        for number, caption in enumerate(captions)
    ]


async def comes(hark: Hark, *parts: InboundMessage) -> None:
    """They are accepted, and what waits for more of them has begun to wait."""
    await hark.accept(*parts)
    await asyncio.sleep(0)


async def request(hark: Hark, number: int = 1) -> str:
    """Time passes; what the model is asked then, by the message that is new in the request of that number: the last but
    that which says what became of the files."""
    hark.time.advance(0.5)
    await hark.until(lambda: len(hark.model.requests) == number, f"request {number}")
    return texts(hark.model.requests[-1], "user")[-2]


async def nothing(hark: Hark, but: int = 0) -> None:
    """Time passes, nothing is left that waits, and the model was asked for nothing more."""
    await asyncio.sleep(0)
    hark.time.advance(5)
    await hark.until(lambda: not hark.stored.unfinished(), "the end of everything")
    assert len(hark.model.requests) == but


def pictures(asked: str) -> list[str]:
    """The names of the pictures in a message."""
    return re.findall(r'\(attached: image "(\w+).png"\)', asked)


@pytest.mark.parametrize("named", [0, 1, 2])
@pytest.mark.parametrize("at_once", [True, False], ids=["one batch", "one by one"])
async def test_all_parts_are_one_message_whichever_names_the_bot(tmp_path: Path, named: int, at_once: bool) -> None:
    async with running(tmp_path, config=settings()) as hark:
        parts = album(hark, "first", "second", "third", named=named)
        for batch in [parts] if at_once else [[part] for part in parts]:
            await comes(hark, *batch)
        asked = await request(hark)
        assert pictures(asked) == ["first", "second", "third"]
        assert asked.endswith("first\nsecond\nthird")
        assert "<overheard>" not in asked
        assert hark.stored.everything()["overheard"] == []
        await nothing(hark, but=1)


async def test_a_restart_between_two_parts_tears_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        *before, last = album(hark, "first", "second", "third", named=2)
        await hark.accept(*before)
    async with running(tmp_path, config=settings()) as hark:
        await comes(hark, last)
        assert pictures(await request(hark)) == ["first", "second", "third"]


async def test_a_part_that_comes_while_the_others_are_worked_on_is_for_it(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        hang = Hang()
        hark.model.add(hang, "done")
        first, second, late = album(hark, "first", "second", "late", named=0)
        await comes(hark, first, second)
        await request(hark)
        await hang.entered()
        await comes(hark, late)
        hang.release()
        assert pictures(await request(hark, 2)) == ["late"]


async def test_parts_of_others_and_of_nothing_that_names_it_stay_what_they_are(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        between_us = album(hark, "x" * 4000, "", named=None, of="b")
        theirs = album(hark, "", "theirs", named=None, sender="3", of="c")
        ours = album(hark, "", "ours", named=1)
        await hark.accept(between_us[0], theirs[0], ours[0], between_us[1], theirs[1])
        await nothing(hark)
        await comes(hark, ours[1])
        asked = await request(hark)
        before, _, message = asked.partition("</overheard>")
        assert "theirs" in before
        assert "x" * 500 in before
        assert "x" * 501 not in before, "what is not for it is shortened"
        assert message.count("(attached: image") == 2


async def test_what_comes_again_is_no_second_part(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        parts = album(hark, "first", "second", named=1)
        await hark.accept(parts[0])
        await hark.accept(*parts)
        await comes(hark, *parts)
        assert pictures(await request(hark)) == ["first", "second"]
        await hark.accept(*parts)
        await nothing(hark, but=1)


async def test_a_caption_that_is_a_command_joins_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings()) as hark:
        await hark.accept(*album(hark, "", "/status", "", named=1))
        await hark.until(lambda: hark.channel.texts("-5"), "the answer to the command")
        await nothing(hark)
