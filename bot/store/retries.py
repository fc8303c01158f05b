"""The transaction of /retry, which has the newest message of a conversation answered once more."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from bot.persistence.causes import Cause
from bot.persistence.turns import CommandKept
from bot.store import codec
from bot.store.claims import joined
from bot.store.commands import NOT_ANEW, become_message, begin, finish
from bot.store.rows import FOR_A_RUN, IN_BACKGROUND
from bot.store.writer import Subject, transaction
from channels.message import InboundKind, InboundMessage
from channels.outgoing import Planned

# What the model is told with a message that it has answered before.
ASKED_AGAIN = "They ask this again: answer it anew."


class Retries(Subject):
    """Answers messages again."""

    @transaction
    def retry(
        self,
        db: sqlite3.Connection,
        seq: int,
        command: InboundMessage,
        only: str,
        busy: Sequence[Planned],
        nothing: Sequence[Planned],
    ) -> CommandKept:
        """Make the command at a place in the inbox the newest message that its conversation has, with its sender.

        command: its own message. only: the sender whose messages count; empty: anybody's. busy: the answer while that
        message is not answered yet. nothing: the answer where there is none.
        """
        begun = begin(db, seq, self._now())
        if begun is None:
            return NOT_ANEW
        found = db.execute(
            "SELECT seq, payload, state, turn_id FROM inbox WHERE conv_id=?"
            " AND session_key=(SELECT session_key FROM inbox WHERE seq=?)"
            f" AND {FOR_A_RUN} AND NOT {IN_BACKGROUND} AND seq < ? AND (?='' OR sender=?)"
            f" AND (state IN ('held','waiting','taken','steering','done') OR state='dropped' AND reason='{Cause.STOP}')"
            " ORDER BY seq DESC LIMIT 1",
            (begun.conv_id, seq, seq, only, only),
        ).fetchone()
        message = codec.read_inbound(found[1], found[0]) if found else None
        if message is None:
            return finish(db, begun, nothing)
        if found[2] not in ("done", "dropped"):
            return finish(db, begun, busy)
        if message.part_of:  # the other parts of an album or a long paste
            beside = "SELECT payload, seq FROM inbox WHERE turn_id IS ? AND conv_id=? ORDER BY seq"
            rows = db.execute(beside, (found[3], begun.conv_id)).fetchall()
            parts = [one for row in rows if (one := codec.read_inbound(*row))]
            message = joined([one for one in parts if one.part_of == message.part_of] or [message])
        again = replace(
            message, kind=InboundKind.MESSAGE, extra_context=ASKED_AGAIN, respond=command.respond, part_of=""
        )
        db.execute("UPDATE inbox SET sender=? WHERE seq=?", (message.origin.sender, seq))
        return become_message(db, begun, again)
