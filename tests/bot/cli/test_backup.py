"""`hark backup FILE`: what is in the store, with its write-ahead log, in a file of its own."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.store import database
from tests.bot.gateway.house import house
from tests.forked import begin, hark


def messages(file: Path) -> int:
    with closing(sqlite3.connect(file)) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(store.execute("SELECT count(*) FROM inbox").fetchone()[0])


async def test_a_copy_beside_a_service_has_what_only_the_log_has(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with house(tmp_path, reply="Yes.") as at:
        await at.submit("hello")
        await (await begin(tmp_path, "agent", "-m", "and again", piped=True)).finish()
        plain = tmp_path / "plain.db"
        plain.write_bytes((tmp_path / "state" / "hark.db").read_bytes())
        assert messages(plain) < 2, "a copy of the file alone loses what is in the log"
        done = await (await begin(tmp_path, "backup", str(copy), piped=True)).finish()
        assert (done.code, done.error) == (0, "")
        assert done.out.startswith(f"The store is copied to {copy}.")
        assert messages(copy) == 2
        assert copy.stat().st_mode & 0o777 == 0o600
    (tmp_path / "other" / "state").mkdir(parents=True)
    copy.rename(tmp_path / "other" / "state" / "hark.db")
    (tmp_path / "other" / "config.yaml").write_text("agent: {model: offline/offline}\n")
    assert hark(tmp_path / "other", "status").out.splitlines()[1].startswith("sessions    2")


def test_no_file_is_replaced_and_without_a_store_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("agent: {model: offline/offline}\n")
    done = hark(tmp_path, "backup", "copy.db")
    assert (done.code, done.out) == (1, "")
    assert done.error == f"There is no store in {tmp_path / 'state'}, so there is nothing to copy.\n"
    assert hark(tmp_path, "agent", "-m", "say one").code == 0
    (tmp_path / "mine").write_text("keep me")
    done = hark(tmp_path, "backup", "mine")
    assert (done.code, done.error) == (1, "mine is there already; name a new file.\n")
    assert (tmp_path / "mine").read_text() == "keep me"
    done = hark(tmp_path, "backup", "nowhere/copy.db")
    assert (done.code, done.error.count("\n")) == (1, 1)
    assert hark(tmp_path, "backup", "copy.db").code == 0
    assert messages(tmp_path / "copy.db") == 1


def test_a_copy_that_is_cut_short_has_not_the_name_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(tmp_path / "hark.db")) as store:
        store.execute("CREATE TABLE one (a)")

    def die(connection: sqlite3.Connection, copy: Path) -> None:
        copy.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(database, "_copy", die)
    with pytest.raises(KeyboardInterrupt):
        database.copy_of(tmp_path / "hark.db", tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir()] == ["hark.db"]
    (tmp_path / ".copy.db.part").write_bytes(b"left by a crash")
    monkeypatch.undo()
    database.copy_of(tmp_path / "hark.db", tmp_path / "copy.db")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "hark.db"]
