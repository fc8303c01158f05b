"""Copies of conversations: they begin with the same request, and neither changes the other any more."""

from dataclasses import replace
from pathlib import Path

from agent.models.base import ModelRequest
from channels.message import Quoted, message_key
from tests.bot.runs.test_undo import order, served, words
from tests.service import Hark
from tests.standins.script import Call, Hang


def shown(request: ModelRequest) -> list[str]:
    """The last lines of what people and the model said in a request."""
    return [message.text.rpartition("\n")[2] for message in request.messages]


async def reply(hark: Hark, text: str, to: str, *, by_me: bool) -> str:
    """What a command is answered that replies to a message."""
    return await order(hark, text, reply_to=to, replied=Quoted(author="", text="?", by_me=by_me))


async def test_a_copy_goes_on_with_the_same_prefix_and_the_old_one_stays(tmp_path: Path) -> None:
    async with served(tmp_path) as hark:
        await hark.say("one")
        await hark.say("two", answers=[Call("read", {"path": "USER.md"}), "read"])
        before, lines = hark.model.requests[-1], hark.stored.entries("body")
        (tmp_path / "workspace" / "SOUL.md").write_text("Be somebody else.")
        (old,) = {row for (row,) in hark.stored.entries("transcript_id")}
        assert await order(hark, "/fork") == (
            f"We go on in a copy. The conversation as it was is kept as `{old[:12]}`."
        )
        await hark.say("three")
        after = hark.model.requests[-1]
        assert (after.system, after.tools) == (before.system, before.tools)
        assert after.messages[: len(before.messages)] == before.messages
        assert hark.stored.entries("body", transcript_id=old) == lines
        new = next(row for (row,) in hark.stored.entries("transcript_id") if row != old)
        assert hark.stored.entries("body", transcript_id=new)[: len(lines)] == lines
        await order(hark, "/undo 2")  # in the copy alone
        assert hark.stored.entries("body", transcript_id=old, hidden=0) == lines
        await hark.say("four")
        assert shown(hark.model.requests[-1]) == ["one", "ok", "four"]


async def test_it_ends_with_the_message_that_was_replied_to(tmp_path: Path) -> None:
    async with served(tmp_path) as hark:
        asked = hark.message("one")
        asked = replace(asked, origin=replace(asked.origin, message_id="p1"), event_key=message_key("1", "p1"))
        await hark.accept(asked)
        await hark.until_texts(1)
        await hark.delivered()
        await hark.say("two", answers=["two it is"])
        await hark.say("three")
        assert "from that message" in await reply(hark, "/fork", "2", by_me=True)
        await hark.say("other")
        assert shown(hark.model.requests[-1]) == ["one", "ok", "two", "two it is", "other"]
        assert "from that message" in await reply(hark, "/fork", "p1", by_me=False)
        await hark.say("again")
        assert shown(hark.model.requests[-1]) == ["one", "again"]
        assert "do not find" in await reply(hark, "/fork", "999", by_me=True)


async def test_a_turn_under_way_is_not_copied_and_ends_in_the_old_one(tmp_path: Path) -> None:
    async with served(tmp_path) as hark:
        await hark.say("one")
        hang = Hang()
        await hark.write("two", answers=[Call("read", {"path": "USER.md"}), (hang, "two it is")])
        await hang.entered()
        assert "We go on in a copy" in await order(hark, "/fork")
        hang.release()
        await hark.until(lambda: "two it is" in hark.channel.texts(), "the answer")
        await hark.delivered()
        await hark.say("three")
        assert shown(hark.model.requests[-1]) == ["one", "ok", "three"]


async def test_what_was_taken_back_is_not_copied(tmp_path: Path) -> None:
    async with served(tmp_path) as hark:
        assert await order(hark, "/fork") == "There is nothing to go on from."
        await hark.say("one")
        await hark.say("canary")
        await order(hark, "/undo")
        await hark.say("two")
        await order(hark, "/fork")
        assert "nothing to redo" in await order(hark, "/redo")
        await hark.say("three")
        assert shown(hark.model.requests[-1]) == ["one", "ok", "two", "ok", "three"]


async def test_a_copy_has_a_summary_unless_that_stands_for_what_came_later(tmp_path: Path) -> None:
    async with served(tmp_path) as hark:
        for number in range(6):
            await hark.say(f"{number} " + "long " * 200)
        assert "summed up" in await order(hark, "/compact")
        await hark.say("last")
        begins = words(hark.model.requests[-1]).partition("messages=")[2][:200]
        await order(hark, "/fork")
        await hark.say("next")
        assert words(hark.model.requests[-1]).partition("messages=")[2].startswith(begins)
        await order(hark, "/fork")
        assert "from that message" in await reply(hark, "/fork", "6", by_me=True)
    async with served(tmp_path / "other") as hark:
        for number in range(6):
            await hark.say(f"{number} " + "long " * 200)
        assert "summed up" in await order(hark, "/compact")
        await reply(hark, "/fork", "2", by_me=True)
        await hark.say("next")
        assert [text[:2] for text in shown(hark.model.requests[-1])] == ["0 ", "ok", "1 ", "ok", "ne"]
