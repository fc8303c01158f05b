"""Stores of earlier versions: brought up to date, kept beside, and never taken for damaged ones."""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from agent.calls.loop_guard import OVER_NOTE, REFUSAL
from agent.context import CUT_NOTE, INTERRUPTED, UNSAID_NOTE
from agent.events import Notice, load
from agent.images import FILES
from agent.loop import LIMIT_NOTE
from agent.message import Mark, Message, Text, ToolResult
from bot.persistence.deliveries import PlanIn
from bot.persistence.errors import StoreTooNew
from bot.store import codec, database
from bot.store.database import migrations
from bot.store.salvage import check
from channels.outgoing import Planned
from channels.session_key import console_key
from channels.sources import sentence
from tests.bot.store.opened import KEY, accept, claim, message, opened

NEWEST = len(migrations())
# The version since which a delivery says in columns what it is.
KINDS = 15
# Since then a prompt is made of sections.
SECTIONS = 17
# Columns that went, by their tables; in none of them anything was ever kept.
DROPPED = {
    "conversation": {"head", "gap"},
    "transcript": {"tools"},
    "entry": {"origin"},
    "turn": {"parent", "lease_until", "reply_to", "mode"},
}
DATA_ONLY = "UPDATE session SET settings='{\"migrated\": true}';"
REBUILT = """
CREATE TABLE session_new (
  session_key TEXT PRIMARY KEY, transcript_id TEXT NOT NULL REFERENCES transcript,
  settings TEXT NOT NULL DEFAULT '{}', last_conv INTEGER REFERENCES conversation, used_at INTEGER NOT NULL,
  outage_told_at INTEGER, mood TEXT NOT NULL DEFAULT 'fine'
) STRICT, WITHOUT ROWID;
INSERT INTO session_new SELECT *, 'fine' FROM session;
DROP TABLE session;
ALTER TABLE session_new RENAME TO session;
CREATE TABLE conversation_new (
  conv_id INTEGER PRIMARY KEY, channel TEXT NOT NULL, account TEXT NOT NULL, chat TEXT NOT NULL,
  thread TEXT NOT NULL DEFAULT '', kind TEXT NOT NULL, moved_to INTEGER REFERENCES conversation,
  UNIQUE (channel, account, chat, thread)
) STRICT;
INSERT INTO conversation_new SELECT conv_id, channel, account, chat, thread, kind, moved_to FROM conversation;
DROP TABLE conversation;
ALTER TABLE conversation_new RENAME TO conversation;
CREATE TABLE pet (owner TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (owner, name)) STRICT, WITHOUT ROWID;
"""
OF_EACH_TABLE = """
INSERT INTO conversation (conv_id, channel, account, chat, kind) VALUES (1, 'telegram', 'bot', '1', 'direct');
INSERT INTO transcript (transcript_id, session_key, created_at, prompt, context_start) VALUES ('t', '{key}', 1, 'p', 1);
INSERT INTO session (session_key, transcript_id, last_conv, used_at) VALUES ('{key}', 't', 1, 1);
INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, epoch, reply_conv, step, created_at, started_at)
  VALUES ('cut', '{key}', 't', 'reply', 'running', 1, 1, 1, 1, 1);
INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, epoch, reply_conv, outcome, created_at, ended_at)
  VALUES ('failed', '{key}', 't', 'api', 'failed', 1, 1, 'failed', 1, 2);
INSERT INTO inbox (channel, account, event_key, conv_id, session_key, kind, message_id, sender, accepted_at, payload,
  state, turn_id) VALUES ('telegram', 'bot', 'm:1', 1, '{key}', 'message', '1', '1', 1, '{first}', 'taken', 'cut');
INSERT INTO inbox (channel, account, event_key, conv_id, session_key, kind, message_id, sender, accepted_at, payload,
  state) VALUES ('telegram', 'bot', 'm:2', 1, '{key}', 'message', '2', '1', 1, '{second}', 'waiting');
INSERT INTO entry (transcript_id, seq, turn_id, kind, body, tokens) VALUES ('t', 1, 'cut', 'user', '{line}', 1);
INSERT INTO tool_call (turn_id, call_id, step, ordinal, name, args, state, pid, pid_started)
  VALUES ('cut', 'c', 1, 0, 'exec', '{{}}', 'running', 4711, 'then');
INSERT INTO delivery (delivery_id, source, conv_id, turn_id, step, action, body, said, nonce, state, planned_at)
  VALUES (7, 'turn:cut:s1:b0', 1, 'cut', 1, 'send', 'I look.', 'I look.', 1, 'planned', 1);
INSERT INTO delivery (delivery_id, source, conv_id, action, body, nonce, state, planned_at, settled_at, error)
  VALUES (8, 'lost', 1, 'send', 'lost', 1, 'failed', 1, 2, 'blocked');
INSERT INTO event (event_id, turn_id, session_key, at, body) VALUES ('cut/start', 'cut', '{key}', 1, '{{}}');
INSERT INTO kv (scope, key, value) VALUES ('telegram:bot', 'mark', '42');
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


def store_of(home: Path, version: int) -> dict[str, list[dict[str, object]]]:
    """Make a store as an earlier version left it, with something open in each table; returns its rows."""
    words = {"first": message("one"), "second": message("two")}
    script = OF_EACH_TABLE.format(
        key=KEY,
        line=codec.MESSAGE.dump(Message("user", (Text("one"),))),
        **{name: codec.INBOUND.dump(said) for name, said in words.items()},
    )
    if version >= KINDS:
        script = script.replace("(delivery_id, source, conv_id,", "(delivery_id, source, source_kind, answer, conv_id,")
        script = script.replace("'turn:cut:s1:b0', 1,", "'turn:cut:s1:b0', 'answer', 1, 1,")
        script = script.replace("'lost', 1, 'send'", "'lost', 'sentence', NULL, 1, 'send'")
    with closing(sqlite3.connect(home / "hark.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        database.migrate(db, version)
        db.executescript(script)
    return contents(home)


def contents(home: Path) -> dict[str, list[dict[str, object]]]:
    """The rows of each table by the names of their columns."""
    with closing(sqlite3.connect(home / "hark.db")) as db:
        db.row_factory = sqlite3.Row
        tables = db.execute("SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%'").fetchall()
        return {name: [dict(row) for row in db.execute(f"SELECT * FROM {name}")] for (name,) in tables}


def of(rows: list[dict[str, object]], columns: Iterable[str]) -> list[dict[str, object]]:
    return [{name: row[name] for name in columns} for row in rows]


@pytest.mark.parametrize("version", range(1, NEWEST))
async def test_a_store_of_each_earlier_version_keeps_its_rows_and_goes_on(tmp_path: Path, version: int) -> None:
    before = store_of(tmp_path, version)
    assert not before.pop("question", []), "a table that went, in which nothing was ever kept"
    async with opened(tmp_path) as store:
        assert store.salvage is None
        after = contents(tmp_path)
        for table, columns in DROPPED.items():
            assert not columns & set(after[table][0])
            before[table] = of(before[table], [name for name in before[table][0] if name not in columns])
        (transcript,) = before["transcript"]
        if version < SECTIONS:
            transcript["prompt"] = '{"sections":[{"name":"instructions","text":"p"}]}'  # the same words, in one section
        assert {table: of(after[table], rows[0] if rows else ()) for table, rows in before.items()} == before
        added = set(after["turn"][0]) - set(before["turn"][0]) - {"ran"}
        assert {name: after["turn"][0][name] for name in added} == dict.fromkeys(added)
        assert (after["entry"][0]["hidden"], after["inbox"][1]["ready_at"]) == (0, 0)

        assert [process.pid for process in await store.recovery.leftovers("next")] == [4711]
        assert await store.recovery.recover("cut", "next", ())
        assert [entry.kind for entry in await store.reads.context("t")] == ["user", "tool_result"]
        resumed = await claim(store)
        assert (resumed.turn_id, resumed.run.attempt, resumed.messages[0].text) == ("cut", 2, "one")
        assert await store.inbox.count_waiting(KEY) == 1
        following = await store.deliveries.next(1)
        assert following is not None
        assert (following.delivery_id, following.body) == (7, "I look.")
        assert [lost.error for lost in await store.reads.lost_deliveries(9)] == ["blocked"]
        assert await store.inbox.mark("telegram:bot") == "42"
        planned = await store.turns.plan(
            resumed.run, PlanIn(1), [Planned(source=sentence("new"), body="more", nonce=1)]
        )
        assert planned[0].delivery_id == 9, "numbers go on"
    assert (tmp_path / f"hark.db.v{version}").exists()


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
            await store.writer.write(lambda db: db.execute("DELETE FROM conversation"))
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
    for name, place in (("format", 18), ("version", 63), ("copy", 71)):
        home = tmp_path / name
        path = await old_store(home)
        content = bytearray(path.read_bytes())
        content[place] ^= 0x55
        path.write_bytes(content)
    later(DATA_ONLY, REBUILT)
    for name in ("format", "version", "copy"):
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
    content[18] ^= 0x55
    path.write_bytes(content)
    found = check(tmp_path, 0)
    assert found is not None
    assert found.rows["pet"] == 300


IN_THE_TERMINAL = """
INSERT INTO conversation (conv_id, channel, account, chat, kind) VALUES (1, 'console', '', 'local', 'console');
INSERT INTO conversation (conv_id, channel, account, chat, kind) VALUES (2, 'telegram', 'bot', '1', 'direct');
INSERT INTO transcript (transcript_id, session_key, created_at) VALUES ('t', '{key}', 1);
INSERT INTO session (session_key, transcript_id, last_conv, used_at) VALUES ('{key}', 't', 1, 1);
INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, epoch, reply_conv, step, created_at) VALUES
  ('done', '{key}', 't', 'api', 'done', 1, 1, 1, 1), ('cut', '{key}', 't', 'api', 'running', 1, 1, 0, 1);
INSERT INTO delivery (source, conv_id, turn_id, step, action, body, said, nonce, state, planned_at) VALUES
  ('turn:done:s1:b0', 1, 'done', 1, 'send', 'shown', 'shown', 1, 'sent', 1),
  ('turn:done:s1:b1', 1, 'done', 1, 'send', 'being shown', 'being shown', 1, 'sending', 1),
  ('turn:done:s1:b2', 1, 'done', 1, 'send', 'not "shown"', 'not "shown"', 1, 'planned', 5),
  ('refused:7', 1, NULL, NULL, 'send', 'refused', '', 1, 'planned', 6),
  ('turn:cut:s1:b0', 1, 'cut', 1, 'send', 'half', 'half', 1, 'planned', 7),
  ('elsewhere', 2, NULL, NULL, 'send', 'elsewhere', '', 1, 'planned', 1);
INSERT INTO event (event_id, turn_id, session_key, at, body) VALUES
  ('done/start', 'done', '{key}', 1, '{{}}'), ('cut/start', 'cut', '{key}', 1, '{{}}'),
  ('other/start', 'other', 'other', 1, '{{}}');
"""


async def test_what_waited_for_a_terminal_is_read_once_by_the_next(tmp_path: Path) -> None:
    key = console_key()
    with closing(sqlite3.connect(tmp_path / "hark.db", isolation_level=None)) as db:
        database.migrate(db, 5)
        db.executescript(IN_THE_TERMINAL.format(key=key))
    async with opened(tmp_path) as store:
        assert set(contents(tmp_path)["event"][0]) == {"seq", "event_id", "turn_id", "session_key", "at", "body"}
        assert [event["event_id"] for event in contents(tmp_path)["event"]] == [
            "cut/start",
            "other/start",
            "done/said/turn:done:s1:b2",
            "refused:7/said/refused:7",
        ]
        assert [place.channel for _, place in await store.deliveries.open_conversations()] == ["telegram"]
        kept = await store.reads.events_after(3, 5, key, None, 10)
        events = [load(event.body) for event in kept]
        assert [event.detail for event in events if isinstance(event, Notice)] == ['not "shown"', "refused"]
        assert [event.id for event in events if isinstance(event, Notice)] == [
            "done/said/turn:done:s1:b2",
            "refused:7/said/refused:7",
        ]
        assert [(event.kind, event.run.session_key) for event in events if isinstance(event, Notice)] == [
            ("said", key)
        ] * 2
        assert await store.recovery.recover("cut", "next", ())
        last = await store.reads.last_event()
        (end,) = await store.reads.events_after(5, last, key, "cut", 10)
        assert '"text":"half"' in end.body


MARKED = """
INSERT INTO transcript (transcript_id, session_key, created_at) VALUES ('t', 'key', 1);
INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, epoch, step, created_at, ended_at) VALUES
  ('done', 'key', 't', 'api', 'done', 1, 1, 1, 2), ('cut', 'key', 't', 'api', 'running', 1, 1, 2, NULL);
"""
LINE = "INSERT INTO entry (transcript_id, seq, turn_id, kind, body, tokens) VALUES ('t', ?, ?, ?, ?, 1)"


async def test_what_the_service_wrote_into_a_turn_under_way_is_known_again(tmp_path: Path) -> None:
    def note(text: str) -> Message:
        return Message("user", (Text(text),))

    def result(text: str) -> Message:
        return Message("tool", (ToolResult("c", "stay_silent", text, is_error=True),))

    half = (Text("half"),)
    written = [
        ("done", "note", note(CUT_NOTE), None),
        ("cut", "user", note(CUT_NOTE), None),
        ("cut", "user", note(FILES), Mark.FILES),
        ("cut", "assistant_cut", Message("assistant", half), None),
        ("cut", "note", note(CUT_NOTE), Mark.CUT),
        ("cut", "assistant_cut", Message("assistant", half, "house/model"), None),
        ("cut", "note", note(CUT_NOTE), Mark.LIMIT),
        ("cut", "note", note(UNSAID_NOTE), Mark.LIMIT),
        ("cut", "note", note(OVER_NOTE), Mark.CIRCLES),
        ("cut", "note", note(LIMIT_NOTE), Mark.STEPS),
        ("cut", "note", note("stopped"), None),
        ("cut", "tool_result", result(REFUSAL), Mark.REPEATED),
        ("cut", "tool_result", result(INTERRUPTED), Mark.CUT),
        ("cut", "tool_result", result("an error"), None),
    ]
    with closing(sqlite3.connect(tmp_path / "hark.db", isolation_level=None)) as db:
        database.migrate(db, next(n for n, script in enumerate(migrations()) if "'$.mark'" in script))
        db.executescript(MARKED)
        for seq, (turn_id, kind, told, _) in enumerate(written, 1):
            db.execute(LINE, (seq, turn_id, kind, codec.MESSAGE.dump(told)))
        db.execute(LINE, (99, "cut", "note", "{"))
    async with opened(tmp_path) as store:
        entries = await store.reads.context("t")
        marks = [(one.message.tool_results or (one.message,))[0].mark for one in entries]
        assert marks == [mark for *_, mark in written]
