"""Stores of earlier versions: brought up to date, kept beside, and never taken for damaged ones."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bot.store import database
from bot.store.database import migrations
from bot.store.errors import StoreTooNew
from bot.store.salvage import check
from tests.bot.store.opened import KEY, accept, opened

NEWEST = len(migrations())
DATA_ONLY = "UPDATE session SET settings='{\"migrated\": true}';"
REBUILT = """
CREATE TABLE session_new (
  session_key TEXT PRIMARY KEY, transcript_id TEXT NOT NULL REFERENCES transcript,
  settings TEXT NOT NULL DEFAULT '{}', last_conv INTEGER REFERENCES conversation, used_at INTEGER NOT NULL,
  mood TEXT NOT NULL DEFAULT 'fine'
) STRICT, WITHOUT ROWID;
INSERT INTO session_new SELECT *, 'fine' FROM session;
DROP TABLE session;
ALTER TABLE session_new RENAME TO session;
CREATE TABLE conversation_new (
  conv_id INTEGER PRIMARY KEY, channel TEXT NOT NULL, account TEXT NOT NULL, chat TEXT NOT NULL,
  thread TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL, moved_to INTEGER REFERENCES conversation,
  UNIQUE (channel, account, chat, thread)
) STRICT;
INSERT INTO conversation_new SELECT * FROM conversation;
DROP TABLE conversation;
ALTER TABLE conversation_new RENAME TO conversation;
CREATE TABLE pet (owner TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (owner, name)) STRICT, WITHOUT ROWID;
"""
LOSES_PARENTS = "DELETE FROM conversation;"
Later = Callable[..., None]


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Later:
    """Makes this the program of a later version, with these migrations more."""

    def install(*scripts: str) -> None:
        folder = tmp_path / f"migrations-{len(scripts)}"
        folder.mkdir()
        for number, script in enumerate((*database_scripts, *scripts), 1):
            (folder / f"{number:04}_x.sql").write_text(script)
        monkeypatch.setattr(database, "MIGRATIONS", folder)

    database_scripts = migrations()
    return install


def value(path: Path, sql: str) -> object:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchone()[0]


async def old_store(home: Path) -> Path:
    """Made by the present version, with a message in it."""
    async with opened(home) as store:
        await accept(store)
    return home / "hark.db"


@pytest.mark.parametrize("crashed", [False, True])
async def test_a_migration_that_changes_only_data(tmp_path: Path, later: Later, crashed: bool) -> None:
    path = await old_store(tmp_path)
    (tmp_path / "hark.db.clean").unlink(missing_ok=crashed)
    later(DATA_ONLY)
    async with opened(tmp_path) as store:
        assert store.salvage is None
        assert await store.inbox.count_waiting(KEY) == 1
    assert value(path, "SELECT settings FROM session") == '{"migrated": true}'
    assert value(path, "PRAGMA user_version") == NEWEST + 1
    assert value(tmp_path / f"hark.db.v{NEWEST}", "SELECT settings FROM session") == "{}"
    assert (tmp_path / f"hark.db.v{NEWEST}").stat().st_mode & 0o777 == 0o600
    async with opened(tmp_path) as store:
        assert store.salvage is None


async def test_an_earlier_program_leaves_data_of_a_later_one_alone(
    tmp_path: Path, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await old_store(tmp_path)
    with monkeypatch.context():
        present = database.MIGRATIONS
        later(DATA_ONLY)
        async with opened(tmp_path):
            pass
    monkeypatch.setattr(database, "MIGRATIONS", present)
    before = path.read_bytes()
    with pytest.raises(StoreTooNew):
        async with opened(tmp_path):
            pass
    assert path.read_bytes() == before


async def test_tables_that_others_point_to_can_be_built_anew(tmp_path: Path, later: Later) -> None:
    path = await old_store(tmp_path)
    later(DATA_ONLY, REBUILT)
    async with opened(tmp_path) as store:
        assert store.salvage is None
        await accept(store)
        with pytest.raises(sqlite3.IntegrityError):  # foreign keys hold again
            await store._writer.write(lambda db: db.execute("DELETE FROM conversation"))
    assert value(path, "SELECT mood FROM session") == "fine"
    assert value(path, "PRAGMA user_version") == NEWEST + 2
    async with opened(tmp_path) as store:
        assert store.salvage is None
        assert await store.inbox.count_waiting(KEY) == 2


async def test_a_migration_that_breaks_something_is_undone_alone(tmp_path: Path, later: Later) -> None:
    path = await old_store(tmp_path)
    later(DATA_ONLY, LOSES_PARENTS)
    for _ in range(2):
        with pytest.raises(
            sqlite3.IntegrityError, match=f"migration {NEWEST + 2} leaves rows of .* without conversation"
        ):
            async with opened(tmp_path):
                pass
    assert value(path, "PRAGMA user_version") == NEWEST + 1
    assert value(path, "SELECT count(*) FROM conversation") == 1


async def test_a_damaged_store_of_an_earlier_version_is_recovered_and_migrated(tmp_path: Path, later: Later) -> None:
    for name, place in (("kind", 0), ("version", 63), ("copy", 71)):
        home = tmp_path / name
        path = await old_store(home)
        content = bytearray(path.read_bytes())
        content[place] ^= 0x55
        path.write_bytes(content)
    later(DATA_ONLY, REBUILT)
    for name in ("kind", "version", "copy"):
        async with opened(tmp_path / name) as store:
            assert (store.salvage is None) == (name == "copy")
            assert await store.inbox.count_waiting(KEY) == 1
        assert value(tmp_path / name / "hark.db", "SELECT mood FROM session") == "fine"


async def test_a_table_of_a_later_version_is_recovered_like_the_others(tmp_path: Path, later: Later) -> None:
    later(REBUILT)
    path = await old_store(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.executemany("INSERT INTO pet VALUES (?, ?)", [(KEY, f"pet {n}") for n in range(300)])
        db.commit()
    content = bytearray(path.read_bytes())
    content[content.index(b"pet 150")] ^= 0xFF
    content[21] ^= 0x55
    path.write_bytes(content)
    found = check(tmp_path, 0)
    assert found is not None
    assert found.rows["pet"] == 300
