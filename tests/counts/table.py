"""The limits of each folder of tests, and what a run of the tests is told about them.

`tests/counts.toml` holds a row a folder: for each column the limit of the folder and the largest count of a single
test at the time when the row was written.
"""

import math
import subprocess
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tests.counts.tally import COLUMNS, Numbers, zero

TABLE = "tests/counts.toml"
HEADER = """\
# Limits of each folder of tests, which every run of the whole suite compares with its counts (tests/counts).
# [limit of the folder, largest count of one test]: services started, programs run, processes forked, temporary files
# opened, connections to SQLite. A column that is not there has the limit 0. `make test`, then
# `python -m tests.counts --write` writes it again: a growth needs a reason in the commit.

"""
ROOM = 1.05
"""Room of a limit above what was counted."""
NAMED = 8
"""Tests that a message names at most."""


@dataclass(frozen=True)
class Row:
    """What a folder may count, and the most that one test of it has counted, by column."""

    limits: tuple[int, ...]
    most: tuple[float, ...]


def folder_of(name: str) -> str:
    """Return the folder whose row a test or a file of tests counts in: at most two levels below `tests`."""
    return "/".join(PurePosixPath(name.split("::")[0]).parent.parts[:3])


def sums(counts: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Add up the tests of each folder."""
    found: dict[str, Numbers] = {}
    for name, numbers in counts.items():
        total = found.setdefault(folder_of(name), zero())
        for column, number in enumerate(numbers):
            total[column] += number
    return found


def limit_for(count: int) -> int:
    """Return the limit for what was counted, with some room."""
    if count < 20:
        return math.ceil(count * ROOM)
    step = int("1" + "0" * (len(str(count)) - 2))
    return math.ceil(count * ROOM / step) * step


def row(counts: Iterable[Numbers]) -> Row:
    """Return the row for the counts of the tests of a folder."""
    columns = list(zip(*counts, strict=True))
    return Row(tuple(limit_for(sum(numbers)) for numbers in columns), tuple(map(max, columns)))


def read(path: Path) -> dict[str, Row]:
    """Read the table."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))
    found = {}
    for folder, columns in rows.items():
        if unknown := columns.keys() - set(COLUMNS):
            raise ValueError(f"{path}: {folder} has an unknown column: {', '.join(sorted(unknown))}")
        pairs = [columns.get(name, (0, 0)) for name in COLUMNS]
        found[folder] = Row(tuple(limit for limit, _ in pairs), tuple(most for _, most in pairs))
    return found


def write(path: Path, rows: Mapping[str, Row]) -> None:
    """Write the table, its folders in order."""
    width = max(map(len, rows), default=0) + 2
    lines = []
    for folder, one in sorted(rows.items()):
        columns = zip(COLUMNS, one.limits, one.most, strict=True)
        pairs = [f"{name} = [{limit}, {most:g}]" for name, limit, most in columns if limit]
        quoted = f'"{folder}"'
        lines.append(f"{quoted:{width}} = {{ {', '.join(pairs)} }}".replace("{  }", "{}"))
    path.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


def growths(
    rows: Mapping[str, Row], counts: Mapping[str, Numbers], whole: Collection[str], changed: Collection[str]
) -> list[str]:
    """Return a message for each folder that is above a limit.

    whole: folders of which every test was run. changed: files of tests that changed since the table did.
    """
    found = []
    for folder, total in sorted(sums(counts).items()):
        if folder not in whole:
            continue
        if folder not in rows:
            found.append(f"{folder} has no row in {TABLE}: write one with `python -m tests.counts --write`.")
            continue
        for column, (count, ceiling) in enumerate(zip(total, rows[folder].limits, strict=True)):
            if count > ceiling:
                tests = {name: numbers[column] for name, numbers in counts.items() if folder_of(name) == folder}
                head = f"{folder}: {COLUMNS[column]} {count}, and {TABLE} allows {ceiling}."
                found.append("\n".join([head, *_causes(tests, rows[folder].most[column], changed)]))
    return found


def _causes(tests: Mapping[str, int], most: float, changed: Collection[str]) -> list[str]:
    """Name the tests behind a growth: the largest ones if nothing else is known."""
    above = {name: count for name, count in tests.items() if count > most}
    fresh = {name: count for name, count in tests.items() if count and name.split("::")[0] in changed}
    lines = []
    if above:
        lines += [f"  above {most:g}, the most that one test of it had:", *_largest(above)]
    if fresh := {name: count for name, count in fresh.items() if name not in above}:
        lines += ["  in files that changed since the table was written:", *_largest(fresh)]
    if not lines:
        lines = ["  none of its tests changed, so the product or a helper did; most have:", *_largest(tests)]
    return lines


def _largest(tests: Mapping[str, int]) -> list[str]:
    ordered = sorted(tests.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"    {count:8}  {name}" for name, count in ordered[:NAMED]]
    if len(ordered) > NAMED:
        lines.append(f"              and {len(ordered) - NAMED} more")
    return lines


def changed_files(root: Path) -> set[str]:
    """Return the files of tests that changed since the commit that last touched the table; none without git."""
    since = _git(root, "log", "-1", "--format=%H", "--", TABLE)
    if not since:
        return set()
    changes = _git(root, "diff", "--name-only", since[0], "--", "tests")
    return {*changes, *_git(root, "ls-files", "--others", "--exclude-standard", "--", "tests")}


def _git(root: Path, *arguments: str) -> list[str]:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return done.stdout.splitlines()
