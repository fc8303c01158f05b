"""Copies of the checkout to break: their packages are the ones imported, and tests are run in them."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PATIENCE = 5.0
"""Seconds that a test may take longer than three times what it takes without a fault."""
_LONGEST = 300.0
"""Seconds that all tests of a fault may take."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_TOOK = re.compile(r"^([\d.]+)s (?:setup|call|teardown) +(.+)$", re.MULTILINE)
_KEPT_OUT = shutil.ignore_patterns(".*", "*.egg-info", "state", "dist")
_MEMORY = Path("/dev/shm")
_PASSED, _SOME_FAILED, _ENDLESS = 0, 1, 99
"""What pytest ends with; anything else means that it could not do its work."""
# A plugin: a test that lasts too long ends the process, and its name is the last line.
_CLOCK = f"""
import json, os, pathlib, threading
_out, _limits, _running = os.dup(1), json.loads(pathlib.Path(__file__).with_suffix(".json").read_text()), []
def _end(nodeid):
    os.write(_out, f"\\nFAILED {{nodeid}}\\n".encode())
    os._exit({_ENDLESS})
def pytest_runtest_logstart(nodeid):
    _running.append(threading.Timer(_limits.get(nodeid, _limits['']), _end, [nodeid]))
    _running[-1].daemon = True
    _running[-1].start()
def pytest_runtest_logfinish(nodeid):
    _running.pop().cancel()
"""


class NotRun(Exception):
    """The tests could not be run."""


class Ran(NamedTuple):
    """Node ids of the tests that failed, and the seconds that each took."""

    failed: list[str]
    took: dict[str, float]


class Copy:
    """One copy of the checkout; bytecode is copied as well, and none is written."""

    def __init__(self, root: Path, home: Path) -> None:
        shutil.copytree(root, home, ignore=_KEPT_OUT)
        self.home = home
        # before the installed packages, in the processes that tests start as well; a fault must not meet old bytecode
        self.environ = {**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        temporary = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
        self.temporary = temporary / f"mutants-{os.getpid()}-{home.name}"
        options = ("-q", "-p", "no:cacheprovider", "--tb=no", "--no-header", "-rfE", "--color=no")
        self.pytest = (sys.executable, "-m", "pytest", *options, f"--basetemp={self.temporary}")

    @contextlib.contextmanager
    def broken(self, file: str, text: str) -> Iterator[None]:
        """Let a file hold another text for a while."""
        path = self.home / file
        before, times = path.read_bytes(), path.stat()
        try:
            path.write_text(text, encoding="utf-8")
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def run(self, tests: Sequence[str], usual: Mapping[str, float] | None = None) -> Ran:
        """Run tests; one that takes much longer than `usual` fails. Raises NotRun."""
        limits = {"": _LONGEST if usual is None else PATIENCE}
        limits |= {test: 3 * seconds + PATIENCE for test, seconds in (usual or {}).items()}
        (self.home / "clock_plugin.py").write_text(_CLOCK)
        (self.home / "clock_plugin.json").write_text(json.dumps(limits))
        options = ("-p", "clock_plugin", "-vv", "--durations=0", "--durations-min=0.001")
        try:
            done = subprocess.run(
                (*self.pytest, *options, *tests),
                cwd=self.home,
                env=self.environ,
                capture_output=True,
                text=True,
                timeout=None if usual is None else _LONGEST,
            )
        except subprocess.TimeoutExpired:
            raise NotRun(f"the tests did not end within {_LONGEST:g} s") from None
        failed = _FAILED.findall(done.stdout)
        if done.returncode == _ENDLESS:
            left = [test for test in tests if not of(test, failed)]
            return Ran(failed + (self.run(left, usual).failed if left else []), {})
        if done.returncode not in (_PASSED, _SOME_FAILED):
            raise NotRun(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        took: dict[str, float] = defaultdict(float)
        for seconds, test in _TOOK.findall(done.stdout):
            took[test] += float(seconds)
        return Ran(failed, took)


def of(test: str, failed: Sequence[str]) -> bool:
    """Whether one of those that failed is this test, one of its cases, or in it."""
    return any(node == test or node.startswith((f"{test}[", f"{test}::")) for node in failed)


@contextlib.contextmanager
def copies(root: Path, count: int) -> Iterator[list[Copy]]:
    """Yield so many copies of a checkout, and remove them."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as home:
        made = [Copy(root, Path(home) / str(number)) for number in range(count)]
        try:
            yield made
        finally:
            for copy in made:
                shutil.rmtree(copy.temporary, ignore_errors=True)
