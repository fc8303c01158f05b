"""A plugin of pytest that tries machine mutants, each in a fork of the process that has collected the tests.

In the fork the code of the functions that exist is exchanged; the file holds the mutant as well, for the programs that
tests start. A test that fails is run once more without the mutant, so that one that always fails notices nothing.
"""

import ast
import contextlib
import gc
import json
import os
import resource
import signal
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from tests import watch
from tests.mutants import machine
from tests.mutants.machine import Mutant

JOBS = "MUTANTS_JOBS"
"""Variable with the file of jobs; the results are written beside it."""
SECONDS = 40.0
"""Processor seconds that the tests of a mutant may take."""
_HANGS = 60.0
"""Seconds after which a test is over."""
_FAILS_ALWAYS = 3
"""Tests that may fail without the mutant as well before it is given up."""
_Live = dict[tuple[str, str], list[FunctionType]]


class Outcome(NamedTuple):
    """noticed, survived, or unclear; `by` is the test that failed, `ran` how many were run."""

    result: str
    by: str = ""
    ran: int = 0


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try the jobs instead of running tests."""
    jobs = Path(os.environ[JOBS])
    watch.PATIENCE = 10.0
    items = {item.nodeid: item for item in session.items}
    live = _live(Path.cwd())
    with jobs.with_suffix(".out").open("a") as out:
        for function, change, tests in json.loads(jobs.read_text()):
            begun = time.monotonic()
            outcome = _attempt(Mutant(function, change), [items[test] for test in tests if test in items], live)
            found = {"function": function, "change": change, **outcome._asdict(), "seconds": time.monotonic() - begun}
            print(json.dumps(found), file=out, flush=True)
    return True


def _live(root: Path) -> _Live:
    """Return the functions that exist, by file and qualified name."""
    gc.unfreeze()
    found: _Live = defaultdict(list)
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(f"{root}{os.sep}"):
            found[os.path.relpath(one.__code__.co_filename, root), one.__code__.co_qualname].append(one)
    gc.freeze()
    return found


def _attempt(mutant: Mutant, items: list[pytest.Item], live: _Live) -> Outcome:
    root = Path.cwd()
    try:
        text = ast.unparse(machine.apply(root, mutant))
    except LookupError:
        return Outcome("gone")
    for _ in range(_FAILS_ALWAYS):
        path = root / mutant.file
        before, times = path.read_bytes(), path.stat()
        try:
            path.write_text(text, encoding="utf-8")
            failed, ran = _forked(items, lambda: _patch(root, mutant, text, live))
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if failed is None:
            return Outcome("survived" if ran else "no tests", ran=ran)
        if _forked([failed], lambda: None)[0] is None:
            return Outcome("noticed", failed.nodeid, ran)
        items.remove(failed)
    return Outcome("unclear")


def _patch(root: Path, mutant: Mutant, text: str, live: _Live) -> None:
    """Let the functions that exist have the code of the mutant."""
    name = mutant.function.partition(":")[2]
    tree = ast.parse(text)
    for function in live.get((mutant.file, name), []):
        node = next(node for found, node in machine.functions(tree) if found == name)
        lost = set(function.__code__.co_freevars) - set(_code(tree, root / mutant.file, name).co_freevars)
        if lost:  # never reached, but without it the code could not be exchanged
            node.body.append(ast.If(ast.Constant(False), [ast.Expr(ast.Name(one, ast.Load())) for one in lost], []))
        function.__code__ = _code(ast.fix_missing_locations(tree), root / mutant.file, name)


def _code(tree: ast.Module, path: Path, name: str) -> CodeType:
    left = [compile(tree, str(path), "exec", dont_inherit=True)]
    while left:
        code = left.pop()
        if code.co_qualname == name:
            return code
        left += [one for one in code.co_consts if isinstance(one, CodeType)]
    raise LookupError(name)


def _forked(items: Sequence[pytest.Item], prepare: Any) -> tuple[pytest.Item | None, int]:
    """Run tests in a fork until one fails; returns that one, and how many were begun."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setsid()
            seconds = int(SECONDS * 1.5)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            prepare()
            _run(items, writing)
        finally:
            os._exit(0)
    os.close(writing)
    last, changed, over = b"", time.monotonic(), False
    os.set_blocking(reading, False)
    while not over and time.monotonic() - changed < _HANGS:
        over = os.waitpid(child, os.WNOHANG) != (0, 0)
        try:
            more = os.read(reading, 1_000_000)
        except BlockingIOError:
            more = b""
        if more:
            last, changed = last + more, time.monotonic()
        elif not over:
            time.sleep(0.02)
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not over:
        os.waitpid(child, 0)
    begun = last.count(b"b")
    # what was begun and not ended well has failed, hangs, or has ended the process
    return (None if last.count(b"e") == begun else items[begun - 1]), begun


def _run(items: Sequence[pytest.Item], writing: int) -> None:
    failed: list[str] = []

    class Watcher:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    for number, item in enumerate(items):
        if number == 0:
            item.config.pluginmanager.register(Watcher())
        if sum(os.times()[:4]) > SECONDS:
            break
        os.write(writing, b"b")
        following = items[number + 1] if number + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            break
        os.write(writing, b"e")
