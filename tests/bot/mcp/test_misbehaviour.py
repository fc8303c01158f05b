"""MCP servers that break the protocol, talk without end, or will not end: each costs what is broken, and no more."""

import itertools
import json
import os
import signal
from pathlib import Path

import pytest

from agent.mcp import server as server_module
from tests.bot.mcp.house import ECHO, StandIn, having, hurry, lives, offered, results, until
from tests.service import running
from tests.standins.script import Call
from tests.watch import PATIENCE


async def test_a_tool_against_the_protocol_is_left_out_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [
        {"name": "no-schema"},
        {"name": "no-object", "inputSchema": {"type": "string"}},
        {"inputSchema": {"type": "object"}, "description": "nameless"},
        "no tool",
    ]
    stand_in = StandIn(tmp_path / "mcp", *({"raw": one} for one in broken), ECHO)
    async with running(tmp_path, config=having(("s", stand_in.server))) as hark:
        (found,) = await results(hark, Call("s_echo", {"a": "1"}))
        assert json.loads(found.text) == {"a": "1"}
        assert {*offered(hark)} == {"s_echo"}
    said = [line for line in capsys.readouterr().out.splitlines() if "left out" in line]
    assert len(said) == 3, "one line for each that has a name, and one for all others"
    assert "inputSchema: Field required" in next(line for line in said if "no-schema" in line)


async def test_many_messages_before_an_answer_do_not_cost_it(tmp_path: Path) -> None:
    notes = [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 0, "progress": 1}},
        {"jsonrpc": "2.0", "method": "notifications/unheard", "params": []},
    ]
    stand_in = StandIn(tmp_path / "mcp", {"name": "talk", "does": {"before": notes, "times": 1000, "text": "said"}})
    async with running(tmp_path, config=having(("s", stand_in.server))) as hark:
        for _ in range(2):
            (found,) = await results(hark, Call("s_talk", {}))
            assert (found.text, found.is_error) == ("said", False)
        assert len(stand_in.pids) == 1


async def test_what_a_server_asks_of_the_client_is_refused(tmp_path: Path) -> None:
    sample = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"x": {"type": "string"}}}}
    asks = [
        {"jsonrpc": "2.0", "id": "1", "method": "sampling/createMessage", "params": sample},
        {"jsonrpc": "2.0", "id": 2, "method": "elicitation/create", "params": form},
        {"jsonrpc": "2.0", "id": 3, "method": "roots/list"},
        {"jsonrpc": "2.0", "id": 4, "method": "nothing/known"},
        {"jsonrpc": "2.0", "id": 5, "method": "ping"},
    ]
    stand_in = StandIn(tmp_path / "mcp", {"name": "ask", "does": {"before": asks, "text": "asked"}})
    async with running(tmp_path, config=having(("s", stand_in.server))) as hark:
        (found,) = await results(hark, Call("s_ask", {}))
        assert found.text == "asked"
        await until(lambda: len([one for one in stand_in.log if "method" not in one and "id" in one]) == len(asks))
    answers = {one["id"]: one for one in stand_in.log if "method" not in one and "id" in one}
    assert all("not supported" in answers[ident]["error"]["message"] for ident in ("1", 2, 3))
    assert (answers[4]["error"]["code"], answers[5]["result"]) == (-32601, {})


async def test_an_answer_counts_though_the_server_ends_behind_it(tmp_path: Path) -> None:
    stand_in = StandIn(tmp_path / "mcp", {"name": "last", "does": {"text": "x" * 300_000 + "!", "then": "ends"}})
    async with running(tmp_path, config=having(("s", stand_in.server))) as hark:
        (found,) = await results(hark, Call("s_last", {}))
        assert not found.is_error
        await until(lambda: not hark.service.parts.mcp.connected)
        assert stand_in.running() == []


@pytest.mark.waits
async def test_a_server_that_closes_its_output_and_lives_on_is_started_anew(tmp_path: Path) -> None:
    """Waits for a program that has to end."""
    deaf = {"name": "close", "does": {"then": "closes"}}
    stand_in = StandIn(tmp_path / "mcp", ECHO, deaf)
    async with running(tmp_path, config=having(("s", stand_in.server))) as hark:
        await results(hark, Call("s_close", {}))
        (found,) = await results(hark, Call("s_echo", {"a": "1"}))
        assert json.loads(found.text) == {"a": "1"}
        assert (len(stand_in.pids), len(stand_in.running())) == (2, 1)


@pytest.mark.parametrize("end", [{"nextCursor": ""}, {"nextCursor": "1"}])
async def test_a_list_without_end_ends(tmp_path: Path, end: dict[str, str]) -> None:
    stand_in = StandIn(tmp_path / "mcp", ECHO, end=end)
    async with running(tmp_path, config=having(("s", stand_in.server))) as hark:
        (found,) = await results(hark, Call("s_echo", {"a": "1"}))
        assert json.loads(found.text) == {"a": "1"}
        assert {*offered(hark)} == {"s_echo"}


async def test_a_server_that_ends_by_nothing_ends_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurry(monkeypatch)
    stand_in = StandIn(tmp_path / "mcp", ECHO, stays=True)
    async with running(tmp_path, config=having(("s", stand_in.server))) as hark:
        await results(hark, Call("s_echo", {"a": "1"}))
        assert len(stand_in.running()) == 2
    assert len(stand_in.pids) == 2
    assert not any(map(lives, stand_in.pids))


async def test_a_stop_does_not_wait_for_a_server_that_never_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_CLOSE_SECONDS", 2 * PATIENCE)  # for longer than the service may take to end
    stand_in = StandIn(tmp_path / "mcp", ECHO, mute=True, stays=True)
    async with running(tmp_path, config=having(("s", stand_in.server))):
        await until(lambda: any(one.get("method") == "initialize" for one in stand_in.log))
    assert len(stand_in.pids) == 2
    assert stand_in.running() == []


@pytest.mark.waits
@pytest.mark.parametrize(("turns", "restarts"), [(24, 12), pytest.param(1000, 20, marks=pytest.mark.soak)])
async def test_processes_are_those_of_the_servers_over_turns_and_restarts(
    tmp_path: Path, turns: int, restarts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waits for 26 starts of real programs."""
    hurry(monkeypatch)
    ends = {"die": {"exit": 3}, "close": {"then": "closes"}, "leave": {"then": "ends"}}
    plain = StandIn(tmp_path / "s", ECHO, *({"name": name, "does": does} for name, does in ends.items()))
    stays = StandIn(tmp_path / "t", ECHO, stays=True)
    how = itertools.cycle(("kill", *ends))
    async with running(tmp_path, config=having(("s", plain.server), ("t", stays.server))) as hark:
        for turn in range(turns):
            found = await results(hark, *(Call(f"{name}_echo", {"a": str(turn)}) for name in "st"))
            assert [json.loads(one.text) for one in found] == [{"a": str(turn)}] * 2
            assert (len(plain.running()), len(stays.running())) == (1, 2)
            if turn % (turns // restarts):
                continue
            if (end := next(how)) == "kill":
                for pid in (*plain.running(), stays.pids[-2]):
                    os.kill(pid, signal.SIGKILL)
            else:
                await results(hark, Call(f"s_{end}", {}))
        assert len(plain.pids) >= restarts
        assert len(plain.calls) == turns + restarts - restarts // 4
    assert not any(map(lives, (*plain.pids, *stays.pids)))
