"""How often a person is asked about a command, with a sandbox and without one, and what a sandbox costs a command.

Asked about: the lines of `tests/shell/benign.txt` that only look, as a model runs them that says nothing of what they
need, and those of `tests/shell/work.txt`, for which it says what they need. No model takes part.
"""

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.sandbox.proof import Setting, choose
from agent.shell import Level
from agent.tools.base import Refused
from agent.tools.exec import ExecParameters, ExecTool
from agent.tools.permission import Permission
from bench.figures import Row, Scale, quantile
from bench.model import Model
from tests.agent.tools.calls import Notes, run_allowed
from tests.agent.tools.commands import commands
from tests.shell.corpus import Place, benign, make_place, make_repository, work

TITLE = "Commands: how many are asked about, and how long `true` takes"
_SANDBOXES: tuple[Setting, ...] = ("bubblewrap", "sandlock", "seatbelt")
_SETTINGS: dict[str, dict[str, Any]] = {
    "with a sandbox": {},
    "with a sandbox, in_sandbox: allow": {"in_sandbox": "allow"},
    "with a sandbox, in_sandbox and network: allow": {"in_sandbox": "allow", "network": "allow"},
    "without a sandbox": {"held": ()},
}


async def measure(model: Model, scale: Scale) -> list[Row]:
    """Counts of lines, and milliseconds of a whole call of `exec`."""
    looking: list[tuple[str, Level | None]] = [(line.command, None) for line in benign() if not line.asks]
    working: list[tuple[str, Level | None]] = list(work())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder))
        make_repository(place)
        for what, lines in (("that only look", looking), ("of ordinary work", working)):
            for how, settings in _SETTINGS.items():
                asked = _asked(place, lines, **settings)
                rows.append(Row(what=f"of {len(lines)} lines {what}, asked about {how}", unit="lines", hark=asked))
    for name in _SANDBOXES:
        if (sandbox := choose(name).sandbox) is not None:
            for level in sandbox.levels[:2]:
                rows.append(Row(what=f"true, {level}, {name}: p50", unit="ms", hark=await _time(name, level, scale)))
    rows.append(Row(what="true, on the host: p50", unit="ms", hark=await _time("none", "host", scale)))
    return rows


def _asked(place: Place, lines: Sequence[tuple[str, Level | None]], **settings: Any) -> int:
    """How many of them a person is asked about."""
    given: Any = {"in_sandbox": "ask", "network": "ask", "held": ("look", "work", "network")} | settings
    permission = Permission(security="allowlist", asking="on-miss", fallback="deny", judge=place.judge(), **given)
    count = 0
    for command, needs in lines:
        try:
            count += bool(permission.of(command, place.workspace, {"HOME": str(place.home)}, needs).missed)
        except Refused:
            count += 1
    return count


async def _time(name: Setting, needs: str, scale: Scale) -> float:
    """The median of one call, in milliseconds."""
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "room").mkdir()
        tool = commands(folder / "room", sandbox=name, in_sandbox="allow").exec
        return 1e3 * quantile([await _once(tool, needs) for _ in range(max(3, scale.turns // 2))], 0.5)
    finally:
        shutil.rmtree(folder)


async def _once(tool: ExecTool, needs: str) -> float:
    began = time.perf_counter()
    output = await run_allowed(
        tool, ExecParameters.model_validate({"command": "true", "needs": needs}), Notes().context()
    )
    assert output.text.startswith("[exit code 0]"), output.text
    return time.perf_counter() - began
