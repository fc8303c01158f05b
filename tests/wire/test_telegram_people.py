"""Telegram's own habits between people and the whole service: bare names, albums, pastes that are cut, /start."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.standins.telegram_updates import BOT_NAME
from tests.wire.stage import Stage, staged

pytestmark = pytest.mark.xdist_group("wire-platforms")


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """In a group, whose name for the bot is needed, and directly to whoever has a code."""
    async with staged("telegram", tmp_path) as made, made.serving():
        yield made


def asked(stage: Stage) -> list[str]:
    """What was written to the model by people, message by message."""
    return [message.text for request in stage.model.requests for message in request.messages if message.role == "user"]


async def answered(stage: Stage, answers: int = 1) -> None:
    """So many answers stand in the group."""
    await stage.passing(lambda: len(stage.side.posts(stage.side.room)) == answers, "an answer")


async def test_the_bare_name_below_a_message_asks_about_that(stage: Stage) -> None:
    side, room = stage.side, stage.side.room
    before = side.say("Deploy failed with code 4711", "bob", room)
    side.reply(f"@{BOT_NAME}", before.id, "alice", room)
    await answered(stage)
    (text,) = asked(stage)
    assert '<replied-to from="Bob' in text
    assert text.count("code 4711") == 2, "as what it stands below, and as what was said before"


async def test_the_bare_name_asks_about_what_was_said_before(stage: Stage) -> None:
    stage.side.say("Deploy failed with code 4711", "bob", stage.side.room)
    stage.side.say("", "alice", stage.side.room, mention=True)
    await answered(stage)
    assert "code 4711" in asked(stage)[0]


@pytest.mark.parametrize("named", [0, 1, 2])
async def test_an_album_is_seen_whole(stage: Stage, named: int) -> None:
    side = stage.side
    captions = [f"@{BOT_NAME} compare them" if number == named else None for number in range(3)]
    for number, caption in enumerate(captions):
        side.server.attach("photo", b"x" * (100 + number), caption=caption, chat=side.room, media_group_id="77")
    await answered(stage)
    first = asked(stage)[0]
    assert [f"image, {100 + number} bytes" in first for number in range(3)] == [True] * 3
    await stage.settled()
    assert len(side.posts(side.room)) == 1


@pytest.mark.parametrize("named", [0, 1])
async def test_a_paste_that_the_client_cuts_is_read_whole(stage: Stage, named: int) -> None:
    side = stage.side
    name = f"@{BOT_NAME} what does this say?"
    pieces = ["first ".ljust(4096, "a"), "second"]
    pieces[named] = f"{name} {pieces[0]}"[:4096] if named == 0 else f"second {name}"
    for piece in pieces:
        side.say(piece, "alice", side.room)
    await answered(stage)
    assert "first aaa" in asked(stage)[0]
    assert "second" in asked(stage)[0]


async def test_what_a_stranger_asks_behind_start_is_answered_once_they_are_let_in(stage: Stage) -> None:
    side = stage.side
    side.say("/start what is for lunch?", "carol")
    await stage.passing(lambda: side.posts(who="carol"), "a code")
    (told,) = side.posts(who="carol")
    code = next(word for word in told.replace("`", " ").split() if len(word) == 8 and word.isupper())
    side.say(f"!pairing approve {code}", "alice")
    await stage.passing(lambda: "re: what is for lunch?" in side.posts(who="carol"), "an answer")
