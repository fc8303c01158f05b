"""Transactions about outages of models: keys that rest, and turns that are parked until a model works again.

Which turns wait is read from the turns alone, so that a crash leaves nothing to repair.
"""

import sqlite3
from collections.abc import Collection, Mapping, Sequence

from agent.errors import ErrorKind
from agent.events import AgentEnd, Notice, Outcome, RunRef
from agent.models.base import ThinkingLevel
from agent.models.fleet import Rest
from bot.persistence.deliveries import OwnerNotice, PlanIn
from bot.persistence.outages import Missing
from bot.store import endings, repair, rows
from bot.store.indexes import HELD_TURN
from bot.store.writer import Subject, query, transaction
from channels.outgoing import Delivery, Planned

# Milliseconds after which the people of a session are told of another outage.
_TOLD_FOR = 3_600_000
# Milliseconds for which a refused part is remembered.
_KEPT_FOR = 365 * 86_400_000
# Condition for turns that are parked until a model works again.
_MISSING = f"{HELD_TURN} AND state='parked' AND misses IS NOT NULL"
# The same, or for a budget that another day alone does not help.
_WAITS = f"{HELD_TURN} AND state='parked' AND (misses IS NOT NULL OR over IS NOT NULL AND over_until IS NULL)"


class Outages(Subject):
    """Transactions about outages of models."""

    @transaction
    def rest(self, db: sqlite3.Connection, rest: Rest) -> None:
        """Store the rest of a key, or remove it when the key works again (its `until` is 0)."""
        of = rest.provider, rest.model, rest.key
        if rest.until:
            values = (*of, rest.kind.value, rest.failures, rest.until, rest.asked)
            db.execute("INSERT OR REPLACE INTO resting_key VALUES (?,?,?,?,?,?,?)", values)
        else:
            db.execute("DELETE FROM resting_key WHERE provider=? AND model=? AND key=?", of)

    @query
    def rests(self, db: sqlite3.Connection) -> Sequence[Rest]:
        """Return the rests of all keys."""
        found = db.execute("SELECT provider, model, key, kind, failures, until, asked FROM resting_key").fetchall()
        return [
            Rest(provider=of, model=model, key=key, kind=ErrorKind(kind), failures=failures, until=until, asked=asked)
            for of, model, key, kind, failures, until, asked in found
        ]

    @transaction
    def refuses(self, db: sqlite3.Connection, model: str, parts: Mapping[str, str]) -> None:
        """Store what a model refuses: the provider's words by the part. What nobody has met for a year is forgotten."""
        now = self._now()
        rows = [(model, part, reason, now) for part, reason in parts.items()]
        db.executemany("INSERT OR REPLACE INTO refused_part VALUES (?,?,?,?)", rows)
        db.execute("DELETE FROM refused_part WHERE refused_at < ?", (now - _KEPT_FOR,))

    @query
    def refused(self, db: sqlite3.Connection) -> Sequence[tuple[str, str, str]]:
        """Return what models refuse, as model, part and reason."""
        return db.execute("SELECT model, part, reason FROM refused_part").fetchall()

    @transaction
    def park(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        model: str,
        where: PlanIn,
        blocks: Sequence[Planned],
        notice: OwnerNotice | None,
        told: Notice,
    ) -> tuple[tuple[Delivery, ...], AgentEnd]:
        """End a run because no model answers, and park its turn until `model` or one that stands in for it works.

        The answer that broke off is closed by the cut-answer rule. blocks: what people are told, unless they were told
        of this turn before, or within the last hour of others, none of which has ended since. notice: for an owner.
        Returns what is to be delivered and the end of the run. Raises StaleRun.
        """
        now = self._now()
        transcript_id, step = rows.check_epoch(db, run)
        repair.close_cut_answer(db, run.turn_id, transcript_id, step, now, go_on=True)
        tell = db.execute(
            "UPDATE session SET outage_told_at=?1 WHERE session_key=?2 AND (outage_told_at IS NULL OR"
            " outage_told_at < (SELECT created_at FROM turn WHERE turn_id=?4) AND (outage_told_at < ?3 OR EXISTS"
            " (SELECT 1 FROM turn WHERE turn.session_key=?2 AND ended_at >= outage_told_at)))",
            (now, run.session_key, now - _TOLD_FOR, run.turn_id),
        ).rowcount
        deliveries = rows.plan(db, where, blocks, run.turn_id, now) if tell else ()
        if notice is not None:
            rows.tell_owner(db, notice, now, besides=where.conv_id if blocks else None)
        used = db.execute(
            f"UPDATE turn SET state='parked', outcome=?, misses=?, {rows.STOP_CLOCK} WHERE turn_id=?"
            f" RETURNING {endings.USED}",
            (Outcome.PARKED.value, model, now, run.turn_id),
        ).fetchone()
        rows.persist_events(db, (told,))
        return deliveries, endings.persist_end(db, run, used, Outcome.PARKED, now)

    @query
    def missing(self, db: sqlite3.Connection) -> Sequence[Missing]:
        """Return the turns that are parked until a model works again, or more is allowed, oldest first."""
        found = db.execute(
            "SELECT turn_id, session_key, misses, created_at, channel,"
            " nullif(cast(json_extract(settings, '$.child.timeout') * 1000 AS integer), 0)"
            " FROM turn JOIN conversation ON conv_id=reply_conv JOIN session USING (session_key)"
            f" WHERE {_WAITS} ORDER BY created_at, turn_id"
        ).fetchall()
        return [Missing(*row) for row in found]

    @transaction
    def resume(self, db: sqlite3.Connection, models: Collection[str]) -> Sequence[str]:
        """Queue the turns that wait for one of these models; returns their sessions, the oldest turn first."""
        found = db.execute(
            f"UPDATE turn SET state='queued', misses=NULL WHERE {_MISSING}"
            f" AND misses IN ({','.join('?' * len(models))}) RETURNING created_at, turn_id, session_key",
            tuple(models),
        ).fetchall()
        return [session_key for _, _, session_key in sorted(found)]

    @transaction
    def give_up(
        self, db: sqlite3.Connection, turn_id: str, blocks: Sequence[Planned], kind: str, why: str
    ) -> tuple[Delivery, ...]:
        """End a turn that has waited for too long, unless it waits no more.

        blocks: what people are told. kind, why: of the error.
        """
        now = self._now()
        found = db.execute(
            f"SELECT transcript_id, step, reply_conv FROM turn WHERE {_WAITS} AND turn_id=?", (turn_id,)
        ).fetchone()
        if found is None:
            return ()
        transcript_id, step, conv_id = found
        repair.close_run(db, turn_id, transcript_id, step, now)
        deliveries = rows.plan(db, PlanIn(conv_id), blocks, turn_id, now)
        endings.end_turn(db, turn_id, Outcome.FAILED, now, kind, why)
        return deliveries

    @transaction
    def answers(
        self, db: sqlite3.Connection, run: RunRef, away: str, where: PlanIn, blocks: Sequence[Planned]
    ) -> tuple[Delivery, ...]:
        """Store which model answers in place of the one that a session wants; empty: that one answers again."""
        return self._remember(db, run, "$.away", away, where, blocks)

    @transaction
    def thinks_less(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        model: str,
        level: ThinkingLevel,
        where: PlanIn,
        blocks: Sequence[Planned],
    ) -> tuple[Delivery, ...]:
        """Store the level of thinking that a model has not refused in a session."""
        path = '$.levels."' + model.replace('"', "") + '"'
        return self._remember(db, run, path, level, where, blocks)

    def _remember(
        self,
        db: sqlite3.Connection,
        run: RunRef,
        path: str,
        value: str,
        where: PlanIn,
        blocks: Sequence[Planned],
    ) -> tuple[Delivery, ...]:
        rows.check_epoch(db, run)
        become = "UPDATE session SET settings=json_set(json_insert(settings, '$.levels', json('{}')), ?, ?)"
        db.execute(f"{become} WHERE session_key=?", (path, value, run.session_key))
        return rows.plan(db, where, blocks, run.turn_id, self._now())
