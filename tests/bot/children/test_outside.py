"""Sub-agents and what happens outside of their conversation: crashes, programs, pruning."""

from datetime import timedelta
from pathlib import Path

import pytest

from agent.context import NOT_EXECUTED
from agent.message import ToolCall, ToolResult
from bot.children.tools import SendParameters
from bot.persistence.children import sent_key
from channels.message import InboundKind, InboundMessage
from tests.bot.children.test_children import child_of, settled, spawns
from tests.bot.gateway.house import TOKEN, house
from tests.bot.gateway.test_agent import error_of
from tests.bot.store.opened import accept, claim, opened
from tests.bot.store.test_running_time import answer
from tests.service import running
from tests.standins.script import Call
from tests.stored import Stored


@pytest.mark.parametrize("done", [True, False])
async def test_after_a_crash_the_model_is_told_whether_it_has_written_to_a_session(tmp_path: Path, done: bool) -> None:
    async with opened(tmp_path) as store:
        await accept(store)
        turn = await claim(store)
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


async def test_what_it_has_done_is_pruned_and_it_can_be_asked_again(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.model.whenever("look it up", "forty-two")
        hark.model.whenever("<subagent>", "noted")
        hark.model.add(spawns())
        hark.model.add("asked")
        await hark.say("find out")
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
