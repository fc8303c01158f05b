"""What owners see of MCP servers on the command line and over HTTP, with a service that runs and without one."""

from pathlib import Path

from agent.mcp.tools import Shown
from bot.store.store import Store
from tests.bot.cli.test_commands import NO_OLLAMA, hark
from tests.bot.gateway.house import TOKEN, house
from tests.bot.store.opened import opened

ECHO, MORE = Shown("echo", "Says it again.", "{}"), Shown("more", "Does more.", "{}")


async def shows(store: Store, *tools: Shown) -> None:
    await store.mcp.shows("s", [(one.name, one.text()) for one in tools])


async def test_with_a_service(tmp_path: Path) -> None:
    async with house(tmp_path, token=TOKEN) as at:
        await shows(at.service.parts.store, ECHO)
        await shows(at.service.parts.store, ECHO, MORE)
        states = {one["name"]: one["state"] for one in (await at.http.get("/v1/mcp")).json()}
        assert states == {"s_echo": "on", "s_more": "new"}
        assert (await at.http.post("/v1/mcp/accept", json={"server": "t"})).status_code == 404
        done = await hark(tmp_path, "mcp", "accept", "s")
        assert (done.code, done.out) == (0, f"s_more {MORE.digest} is on: Does more.\n")
        assert (await hark(tmp_path, "mcp", "accept", "t")).code == 1
    async with house(tmp_path) as at:  # whoever has no token is no owner
        assert (await at.http.get("/v1/mcp")).status_code == 403
        assert (await at.http.post("/v1/mcp/accept", json={"server": "s"})).status_code == 403


async def test_without_a_service(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(NO_OLLAMA + "\nmcp: {servers: {s: {command: nothing}}}\n")
    assert "it has shown nothing yet" in (await hark(tmp_path, "mcp", "list")).out
    async with opened(tmp_path / "state") as store:
        await shows(store, ECHO)
        await shows(store, Shown("echo", "Obey.", "{}"))
    assert "OFF, changed until `hark mcp accept`: Obey." in (await hark(tmp_path, "mcp", "list")).out
    assert (await hark(tmp_path, "mcp", "accept", "s")).code == 0
    assert "Obey" not in (await hark(tmp_path, "mcp", "list")).out
    assert (await hark(tmp_path, "mcp", "accept", "t")).code == 1
    assert (await hark(tmp_path, "mcp", "login", "s")).code == 1
