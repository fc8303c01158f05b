"""The file: one process at a time, nobody else's business, never older than its program; full disks and locks."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path

import pytest

from bot.persistence.errors import StateLocked, StoreTooNew, StoreUnavailable
from bot.store.store import Store
from tests.bot.store.opened import KEY, accept, opened

_HOLD = """
import sys
from pathlib import Path
from bot.store.database import lock_directory
lock_directory(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


async def test_a_second_process_is_refused_until_the_first_is_gone_however_it_ended(tmp_path: Path) -> None:
    first = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _HOLD, str(tmp_path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert first.stdout is not None
    assert await first.stdout.readline() == b"held\n"
    with pytest.raises(StateLocked, match=rf"another Hark \(process {first.pid}\).*state:"):
        async with opened(tmp_path):
            pass
    first.kill()
    await first.wait()
    async with opened(tmp_path) as store:
        assert await store.try_write()


async def test_a_store_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "hark.db")) as database:
        database.executescript("CREATE TABLE later (it TEXT) STRICT; PRAGMA user_version=99;")
    before = (tmp_path / "hark.db").read_bytes()
    for _ in range(2):  # the lock is free again after a refusal
        with pytest.raises(StoreTooNew, match="schema 99"):
            async with opened(tmp_path):
                pass
    assert (tmp_path / "hark.db").read_bytes() == before


async def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    home = tmp_path / "state"
    mask = os.umask(0)
    try:
        async with opened(home) as store:
            await accept(store)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.iterdir())}
    finally:
        os.umask(mask)
    assert modes.pop("state") == 0o700
    assert {"hark.db", "hark.db-wal", "hark.db-shm", "lock"} <= set(modes)
    assert set(modes.values()) == {0o600}


async def test_nothing_is_accepted_on_a_full_disk_and_everything_after_it(store: Store) -> None:
    await accept(store, "before")

    async def allow(pages: int) -> None:
        sql = f"PRAGMA max_page_count={pages}"
        await store.database.execute(lambda db: db.execute(sql).fetchone())

    await allow(1)  # no more than there are
    with pytest.raises(StoreUnavailable, match="full"):
        await accept(store, "too much " * 100_000)
    assert store.failure is not None
    assert await store.inbox.count_waiting(KEY) == 1
    await allow(1_000_000)
    assert await store.try_write()
    assert store.failure is None
    await accept(store, "too much " * 100_000)
    assert await store.inbox.count_waiting(KEY) == 2


async def test_a_lock_of_another_program_is_waited_for_and_then_said(tmp_path: Path, store: Store) -> None:
    await store.database.execute(lambda db: db.execute("PRAGMA busy_timeout=20").fetchone())
    with closing(sqlite3.connect(tmp_path / "hark.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await accept(store)
        assert store.failure is not None
        assert await store.inbox.count_waiting(KEY) == 0, "reading goes on"
        other.execute("ROLLBACK")
    await accept(store)
    assert store.failure is None


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_of_several_writes_that_fails_undoes_itself_alone(place: int, store: Store) -> None:
    """They share a commit, whichever of them it is."""

    def broken(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO kv (scope, key, value) VALUES ('test', 'mark', '7')")
        raise ValueError("half done")

    writes: list[Awaitable[object]] = [accept(store, "first"), accept(store, "last")]
    writes.insert(place, store.writer.write(broken))
    outcomes: list[object] = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(outcomes.pop(place), ValueError)
    assert outcomes == [1, 2]
    assert await store.inbox.mark("test") is None


async def test_a_write_that_fails_alone_is_undone(tmp_path: Path) -> None:
    def broken(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO kv (scope, key, value) VALUES ('test', 'mark', '7')")
        raise ValueError("half done")

    async with opened(tmp_path) as store:
        with pytest.raises(ValueError, match="half done"):
            await store.writer.write(broken)
        assert await store.inbox.mark("test") is None
        assert await accept(store) == 1


async def test_writes_that_wait_share_a_commit(tmp_path: Path) -> None:
    """Each costs a wait for the disk: a hundred messages at once take two."""
    commits = 0

    def count(at: str) -> None:
        nonlocal commits
        commits += at == "after"

    async with opened(tmp_path, probe=count) as store:
        commits = 0
        seqs = await asyncio.gather(*(accept(store) for _ in range(100)))
        assert seqs == list(range(1, 101))
        assert 1 <= commits <= 2


async def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    """With less than FULL (2) a write-ahead log loses its last commits when the machine loses its power."""
    async with opened(tmp_path) as store:
        asked = ("synchronous", "journal_mode", "foreign_keys")
        found = [
            await store.database.execute(lambda db, name: db.execute(f"PRAGMA {name}").fetchone()[0], name)
            for name in asked
        ]
    assert found == [2, "wal", 1]
