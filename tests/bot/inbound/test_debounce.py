"""Rapid messages of one person get one answer; commands and media wait for nobody, and no wait outlives a crash."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.config.model import Config
from bot.service import PROBE_EVERY, SWEEP_EVERY
from channels.message import Attachment, ChatKind, InboundKind, InboundMessage, Origin, Place, Quoted
from tests.bot.inbound.test_groups import said, settings
from tests.scripted_model import ScriptedModel, texts
from tests.service import Hark, Json, running
from tests.standins.script import Hang
from tests.watch import lanes_idle

ON: Json = {"queue": {"debounce_ms": 1000}}
SHARED: Json = {"queue": {"debounce_ms": 1000}, "sessions": {"dm_scope": "main"}}
PICTURE = (Attachment(kind="image", ref="r"),)


def asked(hark: Hark) -> list[list[str]]:
    """What each request brought anew, without the time stamps."""
    said = [
        [one.text.partition("\n")[2] for one in request.messages if one.role == "user"]
        for request in hark.model.requests
    ]
    return [lines[len(before) :] for before, lines in zip([[], *said], said, strict=False)]


async def later(hark: Hark, seconds: float, *texts: str, **fields: Any) -> None:
    """Write after a pause."""
    hark.time.advance(seconds)
    await hark.write(*texts, **fields)
    await asyncio.sleep(0)  # until its timer runs


@pytest.fixture
async def hark(tmp_path: Path) -> AsyncIterator[Hark]:
    """A service with the usual group."""
    async with running(tmp_path, config=settings()) as made:
        yield made


async def test_rapid_messages_get_one_answer_and_keep_their_lines(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        await later(hark, 0, "one")
        await later(hark, 0.9, "two")
        await later(hark, 0.9, "three")
        hark.time.advance(0.9)
        await lanes_idle()
        assert hark.model.requests == []
        hark.time.advance(0.1)
        await hark.until_texts(1)
        await later(hark, 5, "four")
        hark.time.advance(1)
        await hark.until_texts(2)
        assert asked(hark) == [["one", "two", "three"], ["four"]]


async def test_who_never_pauses_is_answered_all_the_same(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        for n in range(7):
            await later(hark, 0.8 if n else 0, f"{n}")
        hark.time.advance(0.2)
        await hark.until_texts(1)
        assert asked(hark) == [["0", "1", "2", "3", "4", "5", "6"]]


async def test_others_and_other_places_do_not_move_it(tmp_path: Path) -> None:
    async with running(tmp_path, config=SHARED) as hark:
        await later(hark, 0, "one")
        await later(hark, 0.6, "other", sender="2")
        await later(hark, 0.3, "two")
        hark.time.advance(0.7)
        await hark.until(lambda: len(hark.model.requests) == 1)
        hark.time.advance(0.3)
        await hark.until(lambda: len(hark.model.requests) == 2)
        assert asked(hark) == [["other"], ["one", "two"]]


async def test_media_and_commands_end_the_wait(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        await hark.write("look at this")
        await hark.write("the picture", attachments=PICTURE)
        await hark.until_texts(1)
        assert [lines[:2] for lines in asked(hark)] == [["look at this", "(attached: image)\nthe picture"]]
        await hark.write("and now?")
        await hark.write("/status")
        await hark.until_texts(3)
        assert [lines[-1] for lines in asked(hark)][1:] == ["and now?"]


async def test_programs_do_not_wait(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        place = Place(channel="http", account="", chat="x", kind=ChatKind.API)
        await hark.write("hello", kind=InboundKind.API, origin=Origin(place=place, sender="owner"))
        await hark.until(lambda: len(hark.model.requests) == 1)


async def test_a_window_that_began_during_a_run_is_a_turn_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path, config={"queue": {"debounce_ms": 1000, "mode": "followup"}}) as hark:
        hang = Hang()
        hark.model.add(hang, "done")
        await later(hark, 0, "one")
        hark.time.advance(1)
        await hang.entered()
        for text in ("two", "three", "four"):
            await later(hark, 0.1, text)
        await later(hark, 3, "five")
        hark.time.advance(3)
        hang.release()
        await hark.until_texts(3)
        assert asked(hark) == [["one"], ["two", "three", "four"], ["five"]]


async def test_a_restart_ends_the_wait(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        await hark.write("one", "two")
    async with running(tmp_path, config=ON) as hark:
        hark.time.skew = -3_600_000
        await hark.until_texts(1)
        assert asked(hark) == [["one", "two"]]


async def test_a_restart_joins_nothing_that_was_written_apart(tmp_path: Path) -> None:
    async with running(tmp_path, config={"queue": {"debounce_ms": 1000, "mode": "followup"}}) as hark:
        hark.model.add(Hang())
        await later(hark, 0, "first")
        hark.time.advance(1)
        await hark.model.until_requests(1)
        for text in ("one", "two"):
            await later(hark, 2, text)
        kept = hark.time
    async with running(tmp_path, config=ON, time=kept) as hark:
        await hark.until_texts(3)
        assert asked(hark)[1:] == [["one"], ["two"]]


async def test_a_clock_that_is_set_back_makes_nobody_wait_longer(tmp_path: Path) -> None:
    async with running(tmp_path, config=ON) as hark:
        await later(hark, 0, "one")
        hark.time.skew = -3_600_000
        await later(hark, 0.5, "two")
        hark.time.advance(1)
        await hark.until_texts(1)
        assert asked(hark) == [["one", "two"]]


async def test_the_parts_of_a_message_are_one_also_without_a_window(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.write("first half", part_of="p")
        await later(hark, 0.4, "second half", part_of="p")
        hark.time.advance(0.4)
        await lanes_idle()
        assert hark.model.requests == []
        hark.time.advance(0.1)
        await hark.until_texts(1)
        await later(hark, 0, "", "see", "", attachments=PICTURE, part_of="album")
        hark.time.advance(0.5)
        await hark.until_texts(2)
        passed_on = (Quoted(author="Eve", text=text) for text in ("", "look"))
        for forwarded in passed_on:
            await later(hark, 0, "", part_of="other", forwarded=forwarded)
        hark.time.advance(0.5)
        await hark.until_texts(3)
        assert [lines[0] for lines in asked(hark)] == [
            "first half\nsecond half",
            "(attached: image)\n(attached: image)\n(attached: image)\nsee",
            '<forwarded from="Eve">\nlook\n</forwarded>',
        ]


# Parts of one message (an album, a long paste) in a group where the bot has to be named: all of them, or none.


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
async def test_all_parts_are_one_message_whichever_names_the_bot(named: int, at_once: bool, hark: Hark) -> None:
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


async def test_a_part_that_comes_while_the_others_are_worked_on_is_for_it(hark: Hark) -> None:
    hang = Hang()
    hark.model.add(hang, "done")
    first, second, late = album(hark, "first", "second", "late", named=0)
    await comes(hark, first, second)
    await request(hark)
    await hang.entered()
    await comes(hark, late)
    hang.release()
    assert pictures(await request(hark, 2)) == ["late"]


async def test_parts_of_others_and_of_nothing_that_names_it_stay_what_they_are(hark: Hark) -> None:
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


async def test_what_comes_again_is_no_second_part(hark: Hark) -> None:
    parts = album(hark, "first", "second", named=1)
    await hark.accept(parts[0])
    await hark.accept(*parts)
    await comes(hark, *parts)
    assert pictures(await request(hark)) == ["first", "second"]
    await hark.accept(*parts)
    await nothing(hark, but=1)


async def test_a_caption_that_is_a_command_joins_nothing(hark: Hark) -> None:
    await hark.accept(*album(hark, "", "/status", "", named=1))
    await hark.until(lambda: hark.channel.texts("-5"), "the answer to the command")
    await nothing(hark)


# The first message after a start, in a service whose messages wait for more of their sender as long as by default.

WAIT = Config().queue.debounce_ms / 1000
DEBOUNCING: Json = {"queue": {"debounce_ms": Config().queue.debounce_ms}}


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
    async with running(tmp_path, config=DEBOUNCING, model=model) as hark:
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
    async with running(tmp_path, config=DEBOUNCING) as hark:
        await hark.write("one", "two")
    assert hark.model.requests == []
    async with running(tmp_path, config=DEBOUNCING, model=(model := SlowLibrary())) as hark:
        model.imported.set()
        await hark.until_texts(1)
        assert [message.text.rpartition("\n")[2] for message in model.requests[0].messages] == ["one", "two"]
