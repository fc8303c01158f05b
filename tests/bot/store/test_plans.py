"""No statement of a running service reads through a table: the cost of a turn must not grow with what is kept."""

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from bot.persistence.approvals import Choice
from bot.persistence.inbox import AcceptedMessage
from bot.store import indexes
from bot.store.database import READERS, migrate
from bot.store.rows import FOR_A_RUN
from channels.message import ChatMoved
from tests.asking import AskingTool, SendingTool, approval
from tests.bot.persistence.test_people import stranger
from tests.service import Hark, running, session_of
from tests.standins.script import Call

_GROWING = {f"SCAN {table}" for table in ("inbox", "turn", "delivery", "entry", "tool_call", "event", "approval")}


class Statements:
    """Everything SQLite is asked while the context lasts, literal values included."""

    def __init__(self, hark: Hark) -> None:
        self._database = hark.service.parts.store.database
        self.seen: set[str] = set()

    async def __aenter__(self) -> "Statements":
        await self._trace(self.seen.add)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._trace(None)

    async def _trace(self, told: Callable[[str], object] | None) -> None:
        await self._database.execute(lambda db: db.set_trace_callback(told))
        for _ in range(READERS):  # they take turns
            await self._database.read(lambda db: db.set_trace_callback(told))

    def that_scan(self, database: sqlite3.Connection) -> list[str]:
        """Those that read a growing table from its beginning."""
        asked = [sql for sql in self.seen if sql.startswith(("SELECT", "UPDATE", "DELETE"))]
        return [sql for sql in asked if _GROWING & {row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}")}]


async def test_no_statement_of_a_service_reads_through_a_table(tmp_path: Path) -> None:
    async with running(tmp_path, tools=lambda watch: [AskingTool(), SendingTool(lambda: hark.service)]) as hark:
        parts = hark.service.parts
        async with Statements(hark) as statements:
            await hark.say("read it", answers=[Call("read", {"path": "USER.md"}), "read"])
            hark.model.add(Call("ask", {"label": "it"}), Call("send", {"label": "sent"}))
            hark.model.add("done")
            await hark.write("ask me")
            assert await parts.requests.decide(await approval(hark), Choice(verdict="once"), "telegram:1")
            await hark.until(lambda: "done" in hark.channel.texts(), "the end of the parked turn")
            for command in ("/status", "/undo", "/redo", "/fork", "/stop", "/new"):
                sent = len(hark.channel.texts())
                await hark.write(command)
                await hark.until_texts(sent + 1)
            moved = ChatMoved(channel="telegram", account="bot", old_chat="1", new_chat="-100")
            await parts.store.inbox.accept([moved])
            said = hark.message("in a thread")
            follows = AcceptedMessage(message=said, session_key=session_of("1"), follows="joined")
            await parts.store.inbox.accept([follows, stranger("6", "a"), stranger("7", "b"), stranger("6", "c")])
            await parts.store.people.settle("a", "allowed", ())
            await parts.store.people.settle("b", "blocked", ())
            await parts.store.people.pending()
            await parts.store.people.known()
            await parts.store.prune()
            # what a start asks
            await parts.store.recovery.cut_turns("next")
            await parts.outbox.start()
            await parts.commands.recover()
            await parts.lanes.start()
            await asyncio.sleep(0)
        assert len(statements.seen) > 40
        with contextlib.closing(sqlite3.connect(hark.state / "hark.db")) as database:
            assert statements.that_scan(database) == []


# Partial indexes are used: their predicates are said word for word, and the hot queries say what SQLite looks up.

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
