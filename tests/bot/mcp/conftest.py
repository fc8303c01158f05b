"""What holds for the tests of MCP: a server is a real program, which on a busy machine takes seconds to start."""

import pytest

from tests.watch import PATIENCE


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls and the first run wait for a server for as long as tests wait for anything."""
    monkeypatch.setattr("agent.mcp.server._PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr("bot.mcp.servers._FIRST_SECONDS", PATIENCE)
