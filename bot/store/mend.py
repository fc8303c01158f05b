"""Copies of a damaged file made readable: a new header, or all pages that say which tables there are and where.

Both come from a database that was just made, which this program lays out as it did the damaged one at its beginning.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from bot.store.database import PAGE_SIZE, migrate

HEADER = 100
"""Bytes of the header of a database file."""
_PAGE_COUNT = 28
_INTERIOR = 5
"""Kind of a page whose cells begin with the number of a page below it."""


def mend_header(path: Path, version: int) -> None:
    """Give a file the header of a new database, with as many pages as it is long and no free ones.

    version: of the schema that the new database has.
    """
    _mend(path, version, schema=False)


def mend_schema(path: Path, version: int) -> None:
    """As mend_header, and its schema is that of a new database, page by page."""
    _mend(path, version, schema=True)


def _mend(path: Path, version: int, *, schema: bool) -> None:
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(18)[16:], "big")
        if size not in {512 << power for power in range(7)}:
            size = PAGE_SIZE
        fresh = _fresh(size, version)
        for page in _schema_pages(fresh, size) if schema else ():
            file.seek((page - 1) * size)
            file.write(fresh[(page - 1) * size : page * size])
        file.seek(0)
        file.write(fresh[:HEADER])
        file.seek(_PAGE_COUNT)
        file.write((path.stat().st_size // size).to_bytes(4, "big"))


def _fresh(size: int, version: int) -> bytes:
    """A database with no rows, as bytes."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute(f"PRAGMA page_size={size}")
        migrate(made, version)
        return made.serialize()


def _schema_pages(file: bytes, size: int, page: int = 1) -> Iterator[int]:
    """The pages of the tree that begins at a page; that of page 1 is the schema."""
    yield page
    start = (page - 1) * size
    head = start + (HEADER if page == 1 else 0)
    if file[head] == _INTERIOR:
        count = int.from_bytes(file[head + 3 : head + 5], "big")
        cells = (int.from_bytes(file[head + 12 + 2 * n : head + 14 + 2 * n], "big") for n in range(count))
        for child in (head + 8, *(start + cell for cell in cells)):
            yield from _schema_pages(file, size, int.from_bytes(file[child : child + 4], "big"))
