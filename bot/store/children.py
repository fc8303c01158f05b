"""The transactions of the tools with which sessions see and start each other; `child_ends` has what comes of it."""

import sqlite3
from collections.abc import Sequence

from agent.events import RunRef
from agent.message import Message
from bot.persistence.children import NewChild, SessionView
from bot.persistence.inbox import AcceptedMessage
from bot.store import codec, rows
from bot.store.inbox import Inbox
from bot.store.indexes import OPEN_TURN, WAITING
from bot.store.writer import query, transaction
from channels.message import InboundMessage, Origin
from channels.session_key import CHILD

# Condition for what belongs to the sessions below ?1. No other sign stands between `:` and `;`.
BELOW = f"(session_key > ?1 || '{CHILD}' AND session_key < ?1 || '{CHILD[:-1]};')"
_OPEN = f"EXISTS (SELECT 1 FROM turn WHERE turn.session_key=child.session_key AND turn.{OPEN_TURN})"
_VIEW = (
    "SELECT session.session_key, coalesce(label, ''), coalesce((SELECT state FROM turn WHERE"
    f" turn.session_key=session.session_key AND {OPEN_TURN} ORDER BY epoch > 0 DESC, created_at LIMIT 1), ''),"
    f" (SELECT count(*) FROM inbox WHERE inbox.session_key=session.session_key AND {WAITING} AND {rows.FOR_A_RUN})"
)


class Children(Inbox):
    """Starts sub-agents, and reads the tree of sessions."""

    @transaction
    def start(self, db: sqlite3.Connection, run: RunRef, child: NewChild, most: int) -> bool:
        """Start a sub-agent of the session of a run, unless `most` work for it already; returns whether it did.

        Raises StaleRun.
        """
        now = self._now()
        rows.check_epoch(db, run, of_call=True)
        counted = f"SELECT count(*) FROM child WHERE parent=? AND {_OPEN}"
        (working,) = db.execute(counted, (run.session_key,)).fetchone()
        if working >= most:
            return False
        db.execute(
            "INSERT INTO child (session_key, parent, label, by_turn, call_id, started_at) VALUES (?,?,?,?,?,?)",
            (child.session_key, run.session_key, child.label, run.turn_id, child.call_id, now),
        )
        self._accept(db, AcceptedMessage(message=child.task, session_key=child.session_key, turn_id=child.turn_id), now)
        settings = codec.SETTINGS.dump(child.settings)
        db.execute("UPDATE session SET settings=? WHERE session_key=?", (settings, child.session_key))
        return True

    @transaction
    def send(self, db: sqlite3.Connection, run: RunRef, message: InboundMessage, session_key: str) -> None:
        """Let a message of a run cause a turn in another session. Raises StaleRun."""
        rows.check_epoch(db, run, of_call=True)
        self._accept(db, AcceptedMessage(message=message, session_key=session_key), self._now())

    @query
    def label(self, db: sqlite3.Connection, session_key: str) -> str:
        """Return the label of a sub-agent; one that is forgotten has none of its own."""
        found = db.execute("SELECT label FROM child WHERE session_key=?", (session_key,)).fetchone()
        return (found and found[0]) or "sub-agent"

    @query
    def open(self, db: sqlite3.Connection, session_key: str) -> Sequence[SessionView]:
        """Return the sub-agents below a session, or all (empty), that work or are about to, the oldest first."""
        below = BELOW if session_key else "?1=''"
        found = db.execute(
            f"{_VIEW} FROM turn JOIN child USING (session_key) JOIN session USING (session_key)"
            f" WHERE turn.{OPEN_TURN} AND {below.replace('session_key', 'turn.session_key')}"
            " GROUP BY turn.session_key ORDER BY child.started_at",
            (session_key,),
        )
        return [SessionView(*row) for row in found]

    @query
    def visible(
        self, db: sqlite3.Connection, session_key: str, most: int, *, everything: bool = False
    ) -> Sequence[SessionView]:
        """Return a session and those below it, or all: the session itself, then the last used first."""
        within = "1" if everything else f"(session_key=?1 OR {BELOW})".replace("session_key", "session.session_key")
        found = db.execute(
            f"{_VIEW} FROM session LEFT JOIN child USING (session_key) WHERE {within}"
            " ORDER BY session.session_key=?1 DESC, used_at DESC LIMIT ?2",
            (session_key, most),
        )
        return [SessionView(*row) for row in found]

    @query
    def history(self, db: sqlite3.Connection, session_key: str, most: int) -> Sequence[Message]:
        """Return the newest lines of a session that a model wrote or was told, oldest first."""
        found = db.execute(
            "SELECT body FROM session JOIN entry USING (transcript_id) WHERE session_key=? AND hidden=0"
            " AND kind IN ('user','assistant','assistant_cut') ORDER BY seq DESC LIMIT ?",
            (session_key, most),
        ).fetchall()
        lines = (codec.MESSAGE.load(body, None) for (body,) in reversed(found))
        return [line for line in lines if line is not None]

    @query
    def place(self, db: sqlite3.Connection, session_key: str) -> Origin | None:
        """Return where people used a session last, as the origin of a message of nobody; None: nowhere."""
        found = db.execute("SELECT last_conv FROM session WHERE session_key=?", (session_key,)).fetchone()
        return Origin(place=rows.place_of(db, found[0])) if found and found[0] else None
