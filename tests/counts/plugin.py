"""Joins the counts to pytest: each test is counted, workers send theirs, and the end of a run compares them.

A test in which timers of more than 0.3 s in all run out fails unless it is marked `waits`. `UNMARKED_WAITS=allow` in
the environment turns that off. `SUITE_CPU_LIMIT=450` fails a run of the whole suite that takes more processor seconds.
"""

import json
import os
import resource
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.counts import standins, table
from tests.counts.tally import TALLY, Numbers, zero

MOST_SLEEP = 0.3
"""Seconds of timers that may run out in a test."""
DEAR, TOO_DEAR = 400, 450
"""Processor seconds of a whole run that are mentioned, and that are too many."""
LAST = ".pytest_cache/d/counts/last.json"
"""Counts of the last run, and which folders it had whole and green, for `python -m tests.counts`."""
_TICKS = os.sysconf("SC_CLK_TCK")


def pytest_configure(config: pytest.Config) -> None:
    """Count from here on, and collect the counts of all workers where there are some."""
    TALLY.install()
    config.pluginmanager.register(Counting(config), "counts")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Comparing(config), "counts-compared")


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder_is_made(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Make it before the first test, whose files would otherwise be more in each worker."""
    tmp_path_factory.getbasetemp()


class Counting:
    """Counts the tests of this process, and sends them where it is a worker."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        self._ignored = _standins_left_out(config)
        self._may_sleep = bool(os.environ.get("UNMARKED_WAITS")) or os.environ.get("HYPOTHESIS_PROFILE") == "soak"
        self._failed = ""

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out the stand-ins' own tests while they have nothing to find."""
        ignored = self._ignored and collection_path == self._root / standins.FOLDER
        return True if ignored else None

    def pytest_collection_finish(self) -> None:
        """Find the service, which the tests have imported by now if they start it."""
        TALLY.count_services()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Count what happens from here to the end of the test as its own."""
        before = TALLY.current
        TALLY.current = TALLY.tests[item.nodeid] = zero()
        TALLY.asleep = 0.0
        try:
            return (yield)
        finally:
            TALLY.current = before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Count what a module or a session shares apart: it belongs to no test, and each worker does it."""
        if fixturedef.scope == "function":
            return (yield)
        before, asleep = TALLY.current, TALLY.asleep
        TALLY.current = TALLY.shared.setdefault(f"{fixturedef.baseid}::{fixturedef.argname}", zero())
        try:
            return (yield)
        finally:
            TALLY.current, TALLY.asleep = before, asleep

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember the test that has just failed."""
        if report.failed:
            self._failed = report.nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a test that has slept for too long without saying so."""
        yield
        asleep = TALLY.asleep
        if asleep <= MOST_SLEEP or self._may_sleep or item.nodeid == self._failed or _is_busy():
            return
        if not any(map(item.get_closest_marker, ("waits", "soak"))):
            pytest.fail(
                f"it waited {asleep:.2f} s for timers that ran out, and {MOST_SLEEP} s are allowed: inject the time, or"
                " mark the test `waits` with the reason.",
                pytrace=False,
            )

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the counts to the controller."""
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["counts"] = json.dumps([TALLY.tests, TALLY.shared, cpu_seconds()])


class Comparing:
    """Compares a run with the table, and says what it took."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = config.rootpath
        self._config = config
        self._tests: dict[str, Numbers] = {}
        self._shared: dict[str, Numbers] = {}
        self._seconds = 0.0
        self._not_passed: set[str] = set()
        self._lines: list[tuple[str, bool]] = []
        self._left_out = _standins_left_out(config)

    def pytest_report_header(self) -> str | None:
        """Tell that the stand-ins' own tests are left out."""
        if not self._left_out:
            return None
        return (
            f"stand-ins: unchanged since their own tests passed, which are left out ({standins.ALWAYS}=all runs them)"
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember which folders have failures or left something out."""
        if not report.passed:
            self._not_passed.add(table.folder_of(report.nodeid))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the counts of a worker; one that died has none, and has failed the run."""
        if text := getattr(node, "workeroutput", {}).get("counts"):
            self.add(*json.loads(text))

    def add(self, tests: Mapping[str, Numbers], shared: Mapping[str, Numbers], seconds: float) -> None:
        """Add what a worker has counted; what several of them had to set up counts once."""
        self._tests.update(tests)
        for name, numbers in shared.items():
            self._shared[name] = [max(pair) for pair in zip(numbers, self._shared.get(name, zero()), strict=True)]
        self._seconds += seconds

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Compare, and fail a run that has grown."""
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or session.shouldstop:
            return
        self.add(TALLY.tests, TALLY.shared, cpu_seconds() if not self._seconds else _own_seconds())
        counts = self._tests | {name: numbers for name, numbers in self._shared.items() if name.startswith("tests/")}
        whole = {folder for folder in table.sums(counts) if _is_whole(self._config, self._root / folder)}
        everything = _is_whole(self._config, self._root / "tests")
        stand_ins_hold = standins.FOLDER in whole and standins.FOLDER not in self._not_passed
        if stand_ins_hold and standins.note_passed(self._root):
            self._lines.append((f"{standins.PASSED} is written: commit it with the change of the stand-ins.", False))
        if everything:
            self._tell_seconds()
        passed = exitstatus == pytest.ExitCode.OK
        self._keep(counts, whole if passed else set())
        if passed:
            self._compare(counts, whole, everything)
        if any(bad for _, bad in self._lines):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _tell_seconds(self) -> None:
        limit = os.environ.get("SUITE_CPU_LIMIT")
        bad = limit is not None and self._seconds > float(limit)
        advice = ""
        if bad or self._seconds > TOO_DEAR:
            advice = f": more than the {float(limit or TOO_DEAR):g} that the suite may take"
        elif self._seconds > DEAR:
            advice = f": a warning, the suite may take {TOO_DEAR}"
        self._lines.append((f"{self._seconds:.0f} processor seconds in all workers and their children{advice}", bad))

    def _keep(self, counts: Mapping[str, Numbers], whole: set[str]) -> None:
        path = self._root / LAST
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"whole": sorted(whole), "counts": counts}), encoding="utf-8")

    def _compare(self, counts: Mapping[str, Numbers], whole: set[str], everything: bool) -> None:
        if not (self._root / table.TABLE).exists():
            if everything:
                advice = f"There is no {table.TABLE}: write it with `python -m tests.counts --write`."
                self._lines.append((advice, True))
            return
        rows = table.read(self._root / table.TABLE)
        if table.growths(rows, counts, whole, ()):
            changed = table.changed_files(self._root)
            self._lines += [(message, True) for message in table.growths(rows, counts, whole, changed)]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was found."""
        if self._lines:
            terminalreporter.section("counts", bold=True)
        for line, bad in self._lines:
            terminalreporter.write_line(line, red=bad)


def _standins_left_out(config: pytest.Config) -> bool:
    """Return whether the stand-ins' own tests are left out of this run; those that are asked for by name never are."""
    return standins.left_out(config.rootpath) and not _named(config, config.rootpath / standins.FOLDER)


def _named(config: pytest.Config, folder: Path) -> bool:
    """Return whether the command line names the folder, or something in it."""
    return any(path == folder or folder in path.parents for path in _paths(config))


def _is_whole(config: pytest.Config, folder: Path) -> bool:
    """Return whether all tests of the folder were asked for, without those of the soak."""
    option = config.option
    parts = (option.keyword, option.deselect, option.ignore, option.ignore_glob)
    if any(parts) or getattr(option, "lf", False) or option.markexpr not in ("", "not soak"):
        return False
    return any(path == folder or path in folder.parents for path in _paths(config) if path.is_dir())


def _paths(config: pytest.Config) -> list[Path]:
    return [(config.invocation_params.dir / name.split("::")[0]).resolve() for name in config.args]


def _is_busy() -> bool:
    """Return whether so much else runs on this machine that a thread without a processor looks like a silent one."""
    return os.getloadavg()[0] > 2 * (os.cpu_count() or 1)


def cpu_seconds() -> float:
    """Return the processor seconds of this process and of all that it has started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return _own_seconds() + children.ru_utime + children.ru_stime + _living(os.getpid())


def _own_seconds() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def _living(parent: int) -> float:
    """Return the seconds of children that still run, such as the server that forks; 0 where there is no /proc."""
    found = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found += sum(map(int, fields[11:15])) / _TICKS + _living(int(path.parent.name))
    return found
