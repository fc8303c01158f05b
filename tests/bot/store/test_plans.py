"""No statement of a running service reads through a table: the cost of a turn must not grow with what is kept."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

from bot.persistence.approvals import Choice
from bot.persistence.inbox import AcceptedMessage
from bot.store.database import READERS
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
            hark.model.add(Call("read", {"path": "USER.md"}))
            hark.model.add("read")
            await hark.say("read it")
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
