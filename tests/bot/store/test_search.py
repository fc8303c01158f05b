"""The search index: which words are found, in which scripts, and that it follows the store."""

import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from agent.message import Message, Text
from bot.persistence.sessions import Imported
from bot.store import search
from bot.store.store import Store
from tests.bot.store.opened import KEY, opened


async def say(store: Store, *texts: str, transcript: str = "t1") -> None:
    """Put lines into a transcript."""
    lines = [("user", Message("user", (Text(text),))) for text in texts]
    imported = Imported(transcript=transcript, session=KEY, created_at=1, lines=lines, skipped=0)  # type: ignore[arg-type]
    for begin in range(0, len(lines), 200):
        await store.sessions.take_in(imported, begin)


async def found(store: Store, words: str) -> list[str]:
    while await store.search.fill():
        pass
    return [hit.text for hit in await store.search.find(words, 20)]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("我们明天去北京开会", "北京"),
        ("我们明天去北京开会", "开会"),
        ("我们明天去北京开会", "京"),
        ("我们明天去北京开会", "会"),
        ("明日は東京タワーへ行きます", "東京"),
        ("내일 서울에서 만나요", "서울"),
        ("ประชุมพรุ่งนี้", "พรุ่งนี้"),
        ("the Deployment of café.py failed", "cafe deploy"),
        ("Straße 5", "STRASSE"),
        ("mixed 版本v2发布", "v2"),
        ("mixed 版本v2发布", "发布 版本"),
    ],
)
async def test_words_are_found_in_every_script(said: str, words: str, store: Store) -> None:
    await say(store, "nothing of it", said)
    assert await found(store, words) == [said]


@pytest.mark.parametrize("words", ["京会", "天我", "北开", "of café failed x", "", "   ", "!?", '"', "*", "()"])
async def test_what_does_not_stand_there_is_not_found(words: str, store: Store) -> None:
    await say(store, "我们明天去北京开会", "the Deployment of café failed")
    assert await found(store, words) == []


@pytest.mark.parametrize(
    "words", ['"a', "a AND b", "a OR NOT b", "text:a", "NEAR(a b)", "a*", "^a", "{a b}", "a\0b", "a-b"]
)
async def test_nothing_that_is_typed_is_syntax(words: str, store: Store) -> None:
    said = f"so it was: {words}".replace("\0", " ")
    await say(store, said, "something else")
    assert await found(store, words) == [" ".join(said.split())]


async def test_it_is_filled_in_batches_and_goes_on_where_it_was(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await say(store, *(f"line number{n}x" for n in range(search.BATCH + 50)))
        assert await store.search.fill() is True
        assert await store.search.find(f"number{search.BATCH}x", 5) == []
    async with opened(tmp_path) as store:  # as after a crash: what was read is not read again
        assert await store.search.fill() is False
        assert len(await store.search.find(f"number{search.BATCH}x", 5)) == 1
        assert len(await store.search.find("line", 1000)) == search.BATCH + 50


async def test_it_is_filled_while_others_write(tmp_path: Path, store: Store) -> None:
    await say(store, "hello there")
    with contextlib.closing(sqlite3.connect(tmp_path / "hark.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        await store.search.fill()
        assert len(await store.search.find("hello", 5)) == 1


async def test_it_holds_no_more_files_each_time(store: Store) -> None:
    await say(store, "hello there")
    await store.search.fill()
    held = len(os.listdir("/dev/fd"))
    for _ in range(20):
        await store.search.find("hello", 5)
    assert len(os.listdir("/dev/fd")) == held


async def test_it_forgets_what_was_pruned(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await say(store, *(f"secret plan {n}" for n in range(search.BATCH + 50)))
        await say(store, "another plan", transcript="t2")
        assert len(await found(store, "plan")) == 20
        await store.sessions.mark_old(10**15, None)
        while await store.sessions.drop_marked():
            pass
        await say(store, "a last plan", transcript="t3")
        assert await found(store, "plan") == ["a last plan"]
    with contextlib.closing(sqlite3.connect(tmp_path / search.FILE)) as db:
        assert db.execute("SELECT count(*) FROM words").fetchone() == (1,)


async def test_a_damaged_index_is_made_anew(tmp_path: Path, store: Store) -> None:
    await say(store, "hello there")
    assert await found(store, "hello") == ["hello there"]
    (tmp_path / search.FILE).write_bytes(b"no database at all" * 100)
    assert await found(store, "hello") == ["hello there"]
    assert (tmp_path / search.FILE).stat().st_mode & 0o777 == 0o600


async def test_only_the_words_around_are_shown(store: Store) -> None:
    await say(store, f"{'before ' * 100} needle {'behind ' * 100}")
    (text,) = await found(store, "needle")
    assert "needle" in text
    assert (text[0], text[-1]) == ("…", "…")
    assert len(text) < 200
