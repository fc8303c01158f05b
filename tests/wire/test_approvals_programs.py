"""Requests as programs, the command line and the terminal see them: with a service that runs and without one."""

import asyncio
import contextlib
import functools
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.message import ToolCall
from channels.session_key import console_key
from tests.bot.cli.test_commands import NO_OLLAMA
from tests.bot.cli.test_commands import hark as begin_hark
from tests.bot.gateway.house import TOKEN, House, house
from tests.forked import hark

pytestmark = pytest.mark.xdist_group("wire-tools")


def command(name: str) -> str:
    return f"cp -v --backup=numbered seed tally-{name}"


def ran(folder: Path, name: str) -> int:
    found = folder / "workspace"
    return len([*found.glob(f"tally-{name}"), *found.glob(f"tally-{name}.~*~")])


@contextlib.asynccontextmanager
async def open_house(folder: Path, **more: object) -> AsyncIterator[House]:
    (folder / "workspace").mkdir(exist_ok=True)
    (folder / "workspace" / "seed").write_text("seed")
    (folder / "config.yaml").write_text(f"{NO_OLLAMA}gateway: {{token: {TOKEN}, port: 0}}\n")
    async with house(folder, token=TOKEN, **more) as at:  # type: ignore[arg-type]
        yield at


async def parked(at: House, name: str) -> str:
    """A run that waits for a decision about a command."""
    run = await at.submit(f"do {name}", session=f"agent:main:http:direct:{name}")
    call = await at.model.called()
    call.finish("", ToolCall(f"call-{name}", "exec", f'{{"command": "{command(name)}", "needs": "host"}}'))
    async with at.events(f"?run={run}") as stream:
        seen = await stream.until("agent_end")
    assert seen[-1].data["outcome"] == "parked"
    return run


def ident(text: str) -> str:
    """The id of a request in a text."""
    found = re.search(r"\b[0-9a-f]{8}(?:-[0-9a-f-]{27})?\b", text)
    assert found, text
    return found.group()


async def finished(at: House, run: str) -> dict[str, object]:
    (await at.model.called()).answer("Done.")
    return await at.show(run, wait="10")


@pytest.mark.waits
async def test_a_run_that_waits_is_decided_by_programs_the_command_line_and_the_terminal(tmp_path: Path) -> None:
    """Waits for `hark` in processes of its own."""
    async with open_house(tmp_path) as at:
        cli = functools.partial(begin_hark, tmp_path, "approvals")
        for name, decision in (("allow", "approve"), ("refuse", "deny")):
            run = await parked(at, name)
            assert (await at.show(run))["status"] == "waiting_approval"
            waiting = await at.http.get(f"/v1/agent/{run}?wait=0.05")
            assert (waiting.status_code, waiting.json()["status"]) == (202, "waiting_approval")
            listed = await cli("list")
            assert (listed.code, command(name) in listed.out) == (0, True), listed
            number = ident(listed.out)
            decided = await cli(decision, number)
            assert decided.code == 0, decided
            for wrong in (number, "ffffffff-ffff-4fff-8fff-ffffffffffff"):
                refused = await cli(decision, wrong)
                assert (refused.code != 0, "Traceback" in refused.error) == (True, False), refused
            assert (await finished(at, run))["status"] == "ok"
            assert ran(tmp_path, name) == (decision == "approve")

        run = await parked(at, "gone")
        number = ident((await cli("list")).out)
        assert (await at.http.delete(f"/v1/agent/{run}")).json()["status"] == "aborted"
        assert (await cli("approve", number)).code != 0
        assert (command("gone") not in (await cli("list")).out, ran(tmp_path, "gone")) == (True, 0)

        run = await parked(at, "gate")
        ((number,),) = at.stored.approvals("approval_id", state="open")
        body = {"message": f"/approve {number} once", "session": "agent:main:http:direct:other"}
        token = at.http.headers.pop("authorization")
        assert (await at.http.post("/v1/agent", json=body)).status_code in (401, 403)
        assert len(at.stored.approvals(state="open")) == 1
        at.http.headers["authorization"] = token
        told = (await at.http.post("/v1/agent", json=body | {"typed": True})).json()["run_id"]
        assert "Only a person can give `/approve`" in (await at.show(told, wait="20"))["text"]
        assert (len(at.stored.approvals(state="open")), ran(tmp_path, "gate")) == (1, 0)
        assert (await cli("approve", number)).code == 0
        assert (await finished(at, run))["status"] == "ok"
        assert ran(tmp_path, "gate") == 1

        async with at.unix() as unix, at.events(f"?session={console_key()}", client=unix) as terminal:
            for name, words in (("yes", "once"), ("no", "deny")):
                response = await unix.post("/v1/agent", json={"message": f"do {name}", "session": console_key()})
                call = await at.model.called()
                call.finish("", ToolCall(f"call-{name}", "exec", f'{{"command": "{command(name)}", "needs": "host"}}'))
                seen = await terminal.until("agent_end")
                while seen[-1].data.get("outcome") != "parked":
                    seen += await terminal.until("agent_end")
                text = "".join(str(sent.data) for sent in seen)
                assert command(name) in text, text
                found = re.search(r"/approve ([0-9a-f-]+) once", text)
                assert found, text
                said = {"message": f"/approve {found[1]} {words}", "session": console_key()}
                program = (await unix.post("/v1/agent", json=said)).json()["run_id"]
                await at.show(program, wait="20")
                assert len(at.stored.approvals(state="open")) == 1, "a program decides nothing by words"
                assert (await unix.post("/v1/agent", json=said | {"typed": True})).status_code == 202
                assert (await finished(at, response.json()["run_id"]))["status"] == "ok"
                assert ran(tmp_path, name) == (words == "once")


async def test_without_a_service_it_is_decided_for_the_next_one(tmp_path: Path) -> None:
    async with open_house(tmp_path) as at:
        runs = {name: await parked(at, name) for name in ("later", "never")}
    listed = await asyncio.to_thread(hark, tmp_path, "approvals", "list")
    assert (listed.code, [name for name in runs if command(name) in listed.out]) == (0, ["later", "never"]), listed
    for name, decision in (("later", "approve"), ("never", "deny")):
        number = next(ident for ident, ask in at.stored.approvals("approval_id", "ask") if command(name) in str(ask))
        decided = await asyncio.to_thread(hark, tmp_path, "approvals", decision, str(number)[:8])
        assert decided.code == 0, decided
    assert (await asyncio.to_thread(hark, tmp_path, "approvals", "deny", str(number))).code != 0
    assert (ran(tmp_path, "later"), ran(tmp_path, "never")) == (0, 0)
    async with open_house(tmp_path, reply="Done.") as at:
        for name, run in runs.items():
            assert (await at.show(run, wait="10"))["status"] == "ok", name
    assert (ran(tmp_path, "later"), ran(tmp_path, "never")) == (1, 0)
