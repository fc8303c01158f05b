"""MCP servers for tests: the stand-in as a program, and services that use it."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent.message import ToolResult
from tests.service import Hark
from tests.standins import mcp_stdio
from tests.standins.script import Call
from tests.watch import PATIENCE

Json = dict[str, Any]
ECHO: Json = {
    "name": "echo",
    "description": "Says it again.",
    "schema": {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"]},
}


class StandIn:
    """The stand-in as a program, and what it does."""

    def __init__(self, home: Path, *tools: Json, **more: Any) -> None:
        home.mkdir(exist_ok=True)
        self.plan = home / "plan.json"
        self.show(*tools, **more)

    def show(self, *tools: Json, **more: Any) -> None:
        self.plan.write_text(json.dumps({"tools": tools, **more}))

    @property
    def server(self) -> Json:
        return {"command": sys.executable, "args": ["-I", "-S", mcp_stdio.__file__, str(self.plan)]}

    @property
    def log(self) -> list[Json]:
        with suppress(FileNotFoundError):
            return [json.loads(line) for line in Path(f"{self.plan}.log").read_text().splitlines()]
        return []

    @property
    def pids(self) -> list[int]:
        return [one["pid"] for one in self.log if "pid" in one]

    @property
    def calls(self) -> list[Json]:
        return [one for one in self.log if one.get("method") == "tools/call"]

    def running(self) -> list[int]:
        return [pid for pid in self.pids if lives(pid)]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def having(*servers: tuple[str, Json], **more: Any) -> Json:
    return {"mcp": {"servers": dict(servers)}, "tools": {"untrusted": {"mcp": "allow"}}, **more}


async def results(hark: Hark, *calls: Call, sender: str = "1") -> Sequence[ToolResult]:
    """Let the model make these calls; what it was told of them."""
    hark.model.add(*calls)
    await hark.say("go", sender, answers=["done"])
    return hark.model.requests[-1].messages[-1].tool_results


def offered(hark: Hark) -> dict[str, str]:
    return {one.name: one.schema_json for one in hark.model.requests[-1].tools if one.name.startswith("s_")}


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give servers hardly any time to end by themselves; here they do not do so."""
    for name in ("_LEAVE_SECONDS", "_END_SECONDS", "OUTPUT_GRACE_SECONDS"):
        monkeypatch.setattr(f"agent.mcp.pipes.{name}", 0.01)


async def until(condition: Callable[[], object]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
