"""The plugin in a small project of its own: what it counts, compares, leaves out and fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import __main__ as command
from tests.counts import plugin, standins, table

ROOT = Path(__file__).parents[2]
INI = """
[pytest]
testpaths = tests
markers = waits: sleeps for real
"""
# A loop whose time jumps from timer to timer, so that a test sleeps for as long as it likes in no time.
CONFTEST = """
import asyncio, contextlib, os, time
import pytest

os.getloadavg = lambda: (0.0, 0.0, 0.0)

@pytest.fixture
def sleep(monkeypatch):
    loop = asyncio.new_event_loop()
    now, epoll = [0.0], loop._selector._selector

    class Jumps:
        def __getattr__(self, name):
            return getattr(epoll, name)

        def poll(self, timeout, most):
            now[0] += max(timeout, 0)
            return epoll.poll(0, most)

    loop.time, loop._selector._selector = lambda: now[0], Jumps()
    monkeypatch.setattr(time, "monotonic", loop.time)
    with contextlib.closing(loop):
        yield lambda *seconds: loop.run_until_complete(asyncio.wait_for(several(seconds), 60))

async def several(seconds):
    await asyncio.gather(*map(asyncio.sleep, seconds))
"""
TESTS = """
import os, sqlite3, subprocess
import pytest

@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    for name in "abcde":
        (folder / name).write_text("")

@pytest.mark.parametrize("number", range(4))
def test_all_that_is_counted(shared, tmp_path, number):
    (tmp_path / "a").write_text("")
    for _ in range(2):
        sqlite3.connect(":memory:").close()
    subprocess.run(["true"], check=True)
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)

def test_it_sleeps_a_little(sleep):
    sleep(0.1, 0.25, 0.25)
    sleep(0.1)
"""
SLEEPY = """
import pytest

def test_it_sleeps_in_parts(sleep):
    sleep(0.3)
    sleep(0.3)

@pytest.mark.waits
def test_it_may_sleep(sleep):
    sleep(0.4)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with one folder of tests and one of stand-ins."""
    folder = tmp_path / "project"
    files = {
        "pytest.ini": INI,
        "tests/conftest.py": CONFTEST,
        "tests/part/test_part.py": TESTS,
        "tests/standins/test_rules.py": "def test_a_rule(): pass\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def sums_of_last_run(project: Path) -> dict[str, list[int]]:
    return table.sums(json.loads((project / plugin.LAST).read_text())["counts"])


def run(project: Path, *arguments: str, **environ: str) -> tuple[int, str]:
    """Run its tests; return how that ended and what was written."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")}
    env = kept | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environ
    options = ("-p", "xdist", "-p", "tests.counts.plugin", f"--basetemp={project.parent / 'temp'}")
    call = [sys.executable, "-m", "pytest", *options, *arguments]
    done = subprocess.run(call, cwd=project, env=env, capture_output=True, text=True, timeout=180)
    return done.returncode, done.stdout + done.stderr


def test_workers_count_as_one_process_does_and_a_growth_names_its_tests(project: Path) -> None:
    code, text = run(project, "-n", "2", SUITE_CPU_LIMIT="0.01")
    assert "6 passed" in text
    assert "There is no tests/counts.toml" in text
    assert "processor seconds in all workers and their children: more than the 0.01 that" in text
    assert f"{standins.PASSED} is written" in text
    assert code == 1
    # What each of two workers made for a module counts once.
    assert sums_of_last_run(project) == {"tests/part": [0, 4, 4, 9, 8], "tests/standins": [0] * 5}
    assert command.main(["--write"], project) == 0
    written = (project / table.TABLE).read_text()
    assert "programs = [5, 1], forks = [5, 1], files = [10, 5], databases = [9, 2]" in written

    (project / table.TABLE).write_text(written.replace("programs = [5, 1]", "programs = [3, 0]"))
    code, text = run(project, "-n", "0")
    assert "left out (STANDINS=all runs them)" in text
    assert "5 passed" in text
    assert "tests/part: programs 4, and tests/counts.toml allows 3." in text
    assert "       1  tests/part/test_part.py::test_all_that_is_counted[3]" in text
    assert text.count("allows") == 1
    assert code == 1
    assert sums_of_last_run(project) == {"tests/part": [0, 4, 4, 9, 8]}


def test_a_part_is_compared_only_with_the_folders_that_it_has_whole(project: Path) -> None:
    (project / "tests/part/test_sleepy.py").write_text(SLEEPY)
    (project / table.TABLE).write_text("")
    standins.note_passed(project)  # but they are asked for
    code, text = run(project, "-n", "0", "tests/part/test_sleepy.py", "tests/standins")
    assert "3 passed, 1 error" in text
    assert "left out" not in text
    assert "ERROR at teardown of test_it_sleeps_in_parts" in text
    assert "it waited 0.60 s for timers that ran out" in text
    assert code == 1

    code, text = run(project, "-n", "0", "tests/part/test_sleepy.py", "tests/standins", UNMARKED_WAITS="allow")
    assert "3 passed" in text
    assert "tests/standins has no row" in text
    assert "tests/part has no row" not in text
    assert "processor seconds" not in text
    assert code == 1


def test_children_that_still_run_are_in_the_processor_seconds() -> None:
    burn = "x = sum(range(3_000_000)); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        before = plugin.cpu_seconds()
        child.stdout.readline()
        spent = plugin.cpu_seconds() - before
        child.stdin.write(b"\n")
    assert spent >= 0.02
