"""What model calls have used: one row per call, written in the transaction that ends the call.

A call that was cut told nobody its usage. It counts with what the store knows of it: the lines and the prompt that were
sent, and what has come or was planned of its answer.
"""

import sqlite3
from collections.abc import Sequence
from typing import Literal

from agent.message import Usage
from bot.persistence.usage import Amount, Spent, Used
from bot.store.writer import Subject, query, transaction
from channels.session_key import CHILD

_COLUMNS = "usage (at, turn_id, session_key, sender, job_id, model, input, cache_read, cache_write, output, money)"
# Who wrote first to a turn, and which job it is of.
_SENDER = (
    "coalesce((SELECT channel || ':' || sender FROM inbox WHERE turn_id={0} AND sender<>''"
    " AND kind IN ('message','api','child') ORDER BY seq LIMIT 1), '')"
)
_JOB = "coalesce((SELECT job_id FROM firing WHERE turn_id={0}), '')"
# The session of a turn; what sub-agents use counts for the one that they belong to.
_ROOT = f"iif(instr(session_key, '{CHILD}'), substr(session_key, 1, instr(session_key, '{CHILD}') - 1), session_key)"
# The tokens of what is sent to the model at most: lines, prompt, and at least what was sent to it before.
_SENT = (
    "max((SELECT coalesce(sum(tokens), 0) FROM entry WHERE entry.transcript_id=transcript.transcript_id AND hidden=0"
    " AND seq >= context_start) + coalesce(length(prompt), 0) / 4,"
    " coalesce((SELECT max(input) FROM usage WHERE usage.turn_id=turn.turn_id), 0))"
)
_PLANNED = "(SELECT coalesce(sum(length(said)), 0) / 4 FROM delivery WHERE turn_id=turn.turn_id AND delivery.step=?2)"
_MODEL = "coalesce(model, (SELECT body ->> '$.model' FROM event WHERE event_id=turn.turn_id || '/start'), '')"
# A turn works, and on nothing else than an answer of the model.
_ANSWERING = (
    "state='running' AND NOT EXISTS (SELECT 1 FROM tool_call WHERE tool_call.turn_id=turn.turn_id"
    " AND tool_call.state IN ('asked','waiting','running'))"
)
_SUM = "coalesce(sum(input + output){0}, 0), coalesce(sum(money){0}, 0.0)"


def record(db: sqlite3.Connection, turn_id: str, model: str, usage: Usage, now: int) -> None:
    """Store what a call of a turn has used. `cost` is a function of the connection, see `Database`."""
    values = (usage.input, usage.cache_read, usage.cache_write, usage.output)
    db.execute(
        f"INSERT INTO {_COLUMNS} SELECT ?, turn_id, {_ROOT}, {_SENDER.format('turn.turn_id')},"
        f" {_JOB.format('turn.turn_id')}, ?, ?, ?, ?, ?, cost(?, ?, ?, ?, ?) FROM turn WHERE turn_id=?",
        (now, model, *values, model, *values, turn_id),
    )


def record_cut(db: sqlite3.Connection, turn_id: str, step: int, heard: int, now: int) -> None:
    """Store what the call of a turn has used that is under way and was cut, if there is one.

    step: the number of answers before it. heard: the tokens of its answer that have come at least.
    """
    found = db.execute(
        f"SELECT {_MODEL}, {_SENT}, {_PLANNED} FROM turn JOIN transcript USING (transcript_id)"
        f" WHERE turn_id=?1 AND {_ANSWERING}",
        (turn_id, step + 1),
    ).fetchone()
    if found is not None:
        model, sent, written = found
        record(db, turn_id, model, Usage(sent, max(heard, written)), now)


class UsageRows(Subject):
    """Queries about what was used, and the calls that belong to no turn."""

    @transaction
    def probed(self, db: sqlite3.Connection, model: str, usage: Usage) -> None:
        """Store what a call has used that looked whether a model is well: a row of the bot alone, of no turn."""
        values = (usage.input, usage.cache_read, usage.cache_write, usage.output)
        db.execute(
            f"INSERT INTO {_COLUMNS} VALUES (?, '', '', '', '', ?, ?, ?, ?, ?, cost(?, ?, ?, ?, ?))",
            (self._now(), model, *values, model, *values),
        )

    @query
    def spent(self, db: sqlite3.Connection, turn_id: str, session_key: str, since: int) -> Spent:
        """Return what a turn has used, and what was used since a moment (in milliseconds) by those it belongs to."""
        sender, job_id, *of_turn = db.execute(
            f"SELECT {_SENDER.format('?1')}, {_JOB.format('?1')}, {_SUM.format('')} FROM usage WHERE turn_id=?1",
            (turn_id,),
        ).fetchone()
        filters = [f" FILTER (WHERE {column}=?)" for column in ("session_key", "sender", "job_id")]
        sums = db.execute(
            f"SELECT {', '.join(_SUM.format(one) for one in (*filters, ''))} FROM usage WHERE at >= ?",
            (session_key, session_key, sender, sender, job_id, job_id, since),
        ).fetchone()
        session, user, job, bot = (Amount(*sums[at : at + 2]) for at in range(0, 8, 2))
        raised = db.execute(
            "SELECT scope, count(*) FROM budget_raise WHERE since IN (0, ?) AND (scope, of) IN (VALUES"
            " ('turn', ?), ('session', ?), ('user', ?), ('job', ?), ('bot', 'bot')) GROUP BY scope",
            (since, turn_id, session_key, sender, job_id),
        ).fetchall()
        return Spent(
            sender=sender,
            job_id=job_id,
            turn=Amount(*of_turn),
            session=session,
            user=user,
            job=job,
            bot=bot,
            raised=dict(raised),
        )

    @query
    def by(
        self, db: sqlite3.Connection, column: Literal["model", "session_key"], since: int, session_key: str = ""
    ) -> Sequence[Used]:
        """Return what was used since a moment by each model or session, the most first.

        session_key: of this session only; empty: of all.
        """
        found = db.execute(
            f"SELECT {column}, count(*), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(money)"
            f" FROM usage WHERE at >= ?1 AND (?2='' OR session_key=?2) GROUP BY {column}"
            " ORDER BY sum(input + output) DESC, 1",
            (since, session_key),
        ).fetchall()
        return [Used(name=name, calls=calls, usage=Usage(*of), money=money) for name, calls, *of, money in found]
