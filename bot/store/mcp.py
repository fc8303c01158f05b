"""Transactions about MCP servers: what they show, what an owner has looked at, and their processes."""

import sqlite3
from collections.abc import Collection, Sequence

from bot.persistence.mcp import PinnedTool, ServerProcess
from bot.store.writer import Subject, query, transaction


class McpServers(Subject):
    """Transactions about MCP servers."""

    @query
    def known(self, db: sqlite3.Connection) -> tuple[Collection[str], Sequence[PinnedTool]]:
        """Return the servers that were ever seen, and all tools, in the order in which their servers show them."""
        seen = {server for (server,) in db.execute("SELECT server FROM mcp_server WHERE shown_at IS NOT NULL")}
        found = db.execute("SELECT server, name, accepted, shown FROM mcp_tool ORDER BY server, position, name")
        return seen, [PinnedTool(*row) for row in found.fetchall()]

    @transaction
    def shows(self, db: sqlite3.Connection, server: str, tools: Sequence[tuple[str, str]]) -> None:
        """Store the names and texts of all that a server shows; the first time it counts as looked at."""
        now = self._now()
        first = db.execute(
            "INSERT INTO mcp_server (server, shown_at) VALUES (?1, ?2)"
            " ON CONFLICT (server) DO UPDATE SET shown_at=?2 WHERE shown_at IS NULL RETURNING 1",
            (server, now),
        ).fetchone()
        db.execute("UPDATE mcp_tool SET shown=NULL WHERE server=?", (server,))
        db.executemany(
            "INSERT INTO mcp_tool (server, position, name, accepted, shown) VALUES (?1, ?2, ?3, ?5, ?4)"
            " ON CONFLICT (server, name) DO UPDATE SET shown=?4",
            [(server, number, name, text, text if first else None) for number, (name, text) in enumerate(tools)],
        )
        db.execute("DELETE FROM mcp_tool WHERE server=? AND accepted IS NULL AND shown IS NULL", (server,))

    @transaction
    def accept(self, db: sqlite3.Connection, server: str) -> Sequence[str]:
        """Let all tools be called as their server shows them now, and forget the others. Returns the texts of the new.

        Nothing else may come between what is returned, which the owner sees, and what is let in.
        """
        found = db.execute(
            "UPDATE mcp_tool SET accepted=shown WHERE server=? AND shown IS NOT NULL AND accepted IS NOT shown"
            " RETURNING shown",
            (server,),
        ).fetchall()
        db.execute("DELETE FROM mcp_tool WHERE server=? AND shown IS NULL", (server,))
        return [text for (text,) in found]

    @transaction
    def started(self, db: sqlite3.Connection, server: str, pid: int, pid_started: str) -> None:
        """Store the process of a server, before it may do anything."""
        db.execute(
            "INSERT INTO mcp_server (server, pid, pid_started) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (server) DO UPDATE SET pid=?2, pid_started=?3",
            (server, pid, pid_started),
        )

    @query
    def processes(self, db: sqlite3.Connection) -> Sequence[ServerProcess]:
        """Return the process of each server, which may have ended."""
        found = db.execute("SELECT server, pid, pid_started FROM mcp_server WHERE pid IS NOT NULL").fetchall()
        return [ServerProcess(*row) for row in found]
