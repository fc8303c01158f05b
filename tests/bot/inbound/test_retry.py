"""/retry: the last message is answered again, once for each command, with its files and in the name of its sender."""

from dataclasses import replace
from pathlib import Path

from bot.store.retries import ASKED_AGAIN
from channels.message import Attachment
from tests.bot.inbound.test_commands import command
from tests.bot.inbound.test_groups import CHAT, said, settings
from tests.scripted_model import texts
from tests.service import running
from tests.standins.script import Hang


async def test_the_last_message_is_answered_again_with_its_files(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.channel.files["r1"] = b"the numbers"
        file = Attachment(kind="file", ref="r1", name="a.txt", mime="text/plain", size=11)
        hark.model.add("One.")
        await hark.accept(replace(hark.message("what is this?"), attachments=(file,)))
        await hark.until_texts(1)
        hark.model.add("Two.")
        retry = hark.message("/retry")
        await hark.accept(retry, retry)
        await hark.accept(retry)
        assert await hark.until_texts(2) == ["One.", "Two."]
        asked = texts(hark.model.requests[1], "user")
        assert sum("what is this?" in one for one in asked) == 2, "the earlier answer stays"
        assert sum("a.txt" in one for one in asked) >= 2
        assert ASKED_AGAIN in asked[-1] or ASKED_AGAIN in asked[-2]
        hark.model.add("Three.")
        await hark.write("/retry")
        assert (await hark.until_texts(3))[2] == "Three."
        assert "/retry" not in "".join(texts(hark.model.requests[2], "user"))


async def test_not_while_it_is_being_answered_and_not_without_a_message(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        assert await command(hark, "/retry") == "There is no message here to answer again."
        hang = Hang()
        hark.model.add(hang)
        await hark.write("hello")
        await hang.entered()
        assert (await command(hark, "/retry")).startswith("I am not done with that message yet")
        assert await command(hark, "/stop") == "Stopped."
        hark.model.add("Now.")
        assert await command(hark, "/retry") == "Now."


async def test_guests_of_a_group_repeat_their_own_message_with_their_own_rights(tmp_path: Path) -> None:
    async with running(tmp_path, config=settings({"require_mention": False})) as hark:
        for sender in ("2", "3"):
            await hark.accept(said(hark, f"from {sender}", sender))
            await hark.until(lambda: not hark.stored.unfinished())
        for sender, whose in (("2", "2"), ("1", "2")):
            count = len(hark.channel.texts(CHAT))
            await hark.accept(said(hark, "/retry", sender))
            answer = (await hark.until_texts(count + 1, CHAT))[count]
            assert f"(id {whose})" in answer
            assert f"from {whose}" in answer
            await hark.until(lambda: not hark.stored.unfinished())
            assert hark.stored.messages("sender", "kind")[-1] == (whose, "message")
