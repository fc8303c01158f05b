"""A new store begins with all tables at once, exactly as the migrations would make them one after the other."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bot.store import salvage
from bot.store.database import APPLICATION, migrate, newest_version, schema, version_of
from bot.store.salvage import check
from tests.bot.store.schema import migrated


@contextmanager
def made(version: int | None) -> Iterator[sqlite3.Connection]:
    """An empty store of a version, made by all migrations up to it; without a version as a service makes it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        migrate(database, version)
        yield database


def rows(database: sqlite3.Connection, sql: str) -> list[tuple[object, ...]]:
    return database.execute(sql).fetchall()


def test_it_is_what_the_migrations_make() -> None:
    assert schema() == migrated(), "`python -m tests.bot.store.schema` writes it anew"
    with made(None) as new, made(newest_version()) as old:
        what = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
        assert rows(new, what) == rows(old, what)
        assert version_of(new) == version_of(old) == newest_version()
        ((application,),) = rows(new, "PRAGMA application_id")
        assert application == APPLICATION + newest_version()
        assert rows(new, "PRAGMA foreign_keys") == rows(old, "PRAGMA foreign_keys")


def test_no_migration_leaves_a_row_that_a_new_store_has_to_begin_with() -> None:
    with made(newest_version()) as database:
        for (table,) in rows(database, "SELECT name FROM sqlite_schema WHERE type='table'"):
            found = rows(database, f"SELECT * FROM {table}")
            assert found in ([], [("event", 0)]), f"{table}: only numbers that begin at 1"


def test_a_new_store_is_made_in_one_transaction() -> None:
    """Whoever dies at its end has made nothing, and the next start makes all of it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        said: list[str] = []
        database.set_trace_callback(lambda statement: said.append(statement.strip()))
        migrate(database)
        assert sum(statement.startswith("BEGIN") for statement in said) == 1
        assert said.count("COMMIT") == 1
        first, last = said.index("BEGIN IMMEDIATE;"), said.index("COMMIT")
        changes = [number for number, statement in enumerate(said) if statement.startswith("CREATE")]
        assert first < min(changes)
        assert max(changes) < last
        assert any(statement.startswith("PRAGMA application_id=") for statement in said[first:last])


def test_tables_of_the_newest_version_are_compared_with_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start makes no tables only to compare with them; where something differs it still does."""
    path = tmp_path / "hark.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        migrate(database)
    compared: list[list[int]] = []
    fitting = salvage._fitting

    def comparing(database: sqlite3.Connection) -> list[int]:
        compared.append(fitting(database))
        return compared[-1]

    monkeypatch.setattr(salvage, "_fitting", comparing)
    assert check(tmp_path, 0) is None
    assert not compared
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA user_version=7")
    found = check(tmp_path, 0)
    assert found is not None
    assert "version is 7" in found.problem
    assert compared[0] == [newest_version()]
