"""A damaged file: the service starts, what is readable comes over, and the file is kept."""

import itertools
import os
import random
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agent.message import Message, Text, ToolCall
from bot.persistence.deliveries import PlanIn
from bot.persistence.errors import StoreUnavailable
from bot.persistence.inbox import AcceptedMessage
from bot.persistence.recovery import Salvage
from bot.store import codec
from bot.store.database import CLEAN, migrate
from bot.store.salvage import check
from channels.base import Mark
from channels.outgoing import Planned
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, claim, message, opened, whole
from tests.stored import Stored

NOW = 1_700_000_000_000
PAGE = 1024
ENTRIES = 600
LEAF = 10
"""First byte of a page that holds rows and nothing is below."""


def filled(home: Path) -> Path:
    """A healthy store with a long transcript and many messages; returns its file."""
    path = home / "hark.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA page_size={PAGE}")
        db.execute("PRAGMA journal_mode=WAL")
        migrate(db)
        db.execute("BEGIN")
        db.execute("INSERT INTO conversation (channel, account, chat, kind) VALUES ('telegram', 'bot', '1', 'direct')")
        for name in ("old", "new"):
            db.execute("INSERT INTO transcript (transcript_id, session_key, created_at) VALUES (?,?,0)", (name, KEY))
        db.execute("INSERT INTO session (session_key, transcript_id, used_at) VALUES (?,'new',0)", (KEY,))
        for number in range(1, ENTRIES + 1):
            body = codec.MESSAGE.dump(Message("user", (Text(f"line {number} " + "words " * 20),)))
            db.execute(
                "INSERT INTO entry (transcript_id, seq, kind, body, tokens) VALUES ('new',?,'user',?,1)", (number, body)
            )
        sample = message()
        sample = replace(sample, event_key="m:1", origin=replace(sample.origin, message_id="1"))  # the same size always
        for number in range(1, 301):
            payload = codec.INBOUND.dump(replace(sample, text=f"message {number}"))
            db.execute(
                "INSERT INTO inbox (channel, account, event_key, conv_id, session_key, kind, accepted_at, payload,"
                " state) VALUES ('telegram','bot',?,1,?,'message',0,?,'done')",
                (f"m{number}", KEY, payload),
            )
        db.execute("COMMIT")
    return path


def damaged(path: Path, change: Callable[[bytearray], None]) -> None:
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)


def flip(content: bytearray, *places: int) -> None:
    for place in places:
        content[place] ^= 0x55


def lose(content: bytearray, number: int, word: bytes = b"line") -> None:
    """Put zeros in place of the page that holds a line, or of the next that holds only such lines."""
    pages = (content.index(b"%s %d " % (word, line)) // PAGE for line in itertools.count(number))
    page = next(page for page in pages if content[page * PAGE] == LEAF)
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)


def files(home: Path) -> set[str]:
    return {file.name for file in home.iterdir()}


def found(path: Path) -> Salvage:
    salvage = check(path.parent, NOW)
    assert salvage is not None
    assert salvage.kept_as.exists()
    assert check(path.parent, NOW) is None
    kept = salvage.kept_as.name
    assert files(path.parent) <= {"hark.db", "hark.db-wal", "hark.db-shm", kept, f"{kept}-wal"}
    return salvage


@pytest.mark.parametrize("seed", [1, 3, 4])
async def test_a_store_with_forty_flipped_bytes_starts(tmp_path: Path, seed: int) -> None:
    path = filled(tmp_path)
    rng = random.Random(seed)

    def spoil(content: bytearray) -> None:
        for place in rng.sample(range(4096, len(content)), 40):
            content[place] ^= rng.randrange(1, 256)

    damaged(path, spoil)
    async with opened(tmp_path) as store:
        assert store.salvage is not None
        assert store.salvage.rows["entry"] > ENTRIES * 0.5


def test_text_that_cannot_be_decoded_is_damage_like_other_damage(tmp_path: Path) -> None:
    """The name of an index in a complaint of the check is read from the damaged file."""
    path = filled(tmp_path)

    def spoil(content: bytearray) -> None:
        at = content.index(b"inbox_waiting")
        content[at : at + 5] = b"\xff\xfe\xff\xfe\xff"
        at = content.index(b"CREATE TABLE entry")
        content[at : at + 6] = b"\xff" * 6

    damaged(path, spoil)
    salvage = found(path)
    assert (salvage.rows["inbox"], salvage.rows["entry"]) == (300, 0)
    assert salvage.lost == ("entry",), "what a table held is gone with its definition, and said to be"


@pytest.mark.parametrize("place", [18, 63])
def test_a_bad_byte_in_the_header_that_does_not_hide_the_tables_costs_nothing(tmp_path: Path, place: int) -> None:
    path = filled(tmp_path)
    damaged(path, lambda content: flip(content, place))
    salvage = found(path)
    assert (salvage.rows["entry"], salvage.lost) == (ENTRIES, ())


@pytest.mark.parametrize("places", [(0,), (16,), (21,), (47,), range(100), range(100, PAGE)])
async def test_a_file_without_header_or_schema_is_kept_whole_and_a_new_store_begun(
    tmp_path: Path, places: Sequence[int]
) -> None:
    path = filled(tmp_path)
    damaged(path, lambda content: flip(content, *places))
    before = path.read_bytes()
    async with opened(tmp_path) as store:
        assert store.salvage is not None
        assert store.salvage.kept_as.read_bytes() == before
        assert set(store.salvage.rows.values()) == {0}
        assert set(store.salvage.lost) == set(store.salvage.rows), "all of it was lost, and is said to be"
        assert await accept(store) == 1


def test_a_file_whose_end_was_cut_off_gives_the_rest(tmp_path: Path) -> None:
    path = filled(tmp_path)

    def cut(content: bytearray) -> None:
        del content[-10 * PAGE :]

    damaged(path, cut)
    rows = found(path).rows
    assert rows["entry"] > ENTRIES * 0.8
    assert rows["inbox"] > 150


def test_pages_that_cannot_be_read_cost_only_their_own_rows(tmp_path: Path) -> None:
    path = filled(tmp_path)

    def spoil(content: bytearray) -> None:
        for number in (100, 200, 400, 500):
            lose(content, number)

    damaged(path, spoil)
    salvage = found(path)
    assert ENTRIES - 4 * 10 <= salvage.rows["entry"] < ENTRIES
    assert salvage.lost == ("entry",)


def test_rows_between_two_lost_pages_are_found_by_what_other_tables_know_of_them(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        for number in range(1, 301):
            turn = f"t{number:04}"
            db.execute(
                "INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, reply_conv, created_at,"
                " error_message) VALUES (?,?,'new','reply','done',1,0,?)",
                (turn, KEY, f"note {number} " + "words " * 20),
            )
            db.execute("UPDATE inbox SET turn_id=? WHERE seq=?", (turn, number))
            arguments = f"arguments {number} " + "words " * 20
            db.execute(
                "INSERT INTO tool_call (turn_id, call_id, step, ordinal, name, args, state)"
                " VALUES (?,'c1',1,0,'read',?,'done')",
                (turn, arguments),
            )
            db.execute("INSERT INTO kv VALUES (?,'mark',?)", (f"telegram:{number:04}", f"offset {number} " + "w" * 90))
            db.execute(
                "INSERT INTO conversation (channel, account, chat, kind) VALUES ('telegram',?,'2','direct')",
                (f"{number:04}",),
            )
        db.execute("COMMIT")

    def spoil(content: bytearray) -> None:
        for word in (b"note", b"arguments", b"offset"):
            for number in (50, 250):
                lose(content, number, word)

    damaged(path, spoil)
    rows = found(path).rows
    assert {table: 300 - 30 < rows[table] < 300 for table in ("turn", "tool_call", "kv")} == dict.fromkeys(
        ("turn", "tool_call", "kv"), True
    ), rows


def test_transcripts_keep_the_order_in_which_they_began(tmp_path: Path) -> None:
    path = filled(tmp_path)
    damaged(path, lambda content: flip(content, 63))
    found(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT transcript_id FROM transcript ORDER BY rowid").fetchall() == [("old",), ("new",)]
        assert db.execute("PRAGMA page_size").fetchone() == (PAGE,)


async def test_every_table_comes_over(tmp_path: Path) -> None:
    """Answers that wait to be delivered, how far a platform was read, what tools were asked for: all of it."""
    tables = {"conversation", "transcript", "session", "turn", "inbox", "entry", "tool_call", "delivery", "event", "kv"}
    home = tmp_path / "state"
    async with opened(home) as store:
        await store.inbox.accept([AcceptedMessage(message=message(), session_key=KEY)], Mark("telegram:bot", "7"))
        turn = await claim(store)
        await store.turns.step(
            turn.run,
            whole(turn.run, Text("I look."), ToolCall("call", "look", "{}")),
            PlanIn(turn.conv_id),
            [Planned(source=sentence("block"), body="I look.", nonce=1, said="I look.", step=1)],
        )
        await store.turns.start_calls(turn.run, ["call"], ())
    before = Stored(home).everything()
    assert {name for name, found in before.items() if found} >= tables

    damaged(home / "hark.db", lambda content: flip(content, 63))
    async with opened(home) as store:
        assert store.salvage is not None
        after = Stored(home).everything()
        assert await store.inbox.mark("telegram:bot") == "7"
    assert {name: found for name, found in after.items() if name in tables} == {
        name: found for name, found in before.items() if name in tables
    }


@contextmanager
def disk_that_ends_at(size: int) -> Iterator[None]:
    """No file can grow beyond a size, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_full_disk_is_not_taken_for_damage(tmp_path: Path) -> None:
    """A log's index needs 32 KB, which are not there: the file stays as it is, and a later start finds it whole."""
    path = filled(tmp_path)
    with disk_that_ends_at(16_384), pytest.raises(StoreUnavailable, match=r"the store .*hark\.db cannot be opened: "):
        async with opened(tmp_path):
            pass
    assert files(tmp_path) <= {"hark.db", "hark.db-wal", "hark.db-shm", "lock"}
    assert check(tmp_path, NOW) is None
    async with opened(tmp_path) as store:
        assert store.salvage is None
    assert path.exists()


def test_a_damaged_file_that_cannot_be_copied_is_left_as_it_was(tmp_path: Path) -> None:
    path = filled(tmp_path)

    def cut(content: bytearray) -> None:
        del content[-10 * PAGE :]

    damaged(path, cut)
    before = path.read_bytes()
    lost = r"is damaged .*cannot be copied: File too large"
    with disk_that_ends_at(65_536), pytest.raises(StoreUnavailable, match=lost):
        check(tmp_path, NOW)
    assert path.read_bytes() == before
    assert files(tmp_path) == {"hark.db"}
    assert found(path).rows["entry"] > ENTRIES * 0.8


@pytest.mark.parametrize("size", [1, 2, 17, 18, 19, 47, 48, 99])
async def test_a_file_shorter_than_a_header_is_kept_and_a_new_store_begun(tmp_path: Path, size: int) -> None:
    whole = filled(tmp_path).read_bytes()
    for content in (whole[:size], b"x" * size, bytes(size)):
        (tmp_path / "hark.db").write_bytes(content)
        async with opened(tmp_path) as store:
            assert store.salvage is not None
            assert store.salvage.kept_as.read_bytes() == content
            assert set(store.salvage.rows.values()) == {0}
            assert await accept(store) == 1


async def test_only_what_was_not_closed_in_order_or_was_changed_since_is_read_to_its_end(tmp_path: Path) -> None:
    """The same damage, deep in the file: not looked for after an orderly end, found after any other."""
    path = filled(tmp_path)
    async with opened(tmp_path) as store:
        assert not (tmp_path / CLEAN).exists(), "a crash from here on is seen"
        await accept(store)
    before = path.stat()

    damaged(path, lambda content: lose(content, 300))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    crashed = tmp_path / "crashed"
    async with opened(tmp_path) as store:
        assert store.salvage is None
        assert await accept(store) == 302
        shutil.copytree(tmp_path, crashed)  # what a kill leaves
    async with opened(crashed) as store:
        assert store.salvage is not None
        assert ENTRIES - 20 < store.salvage.rows["entry"] < ENTRIES
        assert store.salvage.rows["inbox"] == 302
    damaged(path, lambda content: None)  # the same bytes at another time
    async with opened(tmp_path) as store:
        assert store.salvage is not None


async def test_damage_that_is_met_later_is_said_and_mended_at_the_next_start(tmp_path: Path) -> None:
    path = filled(tmp_path)
    async with opened(tmp_path) as store:
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        content = bytearray(path.read_bytes())
        lose(content, 300)
        with path.open("r+b") as file:
            file.write(content)
        with pytest.raises(StoreUnavailable, match="cannot read: database disk image is malformed"):
            await store.reads.context("new")
        assert "Restart Hark" in (store.failure or "")
        assert await store.try_write()
        assert "is damaged" in (store.failure or ""), "one good read does not mend it"
    async with opened(tmp_path) as store:
        assert store.salvage is not None
        assert store.failure is None
        assert len(await store.reads.context("new")) > 0
