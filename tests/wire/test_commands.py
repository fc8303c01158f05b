"""Commands on every platform: typed, native and as plain words; for whom they are there; those for other bots."""

from pathlib import Path

import pytest

from tests.standins.script import Hang
from tests.wire.platforms import ROOMS, SIDES
from tests.wire.stage import staged

pytestmark = pytest.mark.xdist_group("wire-platforms")


@pytest.mark.parametrize("name", list(SIDES))
async def test_words_stop_a_run_and_what_was_asked_last_is_answered_again(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side, hang = stage.side, Hang()
        stage.model.on("work", hang)
        side.say("work")
        await hang.entered()
        side.say("and more")
        side.say("Stop!")
        await stage.until(lambda: side.posts() == ["Stopped. 1 waiting message dropped."], "the stop")
        side.say("go on")
        await stage.until(lambda: side.posts()[1:] == ["re: go on"], "the answer to a word")
        side.may_double("re: go on")
        side.say("!retry")
        await stage.until(lambda: len(side.posts()) == 3, "the same again")
        side.command("/new")
        side.command("/whoami")
        await stage.until(lambda: any("an owner of this bot" in one for one in side.shown()), "who it is")
        await stage.until(lambda: any("New conversation." in one for one in side.shown()), "the new conversation")


@pytest.mark.parametrize("name", list(ROOMS))
async def test_guests_have_few_commands_in_a_room_and_other_bots_their_own(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side, room = stage.side, stage.side.room
        if not name.startswith("slack"):  # which sends no text that begins with a slash
            side.say("/status@other_bot", "bob", room)
        asked = side.say("!people list", "bob", room, mention=True)
        below = side.answers_below(asked)
        await stage.until(lambda: side.posts(room, below) == ["re: !people list"], "the answer of the model")
        side.say("!whoami", "bob", room, mention=True)
        await stage.until(lambda: any(", a guest" in one for one in side.shown()), "who it is")
        await stage.settled()
        assert not any("status@" in one for one in side.shown())
