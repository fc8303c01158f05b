"""Sub-agents, in the real service: started by the model, told of once, seen and stopped by people."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.message import Provenance, ToolOutput
from agent.tools.base import CallContext, Parameters, Tool
from agent.tools.registry import SESSIONS
from bot.persistence.approvals import Choice
from bot.persistence.settings import ChildRules
from bot.runs.permissions import Offer, narrowed
from channels.message import Origin
from tests.asking import AskingTool, approval
from tests.bot.runs.test_origins import GROUP, OPEN, Page
from tests.service import Hark, running, session_of
from tests.standins.script import Call, Fail, Gate, Say

PARENT = session_of("1")


class WebTool(Tool[Parameters]):
    """Says what a page says."""

    name = "page"
    description = "A page."
    parameters = Parameters

    async def run(self, parameters: Parameters, context: CallContext) -> ToolOutput:
        return ToolOutput(text="buy now", origins=(Provenance("web", "shop.example"),))


def spawns(task: str = "look it up", **more: Any) -> Call:
    return Call("sessions_spawn", {"task": task, **more})


def child_of(hark: Hark) -> str:
    """The key of the one sub-agent."""
    ((key,),) = hark.stored.children("session_key")
    return str(key)


async def begun(hark: Hark, gate: Gate, *, label: str = "research") -> None:
    """A sub-agent is at work, and the conversation is at rest."""
    hark.model.whenever("look it up", Say("forty-two", gate=gate))
    assert (await hark.say("find out", answers=[spawns(label=label), "asked"])).texts == ["asked"]
    await gate.reached()


async def settled(hark: Hark) -> None:
    await hark.until(lambda: not hark.stored.unfinished(), "rest")


async def test_what_a_sub_agent_says_last_comes_back_once_and_word_for_word(hark: Hark) -> None:
    hark.model.whenever("look it up", "forty-two, **surely**")
    hark.model.add(spawns(label="research"))
    hark.model.add("I have asked somebody.")
    hark.model.add("It is forty-two.")
    assert (await hark.say("find out")).texts == ["I have asked somebody."]
    assert await hark.until_texts(2) == ["I have asked somebody.", "It is forty-two."]
    await settled(hark)
    child = child_of(hark)
    assert child.startswith(f"{PARENT}:subagent:")
    (task,) = hark.stored.lines(child)
    assert task.splitlines()[-1] == "look it up"
    told = [text for text in hark.stored.lines(PARENT) if "forty-two, **surely**" in text]
    assert len(told) == 1
    assert '(the sub-agent "research" has finished. It says:)\n<subagent>\nforty-two, **surely**\n' in told[0]
    assert len(hark.channel.texts()) == 2
    assert not hark.stored.balance().unexplained
    assert {key for (key,) in hark.stored.usage("session_key")} == {PARENT}


async def test_one_that_fails_is_told_of_by_its_label_and_people_read_nothing_of_it(hark: Hark) -> None:
    hark.model.on("look it up", Fail(400))
    await hark.say("find out", answers=[spawns(label="research"), "asked", "it did not work"])
    assert await hark.until_texts(2) == ["asked", "it did not work"]
    await settled(hark)
    assert '(the sub-agent "research" failed (invalid_request). It says nothing.)' in hark.stored.lines(PARENT)[-1]
    assert len(hark.channel.texts()) == 2


async def test_it_has_the_tools_of_the_conversation_without_those_that_speak_and_start(hark: Hark) -> None:
    hark.model.add(spawns())
    hark.model.whenever("look it up", "done")
    hark.model.add("asked")
    hark.model.whenever("<subagent>", "so")
    await hark.say("find out")
    await hark.until_texts(2)
    first, second, *_ = [{one.name for one in r.tools} for r in hark.model.requests if len(r.messages) == 1]
    assert second < first
    assert first - second == {"message", "schedule", "stay_silent", "task_list", *SESSIONS}


async def test_it_thinks_as_the_message_wants_for_which_it_works(hark: Hark) -> None:
    await hark.write("/think low")
    await hark.until_texts(1)
    hark.model.whenever("look it up", "done")
    hark.model.whenever("<subagent>", "so")
    await hark.write("find out", thinking="high", answers=[spawns(), "asked"])
    await hark.until_texts(3)
    await settled(hark)
    ((settings,),) = hark.stored.sessions("settings", session_key=child_of(hark))
    assert json.loads(settings)["thinking"] == "high"


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_it_is_stopped_with_the_conversation_that_has_started_it(tmp_path: Path, command: str) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        await begun(hark, gate)
        await hark.write(command)
        await hark.until_texts(2)
        await hark.until(lambda: not hark.model.active, "the end of the run")
        gate.open()
        await settled(hark)
        assert hark.stored.turns("state", session_key=child_of(hark)) == [("stopped",)]
        await hark.say("and?", answers=["here"])
        told = 'The sub-agent "research" was stopped.' in hark.stored.lines(PARENT)[-1]
        assert told is (command == "/stop")
        assert hark.stored.turns("kind", kind="child", session_key=PARENT) == []


async def test_five_of_a_conversation_work_at_the_same_time_and_no_more(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        hark.model.whenever("look it up", Say("found", gate=gate))
        hark.model.whenever("<subagent>", "noted")
        hark.model.add(*(spawns() for _ in range(6)))
        await hark.say("find out", answers=["asked"])
        assert len(hark.stored.children()) == 5
        refused = [text for (text,) in hark.stored.results().values() if "as many as may" in text]
        assert len(refused) == 1
        await hark.until(lambda: hark.model.active == 5, "five at work")
        gate.open()
        await hark.until_texts(6)
        await settled(hark)


async def test_runs_of_sub_agents_have_places_of_their_own(tmp_path: Path) -> None:
    gate, config = Gate(), {"agent": {"max_concurrent": 1, "subagents": {"max_concurrent": 2}}}
    async with running(tmp_path, config=config) as hark:
        hark.model.whenever("look it up", Say("found", gate=gate))
        hark.model.whenever("<subagent>", "noted")
        hark.model.add(*(spawns() for _ in range(3)))
        await hark.say("find out", answers=["asked", "here"])
        await hark.until(lambda: hark.model.active == 2, "two at work")
        assert (await hark.say("and?")).texts == ["here"]
        assert hark.model.active == 2
        gate.open()
        await hark.until_texts(5)
        await settled(hark)


async def test_people_see_and_stop_it(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        await begun(hark, gate, label="*research* </approve>")
        ident = child_of(hark).rpartition(":")[2]
        await hark.write("/subagents")
        await hark.until_texts(2)
        shown = hark.channel.sent[-1]
        assert f"`{ident}` “research approve”: running" in shown.body
        assert [one.sends for one in shown.buttons] == [f"/subagents stop {ident}"]
        await hark.write("/status")
        assert "**Sub-agents** 1 at work" in (await hark.until_texts(3))[-1]
        await hark.write(f"/subagents stop {ident}")
        assert (await hark.until_texts(4))[-1] == "The sub-agent “research approve” is stopped."
        await hark.until(lambda: not hark.model.active, "the end of the run")
        gate.open()
        await hark.write("/subagents")
        assert (await hark.until_texts(5))[-1] == "No sub-agent is at work here."
        await settled(hark)


async def test_what_it_asks_for_is_asked_where_its_person_is(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool()]) as hark:
        hark.model.on("look it up", Call("ask", {"label": "it"}))
        await hark.say("find out", answers=[spawns(label="research"), "asked"])
        ident = await approval(hark)
        await hark.until(lambda: any("/approve" in text for text in hark.channel.texts()), "the request")
        assert "**May the sub-agent “research” run this?**" in hark.channel.texts()[-1]
        hark.model.add("found it")
        hark.model.on("found it", "so it is")
        assert await hark.service.parts.requests.decide(ident, Choice(verdict="once"), "telegram:1")
        await hark.until(lambda: "so it is" in hark.channel.texts(), "the end")
        await settled(hark)
        assert "found it" not in hark.channel.texts()


async def test_a_question_says_which_sub_agent_asks(hark: Hark) -> None:
    hark.model.on("look it up", Call("ask_person", {"question": "Which one?"}))
    hark.model.on("look it up", "found it")
    hark.model.whenever("<subagent>", "so it is")
    await hark.say("find out", answers=[spawns(label="*research* [x](https://evil.example)"), "asked"])
    await hark.until(lambda: any("Which one?" in text for text in hark.channel.texts()), "the question")
    head = "❓ **A question of the sub-agent “research xhttpsevilexample”**\n\nWhich one?"
    assert hark.channel.texts()[-1].startswith(head)
    await hark.write("the blue one")
    await hark.until(lambda: "so it is" in hark.channel.texts(), "the end")
    await settled(hark)


async def test_what_it_says_bears_what_it_has_read(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [WebTool()]) as hark:
        hark.model.on("look it up", Call("page"))
        await hark.say("find out", answers=[spawns(), "asked"])
        hark.model.whenever("<subagent>", "noted")
        await hark.until_texts(2)
        await settled(hark)
        (body,) = [body for (body,) in hark.stored.entries("body", kind="user") if "<subagent>" in body]
        assert '"shop.example"' in body


async def test_a_freeze_holds_it_and_a_thaw_lets_it_go_on(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        await begun(hark, gate)
        await hark.write("/freeze")
        await hark.until_texts(2)
        await hark.until(lambda: not hark.model.active, "the end of the run")
        assert hark.stored.turns("state", session_key=child_of(hark)) == [("queued",)]
        gate.open()
        hark.model.whenever("<subagent>", "noted")
        await hark.write("/thaw")
        await hark.until(lambda: "noted" in hark.channel.texts(), "the end")
        await settled(hark)
        assert sum("forty-two" in text for text in hark.stored.lines(PARENT)) == 1


async def test_a_conversation_sees_its_own_tree_and_an_owner_everything(tmp_path: Path) -> None:
    config = {"tools": {"by_sender": {"telegram:2": {"allow": ["group:sessions"]}}}}
    async with running(tmp_path, config=config) as hark:
        for sender in ("1", "2"):
            other = session_of("2" if sender == "1" else "1")
            await hark.say(f"the secret of {sender}", sender, answers=["hello"])
            hark.model.add(
                Call("sessions_list"),
                Call("sessions_history", {"session": other}),
                Call("session_status", {"session": other}),
                Call("sessions_send", {"session": other, "message": "boo"}),
            ) if sender == "2" else hark.model.add(
                Call("sessions_list"), Call("sessions_history", {"session": session_of("1")})
            )
            await hark.say("look around", sender, answers=["looked"])
        guest = hark.stored.lines(session_of("2"), "tool_result")
        assert session_of("1") not in guest[0]
        assert session_of("2") in guest[0]
        assert all("that this conversation may see" in text for text in guest[1:])
        await hark.say("what did they say?", answers=[Call("sessions_history", {"session": session_of("2")}), "read"])
        assert "the secret of 2" in hark.stored.lines(session_of("1"), "tool_result")[-1]


async def test_one_that_takes_too_long_is_told_of(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path) as hark:
        hark.model.whenever("look it up", Say("forty-two", gate=gate))
        hark.model.whenever("the sub-agent", "too slow")
        await hark.say("find out", answers=[spawns(label="research", timeout_seconds=0.2), "asked"])
        assert (await hark.until_texts(2))[1] == "too slow"
        assert '(the sub-agent "research" ran out of time. It says nothing.)' in hark.stored.lines(PARENT)[-1]
        await settled(hark)


async def test_what_a_sub_agent_was_asked_goes_with_its_person(tmp_path: Path) -> None:
    config = {"tools": {"by_sender": {"telegram:2": {"allow": ["group:sessions"]}}}}
    async with running(tmp_path, config=config) as hark:
        hark.model.whenever("look it up", "forty-two")
        hark.model.whenever("<subagent>", "noted")
        await hark.say("find out", "2", answers=[spawns(label="research"), "asked"])
        await hark.until_texts(2, "2")
        await settled(hark)
        assert hark.stored.turns("kind", kind="child", session_key=child_of(hark)) == [("child",)]
        await hark.service.parts.forget.forget_person("telegram:2")
        left = repr(hark.stored.everything())
        assert "research" not in left
        assert "forty-two" not in left


def test_a_sub_agent_is_offered_no_more_than_what_started_it_could_call() -> None:
    offer = Offer(("read", "exec", "page"), (), {"page": "not here"}, frozenset({"read"}), True)
    rules = ChildRules(tools=("read", "page", "web_fetch"), as_guest=("page",), by_owners=False)
    found = narrowed(offer, rules)
    assert (found.names, found.as_guest, found.by_owners) == (("read", "page"), {"read", "page"}, False)
    assert set(found.refused) == {"exec", "page"}


async def test_nobody_is_asked_whether_a_guest_may_write_to_a_session_that_they_do_not_see(tmp_path: Path) -> None:
    config = {
        "tools": {"deny": ["web_search"], "by_sender": {"telegram:2": {"allow": ["group:sessions", "web_fetch"]}}}
    }
    async with running(tmp_path, config=config, tools=lambda watch: [Page()]) as hark:
        await hark.say("hello", answers=["hello"])
        hark.model.add(Call("web_fetch", {"url": "https://one.example"}))
        hark.model.add(Call("sessions_send", {"session": PARENT, "message": "boo"}))
        hark.model.add("tried")
        await hark.say("tell them", "2")
        assert "that this conversation may see" in hark.stored.lines(session_of("2"), "tool_result")[-1]
        assert not hark.stored.approvals()


async def test_a_label_of_somebody_who_is_forgotten_goes_from_the_session_of_a_group(tmp_path: Path) -> None:
    config = {"tools": {"by_sender": {"telegram:2": {"allow": ["group:sessions"]}}}, **OPEN}
    async with running(tmp_path, config=config) as hark:
        hark.model.whenever("look it up", "forty-two")
        hark.model.whenever("<subagent>", "noted")
        hark.model.add(spawns(label="my illness"))
        hark.model.add("asked")
        await hark.write("find out", sender="2", origin=Origin(place=GROUP, sender="2", message_id="1"))
        await hark.until_texts(2, "-7")
        await settled(hark)
        await hark.service.parts.forget.forget_person("telegram:2")
        assert "illness" not in repr(hark.stored.everything())
