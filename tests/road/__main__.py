"""`python -m tests.road [--statements] [road …]`: what a message, an approval and a beat call, function by function."""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import structlog

from tests.road.roads import Road, travelling

ROADS = ("message", "tool", "approval", "beat")


def main(arguments: Sequence[str]) -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.road", description=__doc__)
    parser.add_argument("roads", nargs="*", metavar="road", help=", ".join(ROADS))
    parser.add_argument("--statements", action="store_true", help="also each statement of the store, in order")
    options = parser.parse_args(arguments)
    if unknown := set(options.roads) - set(ROADS):
        parser.error(f"no such road: {', '.join(sorted(unknown))}")
    for name, road in asyncio.run(_counted(options.roads or ROADS)).items():
        lines = [f"\n== {name}", *tables(road), *(statements(road) if options.statements else ())]
        sys.stdout.write("\n".join(lines) + "\n")


async def _counted(names: Sequence[str]) -> dict[str, Road]:
    """Each road with a service of its own, as in the test."""
    found = {}
    with structlog.testing.capture_logs():
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                async with travelling(Path(folder)) as traveller:
                    found[name] = await getattr(traveller, name)()
    return found


def summary(road: Road) -> str:
    """One line."""
    trace, work = road.trace, road.work
    return (
        f"{len(trace.calls)} calls in {len(trace.files())} files, {sum(trace.crossings().values())} between packages; "
        f"{len(work.statements)} statements, {work.commits} commits, {work.hops} hops between threads "
        f"({work.jobs} jobs of the store, {work.blocking} blocking calls, {work.callbacks} callbacks)"
    )


def tables(road: Road) -> Iterable[str]:
    """Calls by package, between packages, by file in the order in which the road comes to them, and by function."""
    trace = road.trace
    yield summary(road)
    yield f"\nby package: {_row(trace.packages())}"
    yield f"between: {_row(Counter({' → '.join(pair): count for pair, count in trace.crossings().items()}))}"
    yield "\nby file, in the order of the road"
    yield from (f"{count:6} {file}" for file, count in trace.files().items())
    yield "\nby function, the most called first"
    counted = trace.functions().most_common()
    yield from (f"{count:6} {function.file} {function.name}" for function, count in counted)
    yield "\nstatements by function of the store"
    wanted = Counter(statement.function for statement in road.work.statements)
    yield from (f"{count:6} {function}" for function, count in wanted.items())


def statements(road: Road) -> Iterable[str]:
    """Each statement in its order, with the function that wants it."""
    yield "\nstatements in order"
    for number, statement in enumerate(road.work.statements, 1):
        yield f"{number:4} {statement.function}: {statement.sql[:150]}"


def _row(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.most_common())


if __name__ == "__main__":
    main(sys.argv[1:])
