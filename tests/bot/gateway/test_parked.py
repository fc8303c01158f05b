"""A parked run over HTTP: it has not ended, for whoever waits for it, follows it or stops it."""

import asyncio
from pathlib import Path

from agent.message import ToolCall
from bot.persistence.approvals import Choice
from bot.persistence.turns import TurnState
from channels.session_key import console_key
from tests.asking import ASKED, AskingTool
from tests.bot.gateway.house import TOKEN, House, house

CALL = ToolCall("c1", "ask", '{"label": "it"}')


async def parked(at: House) -> str:
    """A run that waits for a person."""
    run = await at.submit("do it")
    (await at.model.called()).finish("", CALL)
    async with at.events(f"?run={run}") as stream:
        await stream.until("agent_end")
    return run


async def decide(at: House, run: str) -> bool:
    ((ident,),) = at.stored.approvals("approval_id", turn_id=run)
    return await at.service.parts.requests.decide(ident, Choice(verdict="once"), "owner")


async def test_a_wait_goes_on_while_the_run_is_parked(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, besides=[AskingTool()]) as at:
        run = await parked(at)
        response = await at.http.get(f"/v1/agent/{run}?wait=0.05")
        assert (response.status_code, response.json()["status"]) == (202, "waiting_approval")
        assert response.json()["text"] == ""
        assert response.json()["waiting_for"]["subject"] == ASKED
        await decide(at, run)
        (await at.model.called()).answer("Done.")
        found = await at.show(run, wait="20")
        assert (found["status"], found["text"]) == ("ok", "Done.")
        assert found["waiting_for"] is None


async def test_a_wait_that_began_before_the_run_was_parked(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, besides=[AskingTool()]) as at:
        run = await at.submit("do it")
        call = await at.model.called()
        waiting = asyncio.create_task(at.service.parts.api.wait(run, 20))
        async with at.events(f"?run={run}") as stream:
            call.finish("", CALL)
            await stream.until("agent_end")
        await decide(at, run)
        (await at.model.called()).answer("Done.")
        found = await waiting
        assert found is not None
        assert found.state is TurnState.DONE


async def test_a_stream_goes_on_behind_the_parking(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, besides=[AskingTool()]) as at:
        run = await parked(at)
        async with at.events(f"?run={run}") as stream:
            seen = await stream.until("agent_end")
            assert seen[-1].data["outcome"] == "parked"
            await decide(at, run)
            (await at.model.called()).answer("Done.")
            rest = await stream.rest()
        assert (rest[0].event, rest[0].data["kind"]) == ("notice", "allowed")
        assert (rest[1].event, rest[1].data["run"]["attempt"]) == ("agent_start", 2)
        assert (rest[-1].event, rest[-1].data["outcome"]) == ("agent_end", "completed")
        async with at.events(f"?run={run}", seen[-1].id) as stream:
            again = await stream.rest()
        assert [sent.id for sent in again] == [sent.id for sent in rest if sent.id]


async def test_a_parked_run_can_be_aborted(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, besides=[AskingTool()]) as at:
        run = await parked(at)
        response = await at.http.delete(f"/v1/agent/{run}")
        assert (response.status_code, response.json()["status"]) == (200, "aborted")
        assert (await at.show(run, wait="20"))["status"] == "aborted"
        assert not await decide(at, run)


async def test_a_terminal_is_shown_the_question_once(tmp_path: Path) -> None:
    async with (
        house(tmp_path, besides=[AskingTool(words="")]) as at,
        at.unix() as unix,
        at.events(f"?session={console_key()}", client=unix) as terminal,
    ):
        response = await unix.post("/v1/agent", json={"message": "do it", "session": console_key()})
        (await at.model.called()).finish("", CALL)
        seen = await terminal.until("agent_end")
        await decide(at, response.json()["run_id"])
        (await at.model.called()).answer("Done.")
        while seen[-1].data.get("outcome") != "completed":
            seen += await terminal.until("agent_end")
        assert [sent.data["message"] for sent in seen if sent.event == "agent_start"] == ["do it", ""]
