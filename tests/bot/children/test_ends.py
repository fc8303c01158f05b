"""The end of sub-agents and of what they work for: nobody waits for what does not come, and nothing is told twice."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.context import NOT_EXECUTED
from agent.message import ToolCall, ToolResult
from bot.children.tools import SendParameters
from bot.persistence.approvals import Choice
from bot.persistence.children import sent_key
from bot.runs.outages import MENDED_EVERY, PARKED_EVERY
from bot.store.store import Store
from channels.message import InboundKind, InboundMessage, Origin
from tests.asking import AskingTool, approval
from tests.bot.children.test_children import PARENT, begun, child_of, settled, spawns
from tests.bot.gateway.house import TOKEN, house
from tests.bot.gateway.test_agent import error_of
from tests.bot.runs.test_origins import GROUP, OPEN
from tests.bot.runs.test_outages import config, pass_time
from tests.bot.store.opened import accept_and_claim
from tests.bot.store.test_epochs import answer
from tests.scripted_model import ScriptedModel
from tests.service import Hark, running, session_of
from tests.standins.openai_server import OpenAIServer
from tests.standins.request_log import Request
from tests.standins.script import Call, Fail, Gate, Say
from tests.stored import Stored
from tests.watch import ManualTime, Watch

GUEST = {"tools": {"by_sender": {"telegram:2": {"allow": ["group:sessions"]}}}}


async def both_work(hark: Hark, sender: str = "1") -> None:
    """A conversation and its sub-agent are at work."""
    hark.model.whenever("look it up", Say("forty-two", gate=Gate()))
    await hark.write("find out", sender=sender, answers=[spawns(label="research"), Say("so", gate=Gate())])
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


async def test_of_what_a_stop_has_dropped_the_next_turn_is_told(hark: Hark) -> None:
    gate = Gate()
    hark.model.whenever("look it up", "forty-two")
    await hark.write("find out", answers=[spawns(label="research"), Say("so", gate=gate)])
    await hark.until(lambda: hark.stored.messages("seq", kind="child", session_key=PARENT), "the end of it")
    await hark.write("/stop")
    await hark.until_texts(1)
    await hark.until(lambda: not hark.model.active, "the end of the run")
    await settled(hark)
    await hark.say("and?", answers=["here"])
    assert 'The sub-agent "research" has ended, and what it said was dropped' in hark.stored.lines(PARENT)[-1]
    await hark.say("and?", answers=["here"])
    assert '"research"' not in hark.stored.lines(PARENT)[-1]


@pytest.mark.parametrize("later", [True, False])
async def test_what_an_undo_has_ended_is_told_where_it_was_started_before(tmp_path: Path, later: bool) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        await begun(hark, gate)
        if later:
            await hark.say("two and three?", answers=["five"])
        await hark.write("/undo")
        await hark.until(lambda: not hark.model.active, "the end of the run")
        await settled(hark)
        await hark.say("and?", answers=["here"])
        assert ('"research"' in hark.stored.lines(PARENT)[-1]) is later


async def test_what_is_brought_back_is_told_of_its_end(hark: Hark) -> None:
    await begun(hark, Gate())
    await hark.write("/undo")
    await hark.until(lambda: not hark.model.active, "the end of the run")
    await settled(hark)
    await hark.write("/redo")
    await hark.until(lambda: not hark.stored.undone(), "the exchange")
    await hark.say("and?", answers=["here"])
    assert 'The sub-agent "research" was stopped.' in hark.stored.lines(PARENT)[-1]


async def test_a_stop_closes_what_a_sub_agent_has_asked(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        hark.model.on("look it up", Call("ask", {"label": "it"}))
        await hark.say("find out", answers=[spawns(label="research"), "asked"])
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
        await hark.say("find out", answers=[spawns(label="research"), "asked"])
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
        await hark.say("find out", answers=[spawns(label="research"), "asked"])
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
        await hark.say("find out", answers=[spawns(label="research"), "asked"])
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


# Sub-agents and models that do not work: they wait as people's turns do, and their conversation is told once.

KEYS = ("sk-first-key",)


def asks(request: Request, **more: Any) -> list[Any]:
    """What the model of the conversation says: it starts a sub-agent of the second model, and then rests."""
    text = request.last_user_text
    if "find out" in text and not request.tool_results:
        return [spawns(label="research", model="two/gpt", **more)]
    return [Say("noted" if "the sub-agent" in text else "asked")]


async def parked(hark: Hark) -> None:
    await hark.say("find out")
    await hark.until(lambda: hark.stored.turns("state", session_key=child_of(hark)) == [("parked",)], "the outage")


async def test_an_outage_delays_a_sub_agent_and_its_conversation_is_told_once(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.default = asks
        two.default = lambda request: [Fail(401)]
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            await parked(hark)
            now = hark.time.now()
        watch = Watch()
        given: dict[str, Any] = {"model": ScriptedModel(watch), "time": ManualTime(watch, now)}
        async with running(tmp_path, config=config(one, two), chosen=True, **given) as hark:
            two.default = lambda request: [Say("forty-two")]
            await pass_time(hark, MENDED_EVERY)
            await hark.until_texts(1)
            await settled(hark)
            assert hark.channel.texts() == ["noted"]
            assert sum("forty-two" in line for line in hark.stored.lines(PARENT)) == 1


async def test_it_waits_no_longer_than_it_may_take(tmp_path: Path) -> None:
    async with OpenAIServer(keys=KEYS) as one, OpenAIServer(keys=KEYS) as two:
        one.default = lambda request: asks(request, timeout_seconds=60)
        two.default = lambda request: [Fail(401)]
        async with running(tmp_path, config=config(one, two), chosen=True) as hark:
            await parked(hark)
            await pass_time(hark, 3 * PARKED_EVERY)
            assert hark.stored.turns("state", session_key=child_of(hark)) == [("parked",)]
            await pass_time(hark, PARKED_EVERY)
            await hark.until(lambda: "noted" in hark.channel.texts(), "the end")
            await settled(hark)
            assert '(the sub-agent "research" failed (outage). It says nothing.)' in hark.stored.lines(PARENT)[-1]
            assert not [text for text in hark.channel.texts() if "your message" in text]
            assert "API key" in hark.channel.texts()[-2]  # that is told to the owner, here once
            assert len(hark.channel.texts()) == 3


# Sub-agents and what happens outside of their conversation: crashes, programs, pruning.


@pytest.mark.parametrize("done", [True, False])
async def test_after_a_crash_the_model_is_told_whether_it_has_written_to_a_session(done: bool, store: Store) -> None:
    turn = await accept_and_claim(store)
    await answer(
        store, turn, ToolCall("c", "sessions_send", SendParameters(session="s", message="m").model_dump_json())
    )
    await store.turns.start_calls(turn.run, ["c"], ())
    if done:
        message = InboundMessage(
            origin=turn.messages[0].origin,
            event_key=sent_key(turn.turn_id, "c"),
            kind=InboundKind.CHILD,
            text="m",
            sent_at=1,
        )
        await store.children.send(turn.run, message, "s")
    await store.recovery.recover(turn.turn_id, "next", ())
    (result,) = (await store.reads.context(turn.transcript_id))[-1].message.parts
    assert isinstance(result, ToolResult)
    assert (result.text, result.is_error) == (("Sent.", False) if done else (NOT_EXECUTED, True))


async def test_programs_write_to_no_sub_agent(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        at.http.headers["authorization"] = f"Bearer {TOKEN}"
        run = await at.submit("look into it")
        (await at.model.called()).finish("", ToolCall("c", "sessions_spawn", '{"task": "look it up"}'))
        child, parent = await at.model.called(), await at.model.called()
        if "look it up" in parent.request.messages[0].text:
            child, parent = parent, child
        parent.answer("asked")
        await at.show(run, wait="20")
        (view,) = await at.service.parts.store.children.open("")
        response = await at.http.post("/v1/agent", json={"message": "hi", "session": view.session_key})
        assert (response.status_code, error_of(response)["code"]) == (422, "invalid")
        ((turn_id,),) = Stored(tmp_path / "state").turns("turn_id", session_key=view.session_key)
        response = await at.http.post(f"/v1/agent/{turn_id}/steer", json={"message": "hi"})
        assert (response.status_code, error_of(response)["code"]) == (422, "invalid")
        child.answer("forty-two")
        (await at.model.called()).answer("noted")


async def test_what_it_has_done_is_pruned_and_it_can_be_asked_again(hark: Hark) -> None:
    hark.model.whenever("look it up", "forty-two")
    hark.model.whenever("<subagent>", "noted")
    await hark.say("find out", answers=[spawns(), "asked"])
    await hark.until_texts(2)
    await settled(hark)
    hark.time.advance(91 * 86_400)
    assert await hark.service.parts.sessions.prune(timedelta(days=90), None) == 1
    child = child_of(hark)
    assert not hark.stored.lines(child)
    assert child not in {one.session for one in await hark.service.parts.sessions.listed()}
    hark.model.add(Call("sessions_send", {"session": child, "message": "look it up again"}))
    hark.model.add("asked again")
    await hark.say("ask again")
    await hark.until(lambda: len(hark.stored.lines(child)) == 1, "the task")
    await hark.until_texts(4)
    await settled(hark)
    tools = [{one.name for one in r.tools} for r in hark.model.requests if "again" in r.messages[0].text]
    assert all("message" not in one for one in tools)
    assert tools
