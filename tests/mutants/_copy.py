"""A copy of the checkout to break: its packages are the ones imported, and that they were is looked at."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.mutants import Fault, NoSuchText, find

PATIENCE = 300.0
"""Seconds that the tests of a fault may take."""
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_KEPT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "state", "dist")
_PASSED, _SOME_FAILED = 0, 1
"""What pytest ends with; anything else means that it could not do its work."""


class NotRun(Exception):
    """The tests could not be run."""


class Copy:
    """One copy, for one fault at a time."""

    def __init__(self, root: Path, home: Path) -> None:
        shutil.copytree(root, home, ignore=_KEPT_OUT)
        self._home = home
        self._imported = home / ".imported"
        # before the installed packages, in the processes that tests start as well; a fault must not meet old bytecode
        self._environ = {**os.environ, "PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"}

    def failing(self, tests: Sequence[str]) -> Callable[[str], bool]:
        """Run tests without a fault. Returns what tells of a node id whether something of it failed. Raises NotRun."""
        _, failed = self._run(tests)
        return lambda test: _of(test, failed)

    def attempt(self, fault: Fault) -> tuple[bool, str]:
        """Whether the tests of a fault notice it, and what to say of it."""
        try:
            path, at = find(fault, self._home)
        except NoSuchText as error:
            return False, f"NO SUCH TEXT: {error}"
        whole = path.read_text(encoding="utf-8")
        broken = whole[:at] + fault.instead + whole[at + len(fault.text) :]
        self._imported.unlink(missing_ok=True)
        marked = f"\nopen({str(self._imported)!r}, 'w').close()\n" if path.suffix == ".py" else ""
        try:
            module, *program = re.split(r"(?m)(?=^if __name__ == )", broken)
            path.write_text("".join([module, marked, *program]), encoding="utf-8")  # a program may never reach its end
            seconds, failed = self._run(fault.tests)
        except NotRun as error:
            return False, f"NOT RUN: {error}"
        finally:
            path.write_text(whole, encoding="utf-8")
        if marked and not self._imported.exists():
            return False, f"NOT IMPORTED: {path.relative_to(self._home)} of the copy, or importing it fails"
        survived = [test for test in fault.tests if not _of(test, failed)]
        if survived:
            return False, f"SURVIVED {', '.join(survived)}"
        return True, f"noticed {seconds:5.1f} s"

    def _run(self, tests: Sequence[str]) -> tuple[float, list[str]]:
        """Run tests; returns the seconds they took and the node ids of those that failed."""
        options = ("-q", "-p", "no:cacheprovider", "--tb=no", "--no-header", "-rfE", "--color=no")
        command = (sys.executable, "-m", "pytest", *options, *tests)
        before = os.times().elapsed
        try:
            done = subprocess.run(
                command, cwd=self._home, env=self._environ, capture_output=True, text=True, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            raise NotRun(f"the tests did not end within {PATIENCE:g} s") from None
        if done.returncode not in (_PASSED, _SOME_FAILED):
            raise NotRun(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return os.times().elapsed - before, _FAILED.findall(done.stdout)


def _of(test: str, failed: Sequence[str]) -> bool:
    """Whether one of those that failed is this test, one of its cases, or in it."""
    return any(node == test or node.startswith((f"{test}[", f"{test}::")) for node in failed)
