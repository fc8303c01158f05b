"""What `/readyz` and `hark status` say about the store."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.gateway.status import Health
from bot.gateway.views import ChannelView, ReadinessView
from bot.persistence.recovery import Salvage
from tests.service import running
from tests.stored import Like

NOW = 1_700_000_000_000
FOUND = Salvage("malformed", Path("/state/hark.db.damaged-1"), {"entry": 40, "inbox": 2}, at=5)
WORDS = "the store was damaged: kept as /state/hark.db.damaged-1, 42 rows recovered"


def report(failure: str | None, salvage: Salvage | None, *, serving: bool = True) -> ReadinessView:
    health = Health((), SimpleNamespace(failure=failure, salvage=salvage), lambda: NOW)
    health.serving = serving
    return health.view()


def test_a_whole_store_is_not_spoken_of() -> None:
    assert report(None, None).channels == {}


def test_a_recovered_store_is_ready_and_says_what_happened() -> None:
    found = report(None, FOUND)
    assert found.ready
    assert found.channels == {"store": ChannelView(state="ready", since="1970-01-01T00:00:00.005Z", detail=WORDS)}


def test_tables_that_lack_rows_are_named() -> None:
    found = report(None, replace(FOUND, lost=("entry",)))
    assert found.channels["store"].detail == f"{WORDS}, not all of entry"


def test_a_store_that_cannot_write_is_not_ready_whatever_was_recovered() -> None:
    found = report("the store cannot write: disk full", FOUND)
    assert not found.ready
    assert found.channels["store"].detail == "the store cannot write: disk full"


def test_what_does_not_serve_yet_or_any_more_is_not_ready() -> None:
    assert not report(None, None, serving=False).ready


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_console_that_is_not_enabled_is_not_listed(tmp_path: Path, enabled: bool) -> None:
    async with running(tmp_path, config={"channels": {"console": {"enabled": enabled}}}) as hark:
        assert ("console" in hark.service.parts.health.view().channels) is enabled


def damage(path: Path) -> None:
    """Break the first byte of a store that is closed."""
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


async def test_the_service_tells_of_its_recovered_store(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("hello")
    damage(hark.state / "hark.db")
    async with running(tmp_path) as hark:
        health = hark.service.parts.health.view()
        assert health.ready
        assert health.channels["store"].detail.startswith("the store was damaged: kept as ")
        assert health.channels["store"].detail.endswith("nothing of it could be read, so a new store was begun")


async def test_an_owner_is_told_of_a_salvage_once(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        await hark.say("hello")
    damage(hark.state / "hark.db")
    async with running(tmp_path) as hark:
        await hark.until(lambda: hark.stored.deliveries(source=Like("salvage:%")), "the notice")
        ((told,),) = hark.stored.deliveries("body", source=Like("salvage:%"))
        assert told.startswith("The store was damaged (")
        (kept,) = hark.state.glob("hark.db.damaged-*[0-9]")
        assert str(kept) in told
    async with running(tmp_path) as hark:
        await hark.write("hello again")
        await hark.until_texts(1)
        assert len(hark.stored.deliveries(source=Like("salvage:%"))) == 1
