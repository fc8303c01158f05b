"""Partial indexes are used: their predicates are said word for word, and the hot queries say what SQLite looks up."""

import re
import sqlite3
from contextlib import closing

import pytest

from bot.store import indexes
from bot.store.database import migrate
from bot.store.rows import FOR_A_RUN

PREDICATES = {name: value for name, value in vars(indexes).items() if name.isupper()}
HOT = {
    f"SELECT 1 FROM delivery WHERE conv_id=? AND {indexes.OPEN_DELIVERY} ORDER BY delivery_id LIMIT 1": "delivery_open",
    f"SELECT count(*) FROM delivery WHERE {indexes.LOST_DELIVERY} AND state='failed'": "delivery_lost",
    f"SELECT delivery_id FROM delivery WHERE {indexes.SETTLED_DELIVERY} AND settled_at < ?": "delivery_settled",
    f"SELECT 1 FROM delivery WHERE conv_id=? AND {indexes.SAID} AND platform_id=?": "delivery_said",
    f"SELECT seq FROM inbox WHERE channel=? AND account=? AND sender=? AND {indexes.HELD}": "inbox_held",
    f"SELECT turn_id FROM turn WHERE session_key=? AND {indexes.OPEN_TURN} ORDER BY created_at": "turn_open",
    f"SELECT turn_id FROM turn WHERE {indexes.HELD_TURN} AND state='running'": "turn_one_per_session",
    f"SELECT ended_at FROM turn WHERE {indexes.FAILED_TURN} ORDER BY ended_at DESC LIMIT 1": "turn_failed",
    f"SELECT seq FROM inbox WHERE session_key=? AND {indexes.WAITING} AND {FOR_A_RUN} ORDER BY seq": "inbox_waiting",
    f"SELECT seq FROM inbox WHERE session_key=? AND {indexes.NEXT}": "inbox_next",
    f"SELECT seq FROM inbox WHERE {indexes.DELAYED} AND {FOR_A_RUN} AND ready_at > ? ORDER BY ready_at": "inbox_later",
    f"SELECT seq FROM inbox WHERE session_key=? AND {indexes.UNNOTED}": "inbox_unnoted",
    f"SELECT seq FROM inbox WHERE {indexes.ENDED_MESSAGE} AND accepted_at < ?": "inbox_accepted",
    f"SELECT step FROM entry WHERE turn_id=? AND {indexes.CUT_ANSWER}": "entry_cut",
    f"SELECT turn_id FROM approval WHERE {indexes.OPEN_APPROVAL} AND expires_at <= ?": "approval_expires",
    f"SELECT turn_id FROM approval WHERE approval.{indexes.UNTOLD_APPROVAL}": "approval_untold",
    f"SELECT room FROM memory WHERE {indexes.OPEN_MEMORY} AND state='pending' ORDER BY memory_id": "memory_open",
    f"SELECT pid FROM tool_call WHERE {indexes.WITH_PROCESS}": "tool_call_process",
}


def made() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db)
    return db


@pytest.mark.parametrize("name", PREDICATES)
def test_a_predicate_is_that_of_an_index(name: str) -> None:
    with closing(made()) as db:
        schema = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE type='index' AND sql IS NOT NULL")]
    assert PREDICATES[name] in {re.sub(r"\s+", " ", sql.partition(" WHERE ")[2]) for sql in schema}


@pytest.mark.parametrize("sql", HOT)
def test_a_hot_query_finds_its_index(sql: str) -> None:
    with closing(made()) as db:
        (plan,) = db.execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * sql.count("?")).fetchall()
    assert f" INDEX {HOT[sql]}" in plan[3]


def test_every_predicate_is_asked_for() -> None:
    assert all(any(predicate in sql for sql in HOT) for predicate in PREDICATES.values())
