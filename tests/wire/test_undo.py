"""An exchange that is taken back, on each platform: its messages are really gone there, or struck out."""

from pathlib import Path
from typing import Any

import pytest

from tests.standins import slack_shapes
from tests.standins.discord_objects import HARK
from tests.standins.telegram_updates import BOT_ID
from tests.wire.platforms import Side
from tests.wire.stage import staged

pytestmark = pytest.mark.xdist_group("wire-platforms")
platforms = pytest.mark.parametrize("name", ["telegram", "slack", "discord"])
# What a platform says when it does not delete a message.
REFUSALS: dict[str, Any] = {
    "telegram": (("deleteMessage",), {"status": 400, "description": "Bad Request: message can't be deleted"}),
    "slack": (("chat.delete", "cant_delete_message"), {}),
    "discord": (("DELETE /channels/*/messages/*",), {"status": 403}),
}
# The same message struck out, as its platform writes that; where the style stands beside the words, it is not shown.
STRUCK = {"telegram": "re: 2 + 2?", "slack": "re: 2 + 2?", "discord": "~~re: 2 + 2?~~"}


def standing(side: Side) -> list[str]:
    """What stands of the bot in Alice's direct messages now."""
    where = side._where("alice", None)[1]  # type: ignore[attr-defined]
    if side.name == "telegram":
        kept = [one for (chat, _), one in side.server.messages.items() if chat == where.id]
        return [one["text"] for one in kept if one["from"]["id"] == BOT_ID]
    if side.name == "slack":
        return [one["text"] for one in side.server.messages(where) if one["user"] == slack_shapes.BOT]
    return [one["content"] for one in side.server.messages(where) if one["author"]["id"] == str(HARK.id)]


@platforms
async def test_what_was_taken_back_is_gone(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        for text in ("first", "second"):
            side.say(text)
            await stage.passing(lambda text=text: f"re: {text}" in side.posts(), "an answer")  # type: ignore[misc]
        side.command("/undo")
        await stage.passing(lambda: "re: second" not in standing(side) and stage.at_rest(), "the deletion")
        assert standing(side)[0] == "re: first"
        assert any("I have taken back “second”" in text for text in side.shown())
        side.say("!redo")
        await stage.passing(lambda: "This counts again: “second”" in standing(side)[-1], "the answer to /redo")
        await stage.settled()


@platforms
async def test_what_a_platform_does_not_delete_is_struck_out(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        side.say("2 + 2?")
        await stage.passing(lambda: "re: 2 + 2?" in "".join(side.posts()).replace("\\", ""), "an answer")
        named, said = REFUSALS[name]
        refused = side.server.fail_next(*named, **said)
        side.say("!undo")
        await stage.passing(lambda: refused.fired and len(standing(side)) == 2 and stage.at_rest(), "the edit")
        (struck,) = (one for one in side.server.sent if one.method in ("editMessageText", "chat.update", "edit"))
        assert struck.text == STRUCK[name]
        assert name == "discord" or "strike" in repr(struck)
        await stage.settled()


@platforms
async def test_an_edited_question_is_answered_anew_by_a_button(name: str, tmp_path: Path) -> None:
    async with staged(name, tmp_path) as stage, stage.serving():
        side = stage.side
        said = side.say("what is red?")
        await stage.passing(lambda: side.posts() == ["re: what is red?"], "an answer")
        side.edit(said, "what is blue?")
        await stage.passing(lambda: len(side.posts()) == 2, "the offer")
        side.click(0)
        side.click(0)
        await stage.passing(lambda: "re: what is blue?" in standing(side), "the new answer")
        await stage.settled()
        assert len(standing(side)) == 2
        assert "re: what is red?" not in standing(side)
        assert len(stage.model.requests) == 3, "with the mark"
