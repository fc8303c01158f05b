"""The tools for commands as a service makes them, without one."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.shell import Judge, parse_rule
from agent.tools.background import Background, Running
from agent.tools.exec import ExecTool, scrubbed
from agent.tools.overflow import Overflow
from agent.tools.permission import Asking, Permission, Security
from agent.tools.process_tool import ProcessTool
from agent.tools.workspace import Workspace


@dataclass
class Commands:
    """Both tools. told: sessions, and what they were told of an end, if anything. now: time, in seconds."""

    exec: ExecTool
    process: ProcessTool
    background: Background
    told: list[tuple[str, str]]
    now: list[float]
    news: asyncio.Event

    async def until_told(self, count: int) -> None:
        """Return once so many have ended and been told of, or need not be."""
        while len(self.told) < count:
            self.news.clear()
            async with asyncio.timeout(10):
                await self.news.wait()


def commands(
    root: Path,
    seconds: float = 600,
    *,
    security: Security = "full",
    ask: Asking = "on-miss",
    fallback: Security = "deny",
    allowlist: Sequence[str] = (),
    grants: Callable[[], Collection[str]] = tuple,
    environ: Mapping[str, str] = os.environ,
) -> Commands:
    """Everything may run, unless something else is said."""
    told: list[tuple[str, str]] = []
    now = [0.0]
    news = asyncio.Event()

    async def over(one: Running) -> None:
        told.append((one.session_key, one.told()))
        news.set()

    judge = Judge(workspace=root, path=scrubbed(environ)["PATH"], allowlist=tuple(map(parse_rule, allowlist)))
    permission = Permission(security=security, asking=ask, fallback=fallback, judge=judge, grants=grants)
    workspace = Workspace(root)
    background = Background(over, Overflow(workspace, lambda text: text.replace("swordfish", "***")), lambda: now[0])
    tool = ExecTool(workspace, seconds, permission, background, environ=environ)
    return Commands(tool, ProcessTool(background, permission), background, told, now, news)
