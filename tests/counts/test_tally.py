"""The counters of the process: what each of them counts, and what it leaves alone."""

import asyncio
import multiprocessing
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts.tally import COLUMNS, SHORTEST, TALLY
from tests.service import running
from tests.watch import LoopTime


def test_files_that_tests_make_are_counted(tmp_path: Path) -> None:
    before = counted("files")
    (tmp_path / "a").write_text("a")
    os.close(os.open(tmp_path / "a", os.O_RDONLY))
    with open(bytes(tmp_path / "a")):
        pass
    assert counted("files") == before + 3


def test_files_that_may_be_kept_in_memory_are_not() -> None:
    before = counted("files")
    Path(os.__file__).read_bytes()
    Path("/etc/passwd").read_bytes()
    Path(__file__).read_bytes()
    with open(os.open(os.devnull, os.O_RDONLY)):
        pass
    assert counted("files") == before


def test_programs_forks_and_databases_are_counted() -> None:
    before = list(TALLY.current)
    subprocess.run([sys.executable, "-S", "-c", ""], check=True)
    child = multiprocessing.get_context("fork").Process(target=str)
    child.start()
    child.join()
    with pytest.raises(sqlite3.OperationalError):
        sqlite3.connect("/nowhere/a.db")
    grown = dict(zip(COLUMNS, [now - then for now, then in zip(TALLY.current, before, strict=True)], strict=True))
    assert grown == {"services": 0, "programs": 1, "forks": 1, "files": 0, "databases": 1}


async def test_a_timer_counts_when_it_was_waited_for_and_not_when_the_clock_was_moved() -> None:
    clock = LoopTime()
    moved = asyncio.create_task(asyncio.sleep(600))
    await asyncio.sleep(0)
    await clock.advance(601)
    await moved
    assert TALLY.asleep == 0
    await asyncio.sleep(SHORTEST + 0.01)
    assert TALLY.asleep == pytest.approx(SHORTEST + 0.01, abs=0.01)


async def test_a_timer_that_runs_out_beside_other_work_does_not_count() -> None:
    timer = asyncio.create_task(asyncio.sleep(SHORTEST + 0.01))
    while not timer.done():  # noqa: ASYNC110  # it is the work
        await asyncio.sleep(0)
    assert TALLY.asleep == 0


async def test_a_service_is_counted(tmp_path: Path) -> None:
    before = counted("services")
    async with running(tmp_path):
        assert counted("services") == before + 1


def test_the_own_counts_of_a_test_begin_at_nothing(request: pytest.FixtureRequest) -> None:
    assert TALLY.tests[request.node.nodeid] is TALLY.current
    assert (sum(TALLY.current), TALLY.asleep) == (0, 0)


def counted(column: str) -> int:
    return TALLY.current[COLUMNS.index(column)]
