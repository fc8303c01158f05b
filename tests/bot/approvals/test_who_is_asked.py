"""Who is asked, and how they learn of it where they may not read along."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.tools.conversation import AskPersonTool
from bot.approvals import words
from bot.people.access import FOR_GUESTS
from bot.persistence.approvals import Choice
from channels.message import Origin
from tests.bot.approvals.test_approvals import GROUP, IN_GROUPS, OPEN, Commanding, at, begin, labels, press, shows
from tests.bot.approvals.test_parking import over, results
from tests.service import Hark, running
from tests.standins.script import Call


async def greet(hark: Hark) -> None:
    """The owner writes directly."""
    hark.model.add("hello")
    await hark.say("hi")


def by_bo() -> dict[str, Any]:
    """Somebody who is no owner writes in the group."""
    fields = at(GROUP, "2", "Bo")
    return fields | {"origin": replace(fields["origin"], chat_name="Ops | *night*")}


async def test_an_owner_who_is_not_in_the_group_is_told_where_it_waits(tmp_path: Path) -> None:
    tool = Commanding()
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [tool]) as hark:
        await greet(hark)
        await begin(hark, **by_bo())
        (there,), (owner,) = shows(hark, "-100"), shows(hark, "1")
        assert labels(there) == labels(owner) == ["Allow once", "Always allow", "Deny"], "they may read along there"
        assert "Asked on Telegram in “Ops night” by Bo (telegram:2)." in owner.body
        await press(hark, "Allow once", owner)
        await hark.until(lambda: "done" in hark.channel.texts("-100"), "the answer")
        assert tool.begun == ["it"]
        await hark.until(lambda: shows(hark, "-100")[-1].body.endswith("✓ **Allowed once** by telegram:1"), "the edit")


async def test_an_owner_who_has_written_there_is_not_told_twice(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS, tools=lambda watch: [Commanding()]) as hark:
        await greet(hark)
        hark.model.add("hello all")
        await hark.write("morning", **at(GROUP, "1"))
        await hark.until_texts(1, "-100")
        await begin(hark, then="", **by_bo())
        assert (len(shows(hark, "-100")), shows(hark, "1")) == (1, [])


async def test_somebody_who_never_wrote_there_is_not_asked(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS) as hark:
        hark.model.add(Call(AskPersonTool.name, {"question": "Which?", "who": "telegram:77", "default": "red"}))
        hark.model.add("so be it")
        await hark.write("paint it", **at(GROUP, "2"))
        await hark.until(lambda: "so be it" in hark.channel.texts("-100"), "the answer")
        told = "They do not read this conversation, so they were not asked. Go on with: red"
        assert results(hark) == [told]


@pytest.mark.parametrize(("sender", "put"), [("1", FOR_GUESTS + 1), ("2", FOR_GUESTS)])
async def test_only_guests_have_others_asked_so_often_and_no_more(tmp_path: Path, sender: str, put: int) -> None:
    async with running(tmp_path, config=OPEN) as hark:
        for number in range(FOR_GUESTS + 1):
            hark.model.add(Call(AskPersonTool.name, {"question": f"Question {number}?", "who": "anyone"}))
        hark.model.add("so be it")
        await hark.write("ask around", sender=sender)
        for number in range(put):
            await hark.until(lambda: hark.stored.approvals(state="open"), f"question {number}")
            ((ident,),) = hark.stored.approvals("approval_id", state="open")
            choice = Choice(verdict="answered", reason=f"answer {number}")
            assert await hark.service.parts.requests.decide(ident, choice, f"telegram:{sender}")
        await hark.until(lambda: "so be it" in hark.channel.texts(sender), "the answer")
        assert len(hark.stored.approvals("state", state="answered")) == put
        assert (words.ENOUGH in results(hark)[0]) == (put == FOR_GUESTS)


@pytest.mark.parametrize("who", ["user", "me", "owners", "Bob", "telegram:", ":2", ""])
async def test_words_that_name_nobody_are_refused(tmp_path: Path, who: str) -> None:
    async with running(tmp_path) as hark:
        hark.model.add(Call(AskPersonTool.name, {"question": "Which?", "who": who}))
        hark.model.add("so be it")
        await hark.write("paint it")
        await over(hark)
        assert "asker, owner, anyone, or `channel:id` of somebody who writes in this conversation" in results(hark)[0]
        assert hark.stored.approvals("state") == []


async def test_somebody_who_reads_along_is_asked_by_their_id(tmp_path: Path) -> None:
    async with running(tmp_path, config=IN_GROUPS) as hark:
        hark.model.add("hi Cy")
        await hark.write("morning", origin=Origin(place=GROUP, sender="3", message_id="60"), event_key="m:-100:60")
        await hark.until_texts(1, "-100")
        hark.model.add(Call(AskPersonTool.name, {"question": "Which?", "who": "telegram:3"}))
        await hark.write("ask Cy", **at(GROUP, "2"))
        await hark.until(lambda: hark.stored.approvals("state") == [("open",)], "the question")
