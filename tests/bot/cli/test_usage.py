"""`hark usage`, with a service that runs and without one."""

import json
from pathlib import Path

from tests.bot.cli.test_commands import Done, alone, hark
from tests.bot.gateway.house import House
from tests.bot.gateway.test_heartbeat import owner_writes

__all__ = ["alone"]  # a fixture


async def test_the_service_that_runs_is_asked(tmp_path: Path, at: House) -> None:
    await owner_writes(at)
    shown = await hark(tmp_path, "usage")
    assert shown.out.startswith("| Today, by model | calls | fresh | cached | written | output | cost |\n")
    assert "| agent:main:console:direct:local | 1 |" in shown.out
    found = json.loads((await hark(tmp_path, "usage", "--json")).out)
    assert [one["calls"] for one in found["week_by_model"]] == [1]
    assert (await at.http.get("/v1/usage")).status_code == 403


async def test_without_a_service_the_store_is_asked(alone: Path) -> None:
    assert await hark(alone, "usage") == Done(0, "No model has been asked within seven days.\n", "")
