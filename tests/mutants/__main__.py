"""`python -m tests.mutants`: tries deliberate faults, and ends with 1 unless all are noticed.

With modules, a revision or a sample it tries small faults that a machine makes, and reports those that no test notices.
"""

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.mutants import every, faults, survey

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str]) -> int:
    """Try what is asked for. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="a fault, or an area: store, delivery, …")
    parser.add_argument("--modules", nargs="+", metavar="MODULE", help="all machine mutants of agent.calls.claims …")
    parser.add_argument("--changed", metavar="REVISION", help="those of the functions changed since, such as main")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of the whole product")
    parser.add_argument(
        "--like", type=Path, metavar="FILE", help="those of a file that --out made, of another checkout"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--out", type=Path, help="a file for a line of JSON on each; continued when it exists")
    parser.add_argument("--workers", type=int, default=faults.WORKERS)
    given = parser.parse_args(arguments)
    console = Console(highlight=False)
    if given.modules or given.changed or given.sample or given.like:
        mutants = survey.of_modules(ROOT, given.modules or ())
        mutants += survey.changed(ROOT, given.changed) if given.changed else []
        mutants += survey.draw(ROOT, given.sample, given.seed) if given.sample else []
        mutants += survey.like(given.like) if given.like else []
        survey.report(survey.try_all(mutants, ROOT, given.workers, given.out), console)
        if given.modules:
            survey.with_mutmut_too(ROOT, given.modules, given.workers, console)
        return 0
    found = {fault.name: fault for fault in every()}
    known = [*found, *dict.fromkeys(name.partition("/")[0] for name in found)]
    for name in given.names:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            parser.error(f"no such fault: {name}" + (f"; the nearest is {nearest[0]}" if nearest else ""))
    names = set(given.names)
    chosen = [fault for name, fault in found.items() if not names or {name, name.partition("/")[0]} & names]
    return 0 if faults.try_all(chosen, ROOT, console) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
