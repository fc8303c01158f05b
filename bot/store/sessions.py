"""Transactions about sessions and their transcripts: what lists show, exports, imports, copies and pruning.

A transcript is pruned in batches: its mark is stored first, and from then on nothing shows it. Its row stays, because
turns refer to it; its lines, its prompt and the calls of its turns go.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agent.message import Message, Provenance, estimate, merged
from bot.persistence.sessions import Imported, Line, NoSuchTranscript, TranscriptView
from bot.store import codec
from bot.store.indexes import OPEN_TURN
from bot.store.rows import FOLLOWED
from bot.store.writer import Subject, query, transaction
from channels.session_key import CHILD

# The most lines that one transaction deletes, adds or reads.
BATCH = 200
# The scope of `kv` with the ids of the transcripts that are being deleted.
_GOING = "pruned transcript"
# The most characters that are shown of the first message of a transcript.
_FIRST = 80

_SHOWN = (
    "EXISTS (SELECT 1 FROM entry WHERE entry.transcript_id=one.transcript_id)"
    f" AND NOT EXISTS (SELECT 1 FROM kv WHERE scope='{_GOING}' AND key=one.transcript_id)"
)
# A sub-agent does not go on by itself.
_CURRENT = (
    f"(instr(one.session_key, '{CHILD}')=0"
    " AND EXISTS (SELECT 1 FROM session WHERE session_key=one.session_key AND transcript_id=one.transcript_id))"
)
_NAMED = f"SELECT session_key, transcript_id FROM transcript AS one WHERE ({_SHOWN} OR {_CURRENT})"
_IN_USE = (
    f"({_CURRENT} OR EXISTS (SELECT 1 FROM turn WHERE turn.session_key=one.session_key"
    f" AND turn.transcript_id=one.transcript_id AND {OPEN_TURN}))"
)
# When a transcript was used last.
_USED = (
    "coalesce((SELECT created_at FROM turn WHERE turn_id=(SELECT turn_id FROM entry"
    " WHERE entry.transcript_id=one.transcript_id ORDER BY seq DESC LIMIT 1)), one.created_at)"
)


class Sessions(Subject):
    """Sessions and their transcripts."""

    @query
    def listed(
        self, db: sqlite3.Connection, session_key: str | None = None, limit: int = -1
    ) -> Sequence[TranscriptView]:
        """Return the transcripts of a session, or of all: first those with which sessions go on, then the newest."""
        found = db.execute(
            f"SELECT session_key, transcript_id, created_at, {_CURRENT} AS current, (SELECT count(*) FROM entry"
            " WHERE entry.transcript_id=one.transcript_id AND hidden=0"
            " AND kind IN ('user','assistant','assistant_cut')), (SELECT body FROM entry"
            " WHERE entry.transcript_id=one.transcript_id AND hidden=0 AND kind='user' ORDER BY seq LIMIT 1)"
            f" FROM transcript AS one WHERE (?1 IS NULL OR session_key=?1) AND ({_SHOWN} OR current)"
            " ORDER BY current DESC, created_at DESC, transcript_id DESC LIMIT ?2",
            (session_key, limit),
        ).fetchall()
        return [
            TranscriptView(
                session=session,
                transcript=transcript,
                messages=messages,
                created_at=created_at,
                current=bool(current),
                first=" ".join((read.text if (read := codec.MESSAGE.load(body, None)) else "").split())[:_FIRST],
            )
            for session, transcript, created_at, current, messages, body in found
        ]

    @query
    def named(self, db: sqlite3.Connection, name: str, session_key: str | None = None) -> tuple[str, str]:
        """Return session and id of a transcript by its id, the beginning of it, or the key of its session.

        session_key: look among the transcripts of this session alone. Raises NoSuchTranscript.
        """
        found: list[Any] = db.execute(
            f"{_NAMED} AND session_key=?1 ORDER BY {_CURRENT} DESC, created_at DESC LIMIT 1",
            (name,),
        ).fetchall()
        if not found and name:
            found = db.execute(
                f"{_NAMED} AND transcript_id >= ?1 AND transcript_id < ?1 || 'g'"
                " AND (?2 IS NULL OR session_key=?2) LIMIT 2",
                (name.lower(), session_key),
            ).fetchall()
        if len(found) != 1:
            several = f"More than one transcript begins with {name!r}; give more of its id."
            raise NoSuchTranscript(several if found else f"There is no session or transcript {name!r}.")
        return found[0][0], found[0][1]

    @query
    def lines(self, db: sqlite3.Connection, transcript_id: str, after: int = 0) -> Sequence[Line]:
        """Return lines of a transcript behind a seq, at most BATCH; what was never shown to people is left out."""
        found = db.execute(
            "SELECT seq, entry.kind, body, coalesce(created_at, 0) FROM entry LEFT JOIN turn USING (turn_id)"
            " WHERE entry.transcript_id=? AND seq > ? AND hidden=0 ORDER BY seq LIMIT ?",
            (transcript_id, after, BATCH),
        ).fetchall()
        unread = Message("user", ())
        return [
            Line(seq=seq, kind=kind, message=codec.MESSAGE.load(body, unread), at=at) for seq, kind, body, at in found
        ]

    @transaction
    def take_in(self, db: sqlite3.Connection, imported: Imported, begin: int) -> int:
        """Store a batch of the lines of a transcript from a file, from the index `begin` on; returns how many are new.

        The transcript is not made the current one of its session.
        """
        whose = (imported.transcript, imported.session, imported.created_at)
        db.execute(
            "INSERT INTO transcript (transcript_id, session_key, created_at) VALUES (?,?,?) ON CONFLICT DO NOTHING",
            whose,
        )
        lines = enumerate(imported.lines[begin : begin + BATCH], begin + 1)
        return db.executemany(
            "INSERT INTO entry (transcript_id, seq, kind, body, tokens) VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING",
            [(whose[0], seq, kind, codec.MESSAGE.dump(line), estimate(line)) for seq, (kind, line) in lines],
        ).rowcount

    @transaction
    def copy(self, db: sqlite3.Connection, transcript_id: str, session_key: str, copy_id: str) -> None:
        """Copy the context of another session's transcript into a session, once; its lines bear where they come from.

        A person's own words bear no origin in their own session, and must not count as those of who resumes it here.
        """
        made = db.execute(
            "INSERT INTO transcript (transcript_id, session_key, created_at, context_start, summary, pruned_below)"
            " SELECT ?1, ?2, ?3, context_start, summary, pruned_below FROM transcript WHERE transcript_id=?4"
            " ON CONFLICT DO NOTHING RETURNING context_start, coalesce(summary, 0)",
            (copy_id, session_key, self._now(), transcript_id),
        ).fetchone()
        if made is None:
            return
        (of,) = db.execute("SELECT session_key FROM transcript WHERE transcript_id=?", (transcript_id,)).fetchone()
        origin = Provenance("person", f"the session {of}")
        found = db.execute(
            "SELECT seq, kind, body, covers FROM entry WHERE transcript_id=? AND hidden=0"
            " AND (seq >= ? OR seq = ?) ORDER BY seq",
            (transcript_id, *made),
        )
        for seq, kind, body, covers in found.fetchall():
            if (line := codec.MESSAGE.load(body, None)) is not None:
                line = replace(line, origins=merged((origin, *line.origins)))
                db.execute(
                    "INSERT INTO entry (transcript_id, seq, kind, body, tokens, covers) VALUES (?,?,?,?,?,?)",
                    (copy_id, seq, kind, codec.MESSAGE.dump(line), estimate(line), covers),
                )

    @transaction
    def mark_old(self, db: sqlite3.Connection, before: int | None, keep: int | None) -> int:
        """Mark transcripts to be deleted: not used since a moment, or beyond the newest `keep` of their session.

        None: not by that. Those that sessions go on with, or whose turn is open, stay. Returns how many were marked.
        """
        return db.execute(
            f"INSERT INTO kv (scope, key, value) SELECT '{_GOING}', transcript_id, '' FROM (SELECT *, row_number() OVER"
            f" (PARTITION BY session_key ORDER BY {_CURRENT} DESC, {_USED} DESC) AS place FROM transcript AS one"
            f" WHERE {_SHOWN} OR {_CURRENT}) AS one WHERE (coalesce({_USED} < ?1, 0) OR coalesce(place > ?2, 0))"
            f" AND NOT {_IN_USE}",
            (before, keep),
        ).rowcount

    @transaction
    def drop_marked(self, db: sqlite3.Connection) -> bool:
        """Delete a batch of lines of the marked transcripts; returns whether some are left."""
        found = db.execute(
            "SELECT transcript_id, "
            f"{_IN_USE} FROM kv JOIN transcript AS one ON transcript_id=key WHERE scope='{_GOING}' LIMIT 1"
        ).fetchone()
        if found is None:
            return False
        transcript_id, in_use = found
        if in_use or delete_lines(db, transcript_id, BATCH) < BATCH:
            db.execute("DELETE FROM kv WHERE scope=? AND key=?", (_GOING, transcript_id))
        return True


def delete_lines(db: sqlite3.Connection, transcript_id: str, limit: int) -> int:
    """Delete the first lines of a transcript, with the calls of their turns and the prompt; returns how many went."""
    found = db.execute(
        "DELETE FROM entry WHERE transcript_id=?1 AND seq IN"
        " (SELECT seq FROM entry WHERE transcript_id=?1 ORDER BY seq LIMIT ?2) RETURNING turn_id",
        (transcript_id, limit),
    ).fetchall()
    turns = [(turn_id,) for turn_id in {turn_id for (turn_id,) in found if turn_id}]
    requests = "subject IN (SELECT approval_id FROM approval WHERE turn_id=?)"
    db.executemany(f"UPDATE delivery SET subject=NULL WHERE {requests}", turns)  # the book would miss them
    db.executemany("DELETE FROM approval WHERE turn_id=?", turns)
    db.executemany("DELETE FROM tool_call WHERE turn_id=?", turns)
    db.execute("DELETE FROM kv WHERE scope=?", (f"{FOLLOWED}{transcript_id}",))
    db.execute(
        "UPDATE transcript SET prompt=NULL, fingerprint=NULL, summary=NULL, context_start=1, pruned_below=1"
        " WHERE transcript_id=?",
        (transcript_id,),
    )
    return len(found)
