"""Transactions about summaries, which stand for the older part of a transcript.

No run has to hold its turn for them: a summary stands for lines that never change, so one that was made by a run whose
turn has ended meanwhile is as good as any. Of two that were begun from the same state only the first is stored.
"""

import sqlite3
from collections.abc import Sequence

from agent.events import CompactionEnd, CompactionStart, RunRef
from agent.message import Entry, Message, Usage
from bot.persistence.deliveries import PlanIn
from bot.store import rows, usage
from bot.store.writer import Subject, query, transaction
from channels.outgoing import Delivery, Planned

# The newest files of a transcript that are named.
_MOST_FILES = 30


class Compactions(Subject):
    """Transactions about summaries."""

    @query
    def last_run(
        self, db: sqlite3.Connection, session_key: str, transcript_id: str = ""
    ) -> tuple[str, RunRef, int] | None:
        """Return the transcript of a session, its newest run and the conversation of that; None before the first.

        transcript_id: of an earlier transcript; empty: the present one.
        """
        found = db.execute(
            "SELECT coalesce(nullif(?2, ''), session.transcript_id), turn_id, epoch, reply_conv FROM session"
            " JOIN turn ON turn_id = (SELECT entry.turn_id FROM entry WHERE entry.turn_id IS NOT NULL AND"
            " entry.transcript_id = coalesce(nullif(?2, ''), session.transcript_id) ORDER BY seq DESC LIMIT 1)"
            " WHERE session.session_key=?1",
            (session_key, transcript_id),
        ).fetchone()
        return (found[0], rows.run_ref(found[1], session_key, found[2]), found[3]) if found else None

    @transaction
    def used(self, db: sqlite3.Connection, run: RunRef, model: str, used: Usage) -> None:
        """Store what the call for a summary has used."""
        usage.record(db, run.turn_id, model, used, self._now())

    @transaction
    def began(self, db: sqlite3.Connection, event: CompactionStart) -> None:
        """Persist the event that a summary is being made."""
        rows.persist_events(db, (event,))

    @transaction
    def flushes(self, db: sqlite3.Connection, transcript_id: str) -> bool:
        """Store that the model is asked to save notes; False if it was since the newest summary."""
        change = "UPDATE transcript SET flushed=1 WHERE transcript_id=? AND flushed=0"
        return db.execute(change, (transcript_id,)).rowcount == 1

    @transaction
    def tell(
        self, db: sqlite3.Connection, run: RunRef, where: PlanIn, blocks: Sequence[Planned]
    ) -> tuple[Delivery, ...]:
        """Plan what people are told while a summary is being made."""
        return rows.plan(db, where, blocks, run.turn_id, self._now())

    @transaction
    def ended(
        self,
        db: sqlite3.Connection,
        transcript_id: str,
        message: Message | None,
        start: int,
        before: int,
        event: CompactionEnd,
    ) -> Entry | None:
        """Store a summary for the lines before a seq, and that the prompt is to be made anew; or that there is none.

        message: the summary. before: the seq of the summary that was shown before, 0 for none. Returns its line; None
        without one, and where the transcript shows another summary or begins later meanwhile, or something that it
        stands for was taken back.
        """
        rows.persist_events(db, (event,))
        if message is None:
            return None
        found = db.execute(
            "SELECT 1 FROM transcript WHERE transcript_id=? AND coalesce(summary, 0)=? AND context_start < ?",
            (transcript_id, before, start),
        ).fetchone()
        taken_back = db.execute(
            "SELECT 1 FROM undone JOIN entry USING (transcript_id, turn_id) WHERE transcript_id=?"
            " AND line > ? AND seq < ?",
            (transcript_id, event.end, start),
        ).fetchone()
        if found is None or taken_back:
            return None
        entry = rows.append_entry(db, transcript_id, "summary", message, None, 0, covers=start)
        db.execute(
            "UPDATE transcript SET summary=?, context_start=?, flushed=0, prompt=NULL, fingerprint=NULL"
            " WHERE transcript_id=?",
            (entry.seq, start, transcript_id),
        )
        return entry

    @query
    def files(self, db: sqlite3.Connection, transcript_id: str) -> Sequence[str]:
        """Return the paths of files that calls of a transcript wrote, the newest first."""
        found = db.execute(
            "SELECT args ->> '$.path' FROM tool_call JOIN turn USING (turn_id) WHERE turn_id IN"
            " (SELECT turn_id FROM entry WHERE transcript_id=? AND hidden=0)"
            " AND name IN ('write','edit') AND tool_call.state='done' AND json_valid(args)"
            " ORDER BY turn.created_at DESC, tool_call.step DESC LIMIT 500",
            (transcript_id,),
        ).fetchall()
        return [path for path in dict.fromkeys(path for (path,) in found) if isinstance(path, str)][:_MOST_FILES]
