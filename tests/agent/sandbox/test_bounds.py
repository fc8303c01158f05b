"""What passes a bound is ended and says why: processes, memory, files, disk, and time in the background."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.sandbox.base import Bounds
from agent.sandbox.proof import Setting
from agent.tools.exec import ExecParameters
from agent.tools.process_tool import ProcessParameters
from tests.agent.sandbox.conftest import SPARSE, Run
from tests.agent.tools.calls import Notes, run_allowed
from tests.agent.tools.commands import commands
from tests.watch import PATIENCE

MEGABYTE = 1024**2
# The disk is one that others write to meanwhile, so only the test of its bound has a small one.
SMALL = Bounds(processes=12, memory=100 * MEGABYTE, file=MEGABYTE, disk=1024**4)
FLOOD = "i=0; while :; do head -c 256K /dev/zero > f$i; i=$((i+1)); done"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.sandbox.backends.BOUNDS", SMALL)


def size(room: Path) -> int:
    return sum(path.lstat().st_size for path in room.rglob("*") if path.is_file())


async def test_a_file_grows_to_its_bound_and_no_further(run: Run, room: Path) -> None:
    said = await run("yes > flood", needs="work")
    assert "File size limit exceeded" in said or "File too large" in said
    assert not said.startswith("[exit code 0]")
    assert (room / "flood").stat().st_size == MEGABYTE
    assert "room" in await run("yes > $TMPDIR/flood; echo room"), "nor does one of its temporary folder"


@SPARSE
async def test_many_files_end_with_the_disk_it_may_take(run: Run, room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.sandbox.backends.BOUNDS", replace(SMALL, disk=32 * MEGABYTE))
    said = await run(FLOOD, needs="work")
    assert said.startswith("[ended because the disk lost more than 32 MB meanwhile]\n")
    assert size(room) < 500 * MEGABYTE


async def test_it_may_have_so_many_processes(run: Run) -> None:
    said = await run("for i in $(seq 40); do sleep 100 & done; wait; echo over")
    assert said.startswith("[ended because it had more than 12 processes]\n")
    assert "over" not in said


@pytest.mark.parametrize("way", ["one", "several"])
async def test_it_may_have_so_much_memory_all_together(run: Run, name: Setting, way: str) -> None:
    one = "python3 -c 'import time; x = b\"x\" * ({} << 20); time.sleep(5)'"
    line = one.format(300) if way == "one" else " & ".join([one.format(45)] * 4) + " & wait"
    said = await run(line, timeout_seconds=60)
    assert said.startswith("[ended because it used more than 100 MB of memory]\n")


async def test_within_its_bounds_nothing_is_ended(run: Run, room: Path) -> None:
    line = (
        "head -c 900K /dev/zero > f; for i in 1 2 3 4; do sleep 0.01 & done; wait; python3 -c 'x = b\"x\" * 10_000_000'"
    )
    assert await run(line, needs="work") == "[exit code 0]\n[no output]"
    assert size(room) >= 900 * 1024


@SPARSE
async def test_in_the_background_the_same_bounds_hold(
    working: Setting, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)
    monkeypatch.setattr("agent.sandbox.backends.BOUNDS", replace(SMALL, disk=32 * MEGABYTE))
    made = commands(room, sandbox=working, in_sandbox="allow")
    try:
        await made.exec.run(_background(FLOOD, needs="work"), Notes().context())
        await made.until_told(1)
        assert "is over: ended because the disk lost more than 32 MB meanwhile." in made.told[0][1]
        await made.exec.run(_background("yes > flood", needs="work"), Notes().context(call_id="second"))
        await made.until_told(2)
        assert (room / "flood").stat().st_size == MEGABYTE
        assert "is over: exit code" in made.told[1][1]
        assert os.listdir(room.with_name("room-temporary")) == []
    finally:
        await made.background.close(10)


async def test_in_the_background_time_is_bounded_whatever_is_asked(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)
    monkeypatch.setattr("agent.tools.background.END_SECONDS", 0.01)
    for constant, asked in (("BACKGROUND_SECONDS", None), ("MOST_BACKGROUND_SECONDS", 9_999_999.0)):
        with monkeypatch.context() as patched:
            patched.setattr(f"agent.tools.exec.{constant}", 0.05)
            made = commands(room)
            await run_allowed(made.exec, _background("sleep 1000", timeout_seconds=asked), Notes().context())
            await made.until_told(1)
            assert "is over: stopped after its time limit of 0.05 s." in made.told[0][1]


@SPARSE
async def test_output_is_bounded_in_a_sandbox_as_well(run: Run) -> None:
    said = await run("head -c 300000 /dev/zero | tr '\\0' x")
    assert "bytes left out" in said
    assert len(said) < 40_000


@SPARSE
async def test_what_is_given_to_it_in_the_background_reaches_it(
    name: Setting, room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.tools.exec.EARLY_SECONDS", 0.0)
    made = commands(room, security="allowlist", sandbox=name)
    context = Notes().context()
    try:
        await made.exec.run(_background('read -r line; echo "<$line>"', needs="look"), context)
        (one,) = made.background.of("session")
        given = ProcessParameters(action="input", id=one.name, text="hello\n", eof=True)
        assert await made.process.asks(given, context) is None, "what only looks may be told anything"
        await made.process.run(given, context)
        await made.until_told(1)
        assert made.told[0][1].endswith("is over: exit code 0. Last output: <hello>\n")
    finally:
        await made.background.close(10)
    for level in ("work", "network", "host"):
        assert made.exec._permission.input_missed(level, "x"), level


def _background(command: str, **more: Any) -> ExecParameters:
    return ExecParameters.model_validate({"command": command, "background": True, **more})


@SPARSE
async def test_a_command_that_is_stopped_leaves_no_folder(name: Setting, room: Path) -> None:
    notes = Notes()
    said = asyncio.Event()
    tool = commands(room, sandbox=name).exec
    context = notes.context(update=lambda text: said.set())
    call = asyncio.create_task(tool.run(ExecParameters(command="echo begun; sleep 100", needs="look"), context))
    async with asyncio.timeout(PATIENCE):
        await said.wait()
    assert len(os.listdir(room.with_name("room-temporary"))) == 1
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert os.listdir(room.with_name("room-temporary")) == []
