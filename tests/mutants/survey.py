"""Machine mutants of modules, of what has changed, or of a sample: which of them does no test notice?"""

import ast
import json
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.mutants import forks, machine, reach, with_mutmut
from tests.mutants.copies import Copy, copies
from tests.mutants.machine import Mutant

_MOST_TESTS = 300
"""Of a mutant; the most specific ones."""
_MOST_TESTS_OF_MUTMUT = 60
"""Of a function: mutmut runs all of them once before, and those of a function for each of its mutants."""


def of_modules(root: Path, names: Sequence[str]) -> list[Mutant]:
    """Return the mutants of modules: agent.calls.claims."""
    return [mutant for name in names for mutant in machine.in_file(root, f"{name.replace('.', '/')}.py")]


def changed(root: Path, base: str) -> list[Mutant]:
    """Return the mutants of functions in which a line has changed since a revision."""
    command = ("git", "diff", "--unified=0", base, "--", *machine.PACKAGES)
    lines: dict[str, set[int]] = {}
    file = ""
    for line in subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(hunk[1])
            lines.setdefault(file, set()).update(range(first, first + int(hunk[2] or 1)))
    found = []
    for file, numbers in lines.items():
        if file.endswith(".py") and (root / file).exists():
            tree = ast.parse((root / file).read_text(encoding="utf-8"))
            names = {
                f"{file}:{name}"
                for name, node in machine.functions(tree)
                if numbers & set(range(node.lineno, (node.end_lineno or 0) + 1))
            }
            found += [mutant for mutant in machine.in_file(root, file) if mutant.function in names]
    return found


def draw(root: Path, count: int, seed: int) -> list[Mutant]:
    """Return so many mutants of the whole product."""
    files = (path for package in machine.PACKAGES for path in sorted((root / package).rglob("*.py")))
    every = [mutant for path in files for mutant in machine.in_file(root, str(path.relative_to(root)))]
    return random.Random(seed).sample(every, count)


def like(results: Path) -> list[Mutant]:
    """Return the mutants of a file of results."""
    every = map(json.loads, results.read_text().splitlines())
    return [Mutant(one["function"], one["change"]) for one in every]


def try_all(mutants: Sequence[Mutant], root: Path, workers: int, out: Path | None) -> list[dict[str, Any]]:
    """Try mutants with the tests that enter their functions. Returns what is known of each.

    out: a file to which each result is added as a line of JSON; what it holds already is not tried again.
    """
    reached = reach.load(root, workers)
    known = [json.loads(line) for line in out.read_text().splitlines()] if out and out.exists() else []
    done = {(one["function"], one["change"]) for one in known}
    jobs = [
        (mutant.function, mutant.change, reached.choose(mutant.function)[:_MOST_TESTS])
        for mutant in mutants
        if (mutant.function, mutant.change) not in done
    ]
    with tempfile.TemporaryDirectory() as home, copies(root, workers) as places, ThreadPoolExecutor(workers) as pool:
        results = [out or Path(home) / f"{number}.jsonl" for number in range(workers)]
        list(pool.map(_try, places, (jobs[number::workers] for number in range(workers)), results))
        for result in {*results} - {out}:
            known += [json.loads(line) for line in result.read_text().splitlines()] if result.exists() else []
    return [json.loads(line) for line in out.read_text().splitlines()] if out and out.exists() else known


def _try(copy: Copy, jobs: Sequence[tuple[str, str, list[str]]], out: Path) -> None:
    if not jobs:
        return
    path = copy.home / "jobs.json"
    path.write_text(json.dumps(jobs))
    path.with_suffix(".out").symlink_to(out.resolve())
    files = sorted({test.partition("::")[0] for _, _, tests in jobs for test in tests})
    command = [*copy.pytest, "-n", "0", "--continue-on-collection-errors", "-p", "tests.mutants.forks", *files]
    environ = {**copy.environ, forks.JOBS: str(path)}
    ran = subprocess.run(command, cwd=copy.home, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"pytest ended with {ran.returncode}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")


def with_mutmut_too(root: Path, names: Sequence[str], workers: int, console: Console) -> None:
    """Let mutmut try its own mutants of modules, and print those that no test notices."""
    reached = reach.load(root, workers)
    files = [f"{name.replace('.', '/')}.py" for name in names]
    entered = [name for name in reached.functions if name.partition(":")[0] in files]
    tests = {test for name in entered for test in reached.choose(name)[:_MOST_TESTS_OF_MUTMUT]}
    with copies(root, 1) as (copy,):
        found = with_mutmut.survivors(copy, files, sorted(tests), workers)
    console.print("mutmut:", *found, sep="\n", soft_wrap=True, markup=False)
    console.print(f"mutmut: {len(found)} survived")


def report(results: Sequence[dict[str, Any]], console: Console) -> None:
    """Print the mutants that no test notices, function by function, and the numbers."""
    for one in sorted(results, key=lambda one: one["function"]):
        if one["result"] != "noticed":
            console.print(f"{one['function']}: {one['change']} ({one['result']})", soft_wrap=True, markup=False)
    numbers = Counter(one["result"] for one in results)
    console.print(f"{len(results)} mutants: " + ", ".join(f"{count} {name}" for name, count in numbers.most_common()))
