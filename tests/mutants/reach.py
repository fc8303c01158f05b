"""Records which functions of the product each test enters, and chooses tests by it.

The record is `.cache/reach.json`, made anew for each test file that has changed. It holds for each test a number whose
bits are the functions, in the order of `functions`. Programs that a test starts count as far as they import from the
checkout.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.copies import Copy, copies

CACHE = ".cache/reach.json"
TESTS = "tests"
_AT_ONCE = 60
"""Test files of one process; what it recorded is written when it ends."""
# Python imports it at its start: in pytest, and in every program that is started with the copy in PYTHONPATH.
# A local trace function is never returned, so only calls cost anything.
_TRACER = """
import os, sys, threading
_log = os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
seen = set()
def trace(frame, event, argument):
    code = frame.f_code
    if code not in seen:
        seen.add(code)
        if code.co_filename.startswith({root!r}):
            os.write(_log, (code.co_filename + ":" + code.co_qualname + "\\n").encode())
os.register_at_fork(after_in_child=seen.clear)
threading.settrace(trace)
sys.settrace(trace)
"""
# A plugin, which pytest imports from the copy as well: what was logged since the test before is of this one.
_PLUGIN = """
import json, os, sitecustomize, time
_tests, _begun = {{}}, 0
def _read():
    global _begun
    with open({log!r}, "rb") as file:
        file.seek(_begun)
        lines = file.read()
    _begun += len(lines)
    return lines.decode().splitlines()
def pytest_runtest_logstart(nodeid):
    sitecustomize.seen.clear()
    _read()
def pytest_runtest_logfinish(nodeid):
    _tests[nodeid] = sorted(set(_read()))
def pytest_sessionfinish():
    with open({out!r}, "w") as file:
        json.dump(_tests, file)
"""


@dataclass
class Reach:
    """For each test the functions it enters, as bits."""

    functions: list[str] = field(default_factory=list)
    tests: dict[str, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Hash of each test file when it was recorded."""

    def choose(self, function: str) -> list[str]:
        """Return the tests that enter a function (`agent/loop.py:Loop.run`), the most specific ones first.

        The first case of each test function comes before the second ones. A function that no test enters, perhaps
        because it is new, has the tests of the other functions of its module.
        """
        module = function.partition(":")[0] + ":"
        wanted = sum(1 << at for at, name in enumerate(self.functions) if name == function)
        wanted = wanted or sum(1 << at for at, name in enumerate(self.functions) if name.startswith(module))
        cases: dict[str, int] = {}
        order: list[tuple[int, int, str]] = []
        for test, bits in sorted(self.tests.items(), key=lambda one: one[1].bit_count()):
            if bits & wanted:
                name = test.partition("[")[0]
                cases[name] = cases.get(name, 0) + 1
                order.append((cases[name], bits.bit_count(), test))
        return [test for _, _, test in sorted(order)]

    def add(self, entered: dict[str, list[str]]) -> None:
        """Add what tests enter."""
        numbers = {name: at for at, name in enumerate(self.functions)}
        for test, names in entered.items():
            bits = 0
            for name in names:
                if name not in numbers:
                    numbers[name] = len(self.functions)
                    self.functions.append(name)
                bits |= 1 << numbers[name]
            self.tests[test] = bits


def load(root: Path, workers: int) -> Reach:
    """Return the record of a checkout; test files that it lacks or that have changed since are run first."""
    cache = root / CACHE
    reach = Reach()
    if cache.exists():
        kept = json.loads(cache.read_text())
        reach = Reach(kept["functions"], {test: int(bits, 16) for test, bits in kept["tests"].items()}, kept["files"])
    now = {str(path.relative_to(root)): _hash(path) for path in sorted((root / TESTS).rglob("test_*.py"))}
    reach.files = {name: was for name, was in reach.files.items() if now.get(name) == was}
    reach.tests = {test: bits for test, bits in reach.tests.items() if test.partition("::")[0] in reach.files}
    if changed := sorted(now.keys() - reach.files.keys()):
        with copies(root, workers) as places, ThreadPoolExecutor(workers) as pool:
            free: SimpleQueue[Copy] = SimpleQueue()
            for place in places:
                free.put(place)
            parts = [changed[at : at + _AT_ONCE] for at in range(0, len(changed), _AT_ONCE)]
            for done in as_completed([pool.submit(_record, free, part) for part in parts]):
                part, entered = done.result()
                reach.add(entered)
                reach.files |= {name: now[name] for name in part}
                _write(reach, cache)
    return reach


def _write(reach: Reach, cache: Path) -> None:
    tests = {test: f"{bits:x}" for test, bits in reach.tests.items()}
    cache.parent.mkdir(exist_ok=True)
    new = cache.with_suffix(".new")
    new.write_text(json.dumps({"functions": reach.functions, "tests": tests, "files": reach.files}))
    os.replace(new, cache)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _record(free: SimpleQueue[Copy], files: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Run test files in a free copy; returns them and what each of their tests enters. Failures are of no interest."""
    copy = free.get()
    try:
        paths = {
            "log": str(copy.home / ".reach.log"),
            "out": str(copy.home / "reach.json"),
            "root": f"{copy.home}{os.sep}",
        }
        (copy.home / "sitecustomize.py").write_text(_TRACER.format(**paths))
        (copy.home / "reach_plugin.py").write_text(_PLUGIN.format(**paths))
        for left in ("log", "out"):
            Path(paths[left]).unlink(missing_ok=True)
        command = [*copy.pytest, "-n", "0", "--continue-on-collection-errors", "-p", "reach_plugin", *files]
        nothing = subprocess.DEVNULL
        subprocess.run(command, cwd=copy.home, env=copy.environ, stdin=nothing, stdout=nothing, stderr=nothing)
        entered: dict[str, list[str]] = json.loads(Path(paths["out"]).read_text())
    finally:
        free.put(copy)
    return files, {test: sorted(set(_functions(lines, paths["root"]))) for test, lines in entered.items()}


def _functions(lines: Sequence[str], root: str) -> Iterator[str]:
    for line in lines:
        file, _, name = line.removeprefix(root).rpartition(":")
        if not file.startswith(f"{TESTS}{os.sep}") and not name.startswith("<"):
            yield f"{file}:{name.partition('.<locals>')[0]}"
