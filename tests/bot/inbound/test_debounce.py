"""Rapid messages of one person get one answer; commands and media wait for nobody, and no wait outlives a crash."""

import asyncio
from pathlib import Path
from typing import Any

from channels.message import Attachment, ChatKind, InboundKind, Origin, Place, Quoted
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
