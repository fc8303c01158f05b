"""The tools for commands as a service makes them, without one."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.file_names import NAMES
from agent.sandbox.base import Confinement
from agent.sandbox.proof import Setting, choose
from agent.shell import Judge, parse_rule
from agent.tools.background import Background, Running
from agent.tools.exec import ExecTool, scrubbed
from agent.tools.output import Overflow
from agent.tools.permission import Asking, Permission, Security
from agent.tools.process_tool import ProcessTool
from agent.tools.workspace import Workspace
from tests.watch import PATIENCE


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
            async with asyncio.timeout(PATIENCE):
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
    sandbox: Setting = "none",
    in_sandbox: Literal["ask", "allow"] = "ask",
    network: Literal["ask", "allow", "deny"] = "ask",
    hidden: Sequence[Path] = (),
) -> Commands:
    """On this machine as it is, unless a sandbox is named, which then has to hold."""
    told: list[tuple[str, str]] = []
    now = [0.0]
    news = asyncio.Event()

    async def over(one: Running) -> None:
        told.append((one.session_key, one.told()))
        news.set()

    judge = Judge(workspace=root, path=scrubbed(environ)["PATH"], allowlist=tuple(map(parse_rule, allowlist)))
    proved = choose(sandbox)
    assert proved.sandbox is not None or sandbox == "none", proved.why
    confinement = Confinement(
        sandbox=proved.sandbox,
        why=proved.why,
        hidden=tuple(hidden),
        kept=NAMES,
        temporary=root.parent / f"{root.name}-temporary",
    )
    permission = Permission(
        security=security,
        asking=ask,
        fallback=fallback,
        in_sandbox=in_sandbox,
        network=network,
        held=confinement.levels,
        judge=judge,
        grants=grants,
    )
    workspace = Workspace(root)
    overflow = Overflow(workspace, lambda text: text.replace("swordfish", "***"))
    background = Background(over, lambda key: overflow, lambda: now[0])
    tool = ExecTool(workspace, seconds, permission, confinement, background, environ=environ)
    return Commands(tool, ProcessTool(background, permission), background, told, now, news)
