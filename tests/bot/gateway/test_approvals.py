"""Requests over HTTP and at the command line: for owners alone, and decided once."""

import asyncio
import json
from pathlib import Path

import pytest

from agent.message import ToolCall
from bot.persistence.approvals import Choice
from bot.persistence.turns import TurnState
from channels.session_key import console_key
from tests.asking import ASKED, AskingTool
from tests.bot.approvals.test_approvals import COMMAND, Commanding
from tests.bot.cli.test_commands import Done, alone, hark
from tests.bot.gateway.house import TOKEN, House, house
from tests.bot.gateway.test_agent import error_of

__all__ = ["alone"]  # a fixture
CALL = ToolCall("c1", "ask", '{"label": "it"}')


async def parked(at: House, session: str = "default") -> tuple[str, str]:
    """A run that waits, and the id of its request."""
    run = await at.submit("do it", session=session)
    (await at.model.called()).finish("", CALL)
    async with at.events(f"?run={run}") as stream:
        await stream.until("agent_end")
    ((ident,),) = at.stored.approvals("approval_id", turn_id=run)
    return run, ident


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("POST", "/0"), ("GET", "/rules"), ("POST", "/rules")], ids=str
)
async def test_without_a_token_it_is_shut(method: str, path: str, at: House) -> None:
    response = await at.http.request(method, f"/v1/approvals{path}", json={"decision": "once"})
    assert (response.status_code, error_of(response)["code"]) == (403, "owners_only")


async def test_a_request_is_seen_decided_and_allowed_for_always(tmp_path: Path) -> None:
    tool = Commanding(why=("Because.",), risks=("It deletes.",))
    async with house(tmp_path, token=TOKEN, besides=[tool]) as at:
        run, ident = await parked(at)
        waits = (await at.show(run))["waiting_for"]
        assert waits == {"id": ident, "subject": COMMAND, "options": [], "expires_at": waits["expires_at"]}
        (found,) = (await at.http.get("/v1/approvals")).json()
        assert (found["approval_id"], found["ask"]["subject"]) == (ident, COMMAND)
        assert (found["state"], found["ask"]["why"], found["turn_id"]) == ("open", ["Because."], run)
        for path, body, status, code in (
            ("0" * 32, {"decision": "once"}, 404, "no_such_request"),
            ("x", {"decision": "once"}, 404, "no_such_request"),
            (ident, {"decision": "maybe"}, 422, "invalid"),
            (ident, {"decision": "answer", "reason": "5"}, 422, "invalid"),
            (ident, {"decision": "deny", "seconds": 60}, 422, "invalid"),
        ):
            response = await at.http.post(f"/v1/approvals/{path}", json=body)
            assert (response.status_code, error_of(response)["code"]) == (status, code)
        decided = await at.http.post(f"/v1/approvals/{ident[:8]}", json={"decision": "always"})
        assert (decided.status_code, decided.json()["state"], decided.json()["decided_by"]) == (
            200,
            "always",
            "http:owner",
        )
        (await at.model.called()).answer("Done.")
        assert (await at.show(run, wait="20"))["waiting_for"] is None
        again = await at.http.post(f"/v1/approvals/{ident}", json={"decision": "deny"})
        assert (again.status_code, error_of(again)["code"]) == (409, "ended")
        assert "decided before: ✓ Allowed always by the HTTP interface" in error_of(again)["message"]
        assert (await at.http.get("/v1/approvals")).json() == []
        (rule,) = (await at.http.get("/v1/approvals/rules")).json()
        assert (rule["words"], rule["by"]) == ("`rm -rf build`", "http:owner")
        for status in (200, 404):
            response = await at.http.post("/v1/approvals/rules", json={"forget": rule["what"]})
            assert response.status_code == status
        assert at.service.parts.requests.grants.of("") == set()
        assert tool.begun == ["it"]


async def test_a_question_is_answered(tmp_path: Path) -> None:
    tool = Commanding("How many?", grants=(), question=True, who="asker", options=("three", "five"))
    async with house(tmp_path, token=TOKEN, besides=[tool]) as at:
        run, ident = await parked(at)
        assert (await at.show(run))["waiting_for"]["options"] == ["three", "five"]
        response = await at.http.post(f"/v1/approvals/{ident}", json={"decision": "answer", "reason": "2"})
        assert (response.json()["state"], response.json()["reason"]) == ("answered", "five")
        (await at.model.called()).answer("Done.")
        assert (await at.show(run, wait="20"))["status"] == "ok"


async def test_at_the_command_line_with_a_service(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN, besides=[Commanding("make\nrm \u202e", why=("Because.",))]) as at:
        _, first = await parked(at, "one")
        _, second = await parked(at, "two")
        listed = await hark(tmp_path, "approvals", "list")
        assert listed.out.count("\n    make\n    rm ⟨U+202E⟩\n    - Because.\n") == 2
        shown = json.loads((await hark(tmp_path, "approvals", "list", "--json")).out)
        assert [one["approval_id"] for one in shown] == [first, second]
        missing = await hark(tmp_path, "approvals", "approve", "0000")
        assert (missing.code, missing.out) == (1, "")
        assert missing.error.startswith("There is no request 0000.")
        denied = await hark(tmp_path, "approvals", "deny", first, "--reason", "not now")
        assert (denied.code, denied.out) == (0, "✗ Denied: make\nrm ⟨U+202E⟩\n")
        assert at.stored.approvals("reason", "decided_by", approval_id=first) == [("not now", "console:owner")]
        assert (await hark(tmp_path, "approvals", "approve", "--always", second[:8])).code == 0
        rules = await hark(tmp_path, "approvals", "rules")
        assert rules.out.startswith("1  `make")
        assert [(await hark(tmp_path, "approvals", "forget", number)).code for number in ("2", "1")] == [1, 0]
        for _ in range(2):
            (await at.model.called()).answer("Done.")


async def test_at_the_command_line_without_a_service(alone: Path) -> None:
    """What is decided then is carried out by the next service, whose messages show it."""
    tool = Commanding()
    async with house(alone, token=TOKEN, besides=[tool]) as at:
        _, ident = await parked(at)
    listed = await hark(alone, "approvals", "list")
    assert f"{ident[:8]}  ask, asked by http:owner, until " in listed.out
    assert (await hark(alone, "approvals", "approve", "0000")).code == 1
    approved = await hark(alone, "approvals", "approve", ident[:8], "--always")
    assert approved == Done(0, "✓ Allowed always: rm -rf build\n", "")
    assert await hark(alone, "approvals", "list") == Done(0, "Nothing waits for a decision.\n", "")
    late = await hark(alone, "approvals", "deny", ident)
    assert (late.code, late.error) == (
        1,
        "That was decided before: ✓ Allowed always by the terminal. Nothing has changed.\n",
    )
    assert (await hark(alone, "approvals", "forget", "1")).code == 0
    async with house(alone, token=TOKEN, besides=[tool]) as at:
        (await at.model.called()).answer("Done.")
        assert tool.begun == ["it"]


# A parked run over HTTP: it has not ended, for whoever waits for it, follows it or stops it.


async def parked_run(at: House) -> str:
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
        run = await parked_run(at)
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
        run = await parked_run(at)
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
        run = await parked_run(at)
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
