"""Copies a transcript, so that its session goes on with the copy and the original stays as it is."""

import sqlite3
from collections.abc import Callable, Sequence

from bot.persistence.exchanges import Forked
from bot.persistence.turns import CommandKept
from bot.store import rows
from bot.store.commands import NOT_ANEW, begin, finish
from bot.store.indexes import OPEN_TURN, SAID
from bot.store.writer import Subject, transaction
from channels.message import Place, message_key
from channels.outgoing import Planned


class Forks(Subject):
    """Transactions that copy transcripts."""

    @transaction
    def fork(
        self,
        db: sqlite3.Connection,
        seq: int,
        session_key: str,
        upto: tuple[Place, str] | None,
        tell: Callable[[Forked], Sequence[Planned]],
    ) -> CommandKept:
        """Let a session go on with a copy of its present transcript, without the turn that is under way.

        The copy has what the next request would have, under the same system prompt. upto: place and platform's id of
        the message it ends with, a person's or the bot's; None: it ends where the transcript does. tell: makes the
        answer; it has no effects. seq: see `Commands`.
        """
        begun = begin(db, seq, self._now())
        if begun is None:
            return NOT_ANEW
        (old,) = db.execute("SELECT transcript_id FROM session WHERE session_key=?", (session_key,)).fetchone()
        last = _last(db, session_key, old, upto)
        start, summary = _beginning(db, old, last)
        which = "transcript_id=? AND hidden=0 AND (seq=? OR kind<>'summary' AND seq BETWEEN ? AND ?)"
        (lines,) = db.execute(f"SELECT count(*) FROM entry WHERE {which}", (old, summary, start, last)).fetchone()
        if not lines:
            return finish(db, begun, tell(Forked()))
        new = rows.new_transcript(db, session_key, self._new_id(), begun.now)
        db.execute(
            "UPDATE transcript SET (prompt, fingerprint, first_meeting, pruned_below)=(SELECT prompt, fingerprint,"
            " first_meeting, pruned_below FROM transcript WHERE transcript_id=?), context_start=?, summary=?"
            " WHERE transcript_id=?",
            (old, start, summary, new),
        )
        db.execute(
            "INSERT INTO entry (transcript_id, seq, turn_id, step, kind, body, tokens, covers)"
            f" SELECT ?, seq, turn_id, step, kind, body, tokens, covers FROM entry WHERE {which}",
            (new, old, summary, start, last),
        )
        return finish(db, begun, tell(Forked(old, lines)))


def _last(db: sqlite3.Connection, session_key: str, transcript_id: str, upto: tuple[Place, str] | None) -> int:
    """Return the newest line of a transcript that a copy has; 0 if it has none.

    A copy that ends with a message of a person ends with the words of people to its turn; one that ends with a message
    of the bot, with the turn. Lines of a turn that is not over, but for the words of people, are never copied: their
    calls may have no results.
    """
    within, values = "hidden=0", list[str]()
    if upto is not None:
        place, message_id = upto
        asked = "SELECT turn_id FROM inbox WHERE channel=? AND account=? AND event_key=?"
        said = (
            "SELECT turn_id FROM delivery JOIN conversation USING (conv_id)"
            f" WHERE channel=? AND account=? AND chat=? AND platform_id=? AND delivery.{SAID}"
        )
        within += f" AND (turn_id IN ({asked}) AND step=0 AND entry.kind='user' OR turn_id IN ({said}))"
        values = [place.channel, place.account, message_key(place.chat, message_id)]
        values += [place.channel, place.account, place.chat, message_id]
    is_open = f"turn_id IN (SELECT turn_id FROM turn WHERE session_key=? AND {OPEN_TURN})"
    asks = "" if upto is None else " AND NOT (step=0 AND kind='user')"
    before = f"SELECT min(seq) FROM entry WHERE transcript_id=? AND {is_open}{asks}"
    (last,) = db.execute(
        f"SELECT max(seq) FROM entry WHERE transcript_id=? AND {within} AND seq < coalesce(({before}), seq + 1)",
        (transcript_id, *values, transcript_id, session_key),
    ).fetchone()
    return int(last or 0)


def _beginning(db: sqlite3.Connection, transcript_id: str, last: int) -> tuple[int, int | None]:
    """Return the first line that a copy up to a line has, and the summary before it.

    It begins as the transcript does, or where that begins later, with the newest summary that stands for nothing
    behind the last line.
    """
    start, summary = db.execute(
        "SELECT context_start, summary FROM transcript WHERE transcript_id=?", (transcript_id,)
    ).fetchone()
    if start <= last:
        return start, summary
    found = db.execute(
        "SELECT covers, seq FROM entry WHERE transcript_id=? AND kind='summary' AND covers <= ?"
        " ORDER BY seq DESC LIMIT 1",
        (transcript_id, last),
    ).fetchone()
    return found or (1, None)
