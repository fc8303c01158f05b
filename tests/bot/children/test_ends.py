"""The end of sub-agents and of what they work for: nobody waits for what does not come, and nothing is told twice."""

from pathlib import Path

import pytest

from bot.persistence.approvals import Choice
from channels.message import Origin
from tests.asking import AskingTool, approval
from tests.bot.children.test_children import PARENT, begun, child_of, settled, spawns
from tests.bot.runs.test_origins import GROUP, OPEN
from tests.service import Hark, running, session_of
from tests.standins.script import Call, Gate, Say

GUEST = {"tools": {"by_sender": {"telegram:2": {"allow": ["group:sessions"]}}}}


async def both_work(hark: Hark, sender: str = "1") -> None:
    """A conversation and its sub-agent are at work."""
    hark.model.whenever("look it up", Say("forty-two", gate=Gate()))
    hark.model.add(spawns(label="research"))
    hark.model.add(Say("so", gate=Gate()))
    await hark.write("find out", sender=sender)
    await hark.until(lambda: hark.model.active == 2, "both")


async def test_somebody_who_is_shut_out_ends_both_once(tmp_path: Path) -> None:
    async with running(tmp_path, config=GUEST) as hark:
        await both_work(hark, "2")
        await hark.write("/people block telegram:2")
        await hark.until_texts(1)
        await hark.until(lambda: not hark.model.active, "the end of the runs")
        await settled(hark)
        assert hark.stored.turns("state", session_key={session_of("2"), child_of(hark)}) == [("stopped",)] * 2
        ends = [one["run"]["turn_id"] for one in hark.stored.events() if one["type"] == "agent_end"]
        assert len(ends) == len(set(ends)) == 2
        assert len(hark.stored.lines(child_of(hark), "note")) == 1


async def test_of_what_a_stop_has_dropped_the_next_turn_is_told(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        gate = Gate()
        hark.model.whenever("look it up", "forty-two")
        hark.model.add(spawns(label="research"))
        hark.model.add(Say("so", gate=gate))
        await hark.write("find out")
        await hark.until(lambda: hark.stored.messages("seq", kind="child", session_key=PARENT), "the end of it")
        await hark.write("/stop")
        await hark.until_texts(1)
        await hark.until(lambda: not hark.model.active, "the end of the run")
        await settled(hark)
        hark.model.add("here")
        await hark.say("and?")
        assert 'The sub-agent "research" has ended, and what it said was dropped' in hark.stored.lines(PARENT)[-1]
        hark.model.add("here")
        await hark.say("and?")
        assert '"research"' not in hark.stored.lines(PARENT)[-1]


@pytest.mark.parametrize("later", [True, False])
async def test_what_an_undo_has_ended_is_told_where_it_was_started_before(tmp_path: Path, later: bool) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        await begun(hark, gate)
        if later:
            hark.model.add("five")
            await hark.say("two and three?")
        await hark.write("/undo")
        await hark.until(lambda: not hark.model.active, "the end of the run")
        await settled(hark)
        hark.model.add("here")
        await hark.say("and?")
        assert ('"research"' in hark.stored.lines(PARENT)[-1]) is later


async def test_what_is_brought_back_is_told_of_its_end(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await begun(hark, Gate())
        await hark.write("/undo")
        await hark.until(lambda: not hark.model.active, "the end of the run")
        await settled(hark)
        await hark.write("/redo")
        await hark.until(lambda: not hark.stored.undone(), "the exchange")
        hark.model.add("here")
        await hark.say("and?")
        assert 'The sub-agent "research" was stopped.' in hark.stored.lines(PARENT)[-1]


async def test_a_stop_closes_what_a_sub_agent_has_asked(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        hark.model.on("look it up", Call("ask", {"label": "it"}))
        hark.model.add(spawns(label="research"))
        hark.model.add("asked")
        await hark.say("find out")
        await approval(hark)
        await hark.until(lambda: hark.channel.sent and hark.channel.sent[-1].buttons, "the request")
        await hark.write("/stop")
        await hark.until(lambda: any("is not asked any more" in one.body for one in hark.channel.sent), "its end")
        (edit,) = [one for one in hark.channel.sent if "is not asked any more" in one.body]
        assert not edit.buttons
        assert not hark.stored.approvals(state="open")
        await settled(hark)


async def test_nothing_is_left_of_somebody_for_whom_it_works_in_a_group(tmp_path: Path) -> None:
    async with running(tmp_path, config={**GUEST, **OPEN}) as hark:
        hark.model.whenever("look it up", Say("forty-two", gate=Gate()))
        hark.model.add(spawns(label="my illness"))
        hark.model.add("asked")
        await hark.write("find out", sender="2", origin=Origin(place=GROUP, sender="2", message_id="1"))
        await hark.until_texts(1, "-7")
        await hark.service.parts.forget.forget_person("telegram:2")
        await settled(hark)
        left = repr(hark.stored.everything())
        assert "illness" not in left
        assert "look it up" not in left


async def test_one_that_has_used_its_budget_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "long.txt").write_text("a line of it\n" * 3000)
    async with running(tmp_path, config={"budget": {"turn": {"tokens": 8000}}}) as hark:
        hark.model.on("look it up", Call("read", {"path": "long.txt"}))
        hark.model.whenever("the sub-agent", "noted")
        hark.model.add(spawns(label="research"))
        hark.model.add("asked")
        await hark.say("find out")
        assert (await hark.until_texts(2))[1] == "noted"
        await settled(hark)
        assert '(the sub-agent "research" failed (budget). It says nothing.)' in hark.stored.lines(PARENT)[-1]


async def test_those_of_a_sub_agent_tell_it_and_it_tells_the_conversation(tmp_path: Path) -> None:
    config = {"agent": {"subagents": {"max_depth": 2}}}
    async with running(tmp_path, config=config) as hark:
        hark.model.on("look it up", spawns("fetch them", label="fetcher"))
        hark.model.on("look it up", "somebody else looks")
        hark.model.on("fetch them", "seven")
        hark.model.on("seven", "there are many")
        hark.model.on("somebody else looks", "patience")
        hark.model.on("there are many", "many, then")
        hark.model.add(spawns(label="research"))
        hark.model.add("asked")
        await hark.say("find out")
        await hark.until_texts(3)
        await settled(hark)
        assert sorted(hark.channel.texts()) == ["asked", "many, then", "patience"]
        told = ("fetcher", "seven"), ("research", "somebody else looks"), ("research", "there are many")
        lines = [line for key in hark.stored.sessions("session_key") for line in hark.stored.lines(*key)]
        for label, said in told:
            head = f'(the sub-agent "{label}" has finished. It says:)'
            assert sum(f"{head}\n<subagent>\n{said}\n</subagent>" in line for line in lines) == 1


async def test_what_nobody_has_decided_for_it_is_asked_again_and_its_end_is_told(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool(seconds=60)]) as hark:
        hark.model.on("look it up", Call("ask", {"label": "it"}))
        hark.model.on("look it up", "nobody was there")
        hark.model.on("nobody was there", "a pity")
        hark.model.add(spawns(label="research"))
        hark.model.add("asked")
        await hark.say("find out")
        ident = await approval(hark)
        hark.time.advance(61)
        await hark.until(lambda: "a pity" in hark.channel.texts(), "its end")
        await settled(hark)
        await hark.write(f"/approve {ident} again")
        again = await approval(hark, 2)
        assert again != ident
        hark.model.on("Ask again", "found it")
        hark.model.on("found it", "so it is")
        assert await hark.service.parts.requests.decide(again, Choice(verdict="once"), "telegram:1")
        await hark.until(lambda: "so it is" in hark.channel.texts(), "the end")
        await settled(hark)
        assert "found it" not in hark.channel.texts()
