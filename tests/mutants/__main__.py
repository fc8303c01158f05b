"""`python -m tests.mutants [name or area …]`: says of each deliberate fault whether its tests notice it.

Ends with 1 unless all were noticed. The tests are run once without any fault first: only those that pass can notice.
"""

import argparse
import difflib
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console

from tests.mutants import Fault, every
from tests.mutants._copy import Copy, NotRun

WORKERS = 2
_STYLES = {True: "green", False: "bold red"}


def main(arguments: Sequence[str]) -> int:
    """Try the faults named, or all. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="a fault, or an area: store, delivery, …")
    names = parser.parse_args(arguments).names
    found = {fault.name: fault for fault in every()}
    known = [*found, *dict.fromkeys(name.partition("/")[0] for name in found)]
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, 1)
            parser.error(f"no such fault: {name}" + (f"; the nearest is {nearest[0]}" if nearest else ""))
    chosen = [fault for name, fault in found.items() if not names or {name, name.partition("/")[0]} & set(names)]
    return 0 if try_all(chosen, Path(__file__).parents[2], Console(highlight=False)) else 1


def try_all(faults: Sequence[Fault], root: Path, console: Console) -> bool:
    """Try faults in copies of the checkout `root`, two at a time. Returns whether all were noticed."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as home:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(WORKERS):
            copies.put(Copy(root, Path(home) / str(number)))

        def attempt(fault: Fault) -> tuple[bool, str]:
            copy = copies.get()
            try:
                return copy.attempt(fault)
            finally:
                copies.put(copy)

        copy = copies.get()
        try:
            failing = copy.failing(sorted({test for fault in faults for test in fault.tests}))
        except NotRun as error:
            console.print(f"Without any fault: {error}", style=_STYLES[False], markup=False)
            return False
        copies.put(copy)
        lost = [f"{fault.name}: {test}" for fault in faults for test in fault.tests if failing(test)]
        if lost:
            console.print("Fails without any fault:", *lost, sep="\n  ", style=_STYLES[False], markup=False)
            return False
        good = True
        with ThreadPoolExecutor(WORKERS) as pool:
            running = {pool.submit(attempt, fault): fault for fault in faults}
            for done in as_completed(running):
                noticed, said = done.result()
                good &= noticed
                line = f"{running[done].name:52} {said}"
                console.print(line, style=_STYLES[noticed], soft_wrap=True, markup=False)
    console.print(f"{len(faults)} faults, " + ("all noticed" if good else "not all noticed"))
    return good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
