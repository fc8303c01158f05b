"""Shows what the last run of tests counted, and writes `tests/counts.toml` from it.

python -m tests.counts             what each folder counted
python -m tests.counts --write     new rows for the folders that the run had whole
"""

import argparse
import json
import sys
from pathlib import Path

from tests.counts import table
from tests.counts.plugin import LAST
from tests.counts.tally import COLUMNS, Numbers

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the command; 1 where no run has left counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.counts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {table.TABLE}")
    write = parser.parse_args(arguments).write
    if not (root / LAST).exists():
        sys.stderr.write("No run has left counts: run `make test` first.\n")
        return 1
    last = json.loads((root / LAST).read_text(encoding="utf-8"))
    counts: dict[str, Numbers] = last["counts"]
    for folder, numbers in sorted(table.sums(counts).items()):
        columns = (f"{name} {number}" for name, number in zip(COLUMNS, numbers, strict=True) if number)
        sys.stdout.write(f"{folder}: {', '.join(columns)}\n")
    if write:
        known = table.read(root / table.TABLE) if (root / table.TABLE).exists() else {}
        rows = {folder: row for folder, row in known.items() if (root / folder).is_dir()}
        for folder in last["whole"]:
            rows[folder] = table.row([numbers for name, numbers in counts.items() if table.folder_of(name) == folder])
        table.write(root / table.TABLE, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
