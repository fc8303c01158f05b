"""What people have set for a session (/verbose, /reasoning, /activation), and the transaction that changes it."""

import sqlite3
from collections.abc import Sequence

from bot.persistence.settings import Change, SessionSettings
from bot.persistence.turns import CommandKept
from bot.store import codec, rows
from bot.store.commands import NOT_ANEW, begin, finish
from bot.store.sending import MATCHES, Rule, put_rules
from bot.store.writer import Subject, query, transaction
from channels.message import Place
from channels.outgoing import Planned


class Settings(Subject):
    """The settings of sessions."""

    @query
    def of(self, db: sqlite3.Connection, session_key: str) -> SessionSettings:
        """Return what is set for a session; the defaults where there is no such session."""
        found = db.execute("SELECT settings FROM session WHERE session_key=?", (session_key,)).fetchone()
        return codec.SETTINGS.load(found[0] if found else None, SessionSettings())

    @query
    def denied_by(self, db: sqlite3.Connection, session_key: str, place: Place) -> dict[str, str] | None:
        """Return what the rule of `send_policy` names that denies a session and a place; None: no rule does."""
        found = db.execute(
            "SELECT rule.channel, rule.chat_type, rule.key FROM send_rule AS rule,"
            " (SELECT ? AS channel, ? AS kind, ? AS thread, ? AS session_key) AS place"
            f" WHERE {MATCHES} ORDER BY rule.rowid LIMIT 1",
            (place.channel, place.kind, place.thread, session_key),
        ).fetchone()
        names = ("channel", "chat_type", "key")
        return {name: value for name, value in zip(names, found, strict=True) if value} if found else None

    @transaction
    def deny(self, db: sqlite3.Connection, rules: Sequence[Rule]) -> None:
        """Let these rules of `send_policy` hold from now on."""
        put_rules(db, rules)

    @transaction
    def change(
        self, db: sqlite3.Connection, seq: int, session_key: str, change: Change, blocks: Sequence[Planned]
    ) -> CommandKept:
        """Carry out the command at a place in the inbox, which changes a setting and is answered with blocks."""
        begun = begin(db, seq, now := self._now())
        if begun is None:
            return NOT_ANEW
        rows.transcript_of(db, session_key, None, now, self._new_id())
        become = "UPDATE session SET settings=json_set(settings, '$.' || ?, ?) WHERE session_key=?"
        db.execute(become, (*change, session_key))
        return finish(db, begun, blocks)
