"""Tries deliberate faults in copies of the checkout: does each test that is named notice its fault?"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console

from tests.mutants import Fault
from tests.mutants.copies import Copy, NotRun, copies, of
from tests.mutants.edits import NotOnePlace, broken

WORKERS = 2
_STYLES = {True: "green", False: "bold red"}


def try_all(faults: Sequence[Fault], root: Path, console: Console) -> bool:
    """Try faults, two at a time. Returns whether all were noticed.

    The tests are run once without any fault first: only those that pass can notice.
    """
    with copies(root, WORKERS) as places:
        try:
            ran = places[0].run(sorted({test for fault in faults for test in fault.tests}))
        except NotRun as error:
            console.print(f"Without any fault: {error}", style=_STYLES[False], markup=False)
            return False
        lost = [f"{fault.name}: {test}" for fault in faults for test in fault.tests if of(test, ran.failed)]
        if lost:
            console.print("Fails without any fault:", *lost, sep="\n  ", style=_STYLES[False], markup=False)
            return False
        free: SimpleQueue[Copy] = SimpleQueue()
        for place in places:
            free.put(place)
        good = True
        with ThreadPoolExecutor(WORKERS) as pool:
            running = {pool.submit(_attempt, fault, root, free, ran.took): fault for fault in faults}
            for done in as_completed(running):
                noticed, said = done.result()
                good &= noticed
                line = f"{running[done].name:52} {said}"
                console.print(line, style=_STYLES[noticed], soft_wrap=True, markup=False)
    console.print(f"{len(faults)} faults, " + ("all noticed" if good else "not all noticed"))
    return good


def _attempt(fault: Fault, root: Path, free: SimpleQueue[Copy], usual: Mapping[str, float]) -> tuple[bool, str]:
    """Whether the tests of a fault notice it, and what to say of it."""
    copy = free.get()
    try:
        file, text = broken(root, fault.place, fault.edit)
        imported = copy.home / ".imported"
        imported.unlink(missing_ok=True)
        mark = f"\nopen({str(imported)!r}, 'w').close()\n" if file.endswith(".py") else ""
        module, *program = re.split(r"(?m)(?=^if __name__ == )", text)  # a program may never reach its end
        with copy.broken(file, "".join([module, mark, *program])):
            failed = copy.run(fault.tests, usual).failed
        if mark and not imported.exists():
            return False, f"NOT IMPORTED: {file} of the copy, or importing it fails"
    except NotOnePlace as error:
        return False, f"NO SUCH PLACE: {error}"
    except NotRun as error:
        return False, f"NOT RUN: {error}"
    finally:
        free.put(copy)
    survived = [test for test in fault.tests if not of(test, failed)]
    return (False, f"SURVIVED {', '.join(survived)}") if survived else (True, "noticed")
