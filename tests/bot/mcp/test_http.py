"""MCP servers that speak HTTP: calls, sessions that end, headers, logins."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent.mcp import server as server_module
from agent.mcp.login import login
from bot.mcp.servers import settings_of
from tests.bot.mcp.house import ECHO, having, offered, results, until
from tests.service import running, settings
from tests.standins.mcp_http import McpHttp
from tests.standins.script import Call
from tests.watch import LoopTime

HUGE = "x" * 1_000_001


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"tools": [ECHO, {"name": "slow"}, {"name": "huge", "does": {"text": HUGE}}]}))
    return path


@pytest.mark.parametrize("events", [False, True])
async def test_a_server_over_http_is_called(tmp_path: Path, plan: Path, events: bool) -> None:
    async with McpHttp(plan, events) as server:
        config = having(("s", {"url": server.url, "headers": {"X-Api-Key": "hush-hush-hush"}}))
        async with running(tmp_path, config=config) as hark:
            (found,) = await results(hark, Call("s_echo", {"a": "1"}))
            assert json.loads(found.text) == {"a": "1"}
            assert all(one.headers["x-api-key"] == "hush-hush-hush" for one in server.seen)
            (found,) = await results(hark, Call("s_huge", {}))
            assert "[the rest of 1000001 characters is left out]" in found.text
            server.sessions.clear()  # as when it was started anew
            (found,) = await results(hark, Call("s_echo", {"a": "2"}))
            assert json.loads(found.text) == {"a": "2"}
        assert server.sessions == {}  # it was told that the session is over
    assert server.broken == []


async def test_a_server_that_is_away_costs_one_error(tmp_path: Path, plan: Path) -> None:
    async with McpHttp(plan) as server:
        config = having(("s", {"url": server.url, "timeout_seconds": 60}))
        async with running(tmp_path, config=config) as hark:
            await results(hark, Call("s_echo", {"a": "1"}))
            server._server.close()
            (found,) = await results(hark, Call("s_echo", {"a": "2"}))
            assert found.is_error
            async with McpHttp(plan, port=server.port, hangs="slow") as other:
                (found,) = await results(hark, Call("s_echo", {"a": "3"}))
                assert "next try is in" in found.text
                hark.service.parts.mcp._servers["s"]._not_before = 0.0
                (found,) = await results(hark, Call("s_echo", {"a": "4"}))
                assert json.loads(found.text) == {"a": "4"}
                time = LoopTime()
                calling = asyncio.create_task(results(hark, Call("s_slow", {})))
                await until(lambda: other.seen[-1].tool == "slow")
                await time.advance(60)
                (found,) = await calling
                assert "has not answered within 60 s" in found.text


async def test_nobody_waits_for_a_server_to_end_its_session(
    tmp_path: Path, plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_CLOSE_SECONDS", 0.1)
    async with (
        McpHttp(plan, hangs="DELETE") as server,
        running(tmp_path, config=having(("s", {"url": server.url}))) as hark,
    ):
        await results(hark, Call("s_echo", {"a": "1"}))
        server.sessions.clear()
        (found,) = await results(hark, Call("s_echo", {"a": "2"}))
        assert json.loads(found.text) == {"a": "2"}
        assert server.seen[-1].method == "POST"


async def test_what_is_secret_does_not_follow_to_another_host(
    tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with McpHttp(plan) as other, McpHttp(plan, moved=other.url) as server:
        config = having(("s", {"url": server.url, "headers": {"Authorization": "Bearer hush-hush-hush"}}))
        async with running(tmp_path, config=config) as hark:
            await hark.say("go", answers=["done"])
            assert offered(hark) == {}
        assert server.seen
        assert other.seen == []
    assert f"Redirect to {other.url} not followed" in capsys.readouterr().out


async def browse(server: McpHttp, address: str) -> None:
    """Open an address as a browser does that follows one redirect."""
    for _ in range(2):
        parts = urlsplit(address)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        head = (await reader.read()).decode()
        writer.close()
        address = next((line[10:] for line in head.split("\r\n") if line.startswith("Location: ")), "")
    assert "Done." in head


async def test_a_login_is_kept_for_this_user_alone_and_renewed(tmp_path: Path, plan: Path) -> None:
    async with McpHttp(plan, login=True) as server:
        given: dict[str, Any] = having(("s", {"url": server.url}))
        config = settings(tmp_path, given)
        browsing: list[asyncio.Task[None]] = []
        reached = settings_of("s", config.mcp.servers["s"], config)
        await login(reached, lambda address: browsing.append(asyncio.create_task(browse(server, address))))
        await asyncio.gather(*browsing)
        assert stat.S_IMODE(reached.tokens.stat().st_mode) == 0o600
        async with running(tmp_path, config=given) as hark:
            (found,) = await results(hark, Call("s_echo", {"a": "1"}))
            assert json.loads(found.text) == {"a": "1"}
        kept = json.loads(reached.tokens.read_text())
        assert kept["tokens"]["access_token"] in server.tokens
        reached.tokens.write_text(json.dumps({**kept, "until": 1.0}))  # its time is over
        server.tokens.clear()
        async with running(tmp_path, config=given) as hark:
            (found,) = await results(hark, Call("s_echo", {"a": "2"}))
            assert json.loads(found.text) == {"a": "2"}
            assert stat.S_IMODE(reached.tokens.stat().st_mode) == 0o600
            server.tokens.clear()
            server.renewals.clear()
            (found,) = await results(hark, Call("s_echo", {"a": "3"}))
            assert "hark mcp login s" in found.text
    assert server.broken == []


async def test_without_a_login_nothing_is_offered_and_the_log_says_what_to_do(
    tmp_path: Path, plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        McpHttp(plan, login=True) as server,
        running(tmp_path, config=having(("s", {"url": server.url}))) as hark,
    ):
        await hark.say("go", answers=["done"])
        assert offered(hark) == {}
    assert "hark mcp login s" in capsys.readouterr().out
