"""Jobs and their due runs: one transaction stores a due run, the message of its turn, and the next due time."""

import json
import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any

from agent.message import Usage, merged
from bot.persistence.causes import Cause
from bot.persistence.deliveries import PlanIn
from bot.persistence.inbox import AcceptedMessage, Changes
from bot.persistence.schedules import HEARTBEAT, BeatFacts, Fired, Firing, Job, LostAlert
from bot.store import codec, edits, rows
from bot.store.frozen import BEATS
from bot.store.inbox import Inbox
from bot.store.indexes import OPEN_TURN, UNNOTED, WAITING
from bot.store.writer import query, transaction
from channels.message import Place
from channels.outgoing import Delivery, Planned
from channels.session_key import beats_of

_JOB = "job_id, name, schedule, prompt, origin, session_key, own, next_at, paused, failures, retry_at, origins"
_FIRING = ("job_id", "due_at", "until", "cause", "reason", "turn_id", "session_key", "tasks", "outcome")
_FIRINGS = f"SELECT {', '.join(f'firing.{name}' for name in _FIRING)}, usage FROM firing LEFT JOIN turn USING (turn_id)"
_OF_BEAT = f"JOIN firing USING (turn_id) WHERE job_id='{HEARTBEAT}' AND due_at >= ?1 AND step IS NOT NULL AND said<>''"
# Counts the beats after a time (?2) that failed for the key or the account, since the last one that did not fail.
_ERRORS = (
    "SELECT count(*) FROM firing WHERE job_id=?1 AND outcome='failed' AND reason IN ('auth','billing') AND due_at >"
    " max(?2, coalesce((SELECT max(due_at) FROM firing WHERE job_id=?1 AND outcome NOT IN ('','failed')), 0))"
)
# Condition for beats that share a task with the beat of turn ?3, or one of which has no tasks.
_SHARES = (
    "EXISTS (SELECT 1 FROM firing mine WHERE mine.turn_id=?3 AND ('[]' IN (mine.tasks, firing.tasks)"
    " OR EXISTS (SELECT 1 FROM json_each(mine.tasks) JOIN json_each(firing.tasks) USING (value))))"
)
# Condition for deliveries that did not arrive; they may have been said again.
_LOST = "state IN ('failed','expired')"


class Schedules(Inbox):
    """The transactions of the dispatcher and of the heartbeat."""

    @query
    def jobs(self, db: sqlite3.Connection) -> Sequence[Job]:
        """Return all jobs, oldest first."""
        return _jobs(db.execute(f"SELECT {_JOB} FROM job ORDER BY rowid"))

    @query
    def due(self, db: sqlite3.Connection, now: int) -> tuple[Sequence[Job], int | None]:
        """Return the due jobs, the longest due first, and the next due time of the others in milliseconds.

        While beats are frozen there are none.
        """
        waiting = f"next_at IS NOT NULL AND paused=0 AND NOT {BEATS}"
        found = _jobs(db.execute(f"SELECT {_JOB} FROM job WHERE {waiting} AND next_at <= ? ORDER BY next_at", (now,)))
        (later,) = db.execute(f"SELECT min(next_at) FROM job WHERE {waiting} AND next_at > ?", (now,)).fetchone()
        return found, later

    @transaction
    def put(self, db: sqlite3.Connection, job: Job, most: int | None = None) -> bool:
        """Add a job, or replace the schedule of the job with its id. Returns False if there are `most` others."""
        (others,) = db.execute("SELECT count(*) FROM job WHERE job_id<>?", (job.job_id,)).fetchone()
        if most is not None and others >= most:
            return False
        db.execute(
            f"INSERT INTO job ({_JOB}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (job_id) DO UPDATE SET"
            " schedule=excluded.schedule, next_at=excluded.next_at",
            (
                *(job.job_id, job.name, codec.SCHEDULE.dump(job.schedule), job.prompt),
                codec.ORIGIN.dump(job.origin) if job.origin else None,
                *(job.session_key, job.own, job.next_at, job.paused, job.failures, job.retry_at),
                codec.ORIGINS.dump(job.origins) if job.origins else "",
            ),
        )
        return True

    @transaction
    def pause(self, db: sqlite3.Connection, job_id: str, paused: bool, next_at: int | None) -> None:
        """Pause a job, or resume it at next_at (milliseconds) without its failures."""
        if paused:
            db.execute("UPDATE job SET paused=1 WHERE job_id=?", (job_id,))
            return
        db.execute(
            "INSERT INTO firing (job_id, due_at, until, at, cause, reason)"
            " SELECT job_id, next_at, ?1, ?1, 'late', 'paused' FROM job"
            " WHERE job_id=?2 AND paused=1 AND next_at <= ?1 ON CONFLICT DO NOTHING",
            (self._now(), job_id),
        )
        db.execute("UPDATE job SET paused=0, failures=0, retry_at=0, next_at=? WHERE job_id=?", (next_at, job_id))

    @transaction
    def delete(self, db: sqlite3.Connection, job_id: str) -> None:
        """Delete a job. A run that has begun goes on."""
        db.execute("DELETE FROM job WHERE job_id=?", (job_id,))

    @transaction
    def fire(
        self,
        db: sqlite3.Connection,
        job: Job,
        firings: Sequence[Firing],
        next_at: int | None,
        run: AcceptedMessage | None = None,
        most: int | None = None,
    ) -> Fired:
        """Store due runs of a job, and its next due time in milliseconds; see `Fired` for the result.

        run: the message of the turn of the first of them, which has the turn's id; None if all are skipped. most: how
        many runs of jobs may be open. A due time that is skipped for the same reason as the one before is added to it.
        """
        now = self._now()
        if run is not None:
            others, same, held = db.execute(
                "SELECT count(*) FILTER (WHERE kind='job' AND state<>'parked'), count(*) FILTER (WHERE job_id=?),"
                f" {BEATS} FROM turn LEFT JOIN firing USING (turn_id) WHERE {OPEN_TURN}",
                (job.job_id,),
            ).fetchone()
            if held:
                return "frozen"
            at = (job.job_id, firings[0].due_at)
            there = db.execute("SELECT 1 FROM firing WHERE job_id=? AND due_at=?", at).fetchone()
            if same or (there and firings[0].cause in ("wake", "now")):
                return "running"
            if most is not None and others >= most:
                return "full"
        moved = db.execute(
            "UPDATE job SET next_at=? WHERE job_id=? AND next_at IS ? AND paused=?",
            (next_at, job.job_id, job.next_at, job.paused),
        )
        if moved.rowcount != 1:
            return "changed"
        for one in firings:
            if not one.turn_id and _lengthened(db, one, now):
                continue
            db.execute(
                "INSERT INTO firing (job_id, due_at, until, at, cause, reason, turn_id, session_key, tasks)"
                " VALUES (?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
                (
                    *(one.job_id, one.due_at, one.until or one.due_at, now, one.cause, one.reason, one.turn_id or None),
                    *(one.session_key, json.dumps(one.tasks)),
                ),
            )
        if run is not None:
            self._accept(db, run, now)
        return "fired"

    @query
    def firings(self, db: sqlite3.Connection, job_id: str, limit: int) -> Sequence[Firing]:
        """Return the newest due runs of a job, newest first."""
        found = db.execute(f"{_FIRINGS} WHERE job_id=? ORDER BY due_at DESC LIMIT ?", (job_id, limit))
        return [_firing(row) for row in found]

    @query
    def firing_of(self, db: sqlite3.Connection, turn_id: str) -> tuple[Firing, Job | None] | None:
        """Return the due run of a turn, and its job unless that is deleted; None if the turn is not a due run."""
        found = db.execute(f"{_FIRINGS} WHERE firing.turn_id=?", (turn_id,)).fetchone()
        if found is None:
            return None
        jobs = _jobs(db.execute(f"SELECT {_JOB} FROM job WHERE job_id=?", (found[0],)))
        return _firing(found), jobs[0] if jobs else None

    @query
    def owner_places(self, db: sqlite3.Connection, owners: Sequence[tuple[str, str]]) -> Sequence[tuple[str, Place]]:
        """Return sessions and places in which an owner wrote, directly or in the terminal, the last place first.

        owners: the channel and id of each.
        """
        found: list[tuple[int, str, int]] = []
        for channel, sender in (*owners, ("console", "owner")):
            found += db.execute(
                "SELECT max(seq), session_key, coalesce(moved_to, conv_id)"
                " FROM conversation CROSS JOIN inbox USING (conv_id)"  # in this order, because groups are much larger
                " WHERE conversation.channel=? AND conversation.kind IN ('direct','console') AND sender=?"
                " AND session_key IS NOT NULL AND inbox.kind IN ('message','command','button','api')"
                " AND reason IS NOT ? GROUP BY conv_id",
                (channel, sender, Cause.OUTSIDE),
            )
        return [(session_key, rows.place_of(db, conv_id)) for _, session_key, conv_id in sorted(found, reverse=True)]

    @query
    def beat_facts(self, db: sqlite3.Connection, session_key: str, runs_in: str, since: int) -> BeatFacts:
        """Return what the gate needs to know before a beat of a session.

        runs_in: the session in which the beat would run, the same or an isolated one. since: the beginning of the day
        for which usage is counted, in milliseconds.
        """
        used = db.execute("SELECT last_conv FROM session WHERE session_key=?", (session_key,)).fetchone()
        (busy,) = db.execute(
            f"SELECT EXISTS (SELECT 1 FROM turn WHERE session_key IN (?1, ?2) AND {OPEN_TURN} AND epoch > 0"
            " AND (state<>'parked' OR session_key=?2))"
            f" OR EXISTS (SELECT 1 FROM inbox WHERE session_key IN (?1, ?2) AND {WAITING} AND {rows.FOR_A_RUN})",
            (session_key, runs_in),
        ).fetchone()
        (pending,) = db.execute(
            f"SELECT count(*) FROM inbox WHERE session_key=? AND {UNNOTED} AND {edits.IS_EVENT}", (session_key,)
        ).fetchone()
        tasks = db.execute("SELECT substr(key, 6), value FROM kv WHERE scope=?", (HEARTBEAT,)).fetchall()
        spent: dict[str, Usage] = {}
        for key, usage in db.execute(
            "SELECT turn.session_key, usage FROM firing JOIN turn USING (turn_id) WHERE job_id=? AND at >= ?",
            (HEARTBEAT, since),
        ):
            key = beats_of(key) or key
            spent[key] = spent.get(key, Usage()) + codec.USAGE.load(usage, Usage())
        (wrote_at,) = db.execute(
            "SELECT accepted_at FROM inbox WHERE kind IN ('message','command','button','api') AND channel<>'http'"
            " AND session_key IS NOT NULL ORDER BY seq DESC LIMIT 1"
        ).fetchone() or (0,)
        (errors,) = db.execute(_ERRORS, (HEARTBEAT, wrote_at)).fetchone()
        return BeatFacts(
            place=rows.place_of(db, used[0]) if used and used[0] else None,
            busy=bool(busy),
            pending=pending,
            tasks={task: int(at) for task, at in tasks},
            spent=spent,
            last_person=wrote_at,
            errors=errors,
        )

    @transaction
    def tell(self, db: sqlite3.Connection, session_key: str, key: str, text: str) -> None:
        """Let the next turn of a session be told of an event, once per key."""
        edits.note_event(db, session_key, key, text, self._now())

    @query
    def events(self, db: sqlite3.Connection, session_key: str) -> Changes:
        """Return the events that the next turn of a session is told of, oldest first."""
        found = db.execute(
            f"SELECT payload, seq FROM inbox WHERE session_key=? AND {UNNOTED} AND {edits.IS_EVENT} ORDER BY seq",
            (session_key,),
        )
        read = (codec.read_inbound(*row) for row in found)
        return [(event, "", event.sent_at) for event in read if event is not None]

    @query
    def last_alert(self, db: sqlite3.Connection, turn_id: str, conv_id: int, since: int) -> str:
        """Return the last text of a beat in a conversation that was or may be delivered; empty if there is none.

        turn_id: the beat that asks; only beats that share a task with it count, and those without tasks. since: the
        earliest due time, in milliseconds.
        """
        found = db.execute(
            f"SELECT group_concat(said, '') FROM (SELECT said, turn_id, delivery_id FROM delivery {_OF_BEAT}"
            f" AND conv_id=?2 AND ({rows.STANDS} OR said_again=1) AND {_SHARES} ORDER BY delivery_id)"
            " GROUP BY turn_id ORDER BY max(delivery_id) DESC LIMIT 1",
            (since, conv_id, turn_id),
        ).fetchone()
        return str(found[0]) if found else ""

    @query
    def lost_alerts(self, db: sqlite3.Connection, since: int) -> Sequence[LostAlert]:
        """Return the texts of beats since a due time that were refused or expired and not said again, oldest first."""
        found = db.execute(
            "SELECT turn_id, (SELECT session_key FROM turn WHERE turn.turn_id=lost.turn_id), group_concat(said, ''),"
            f" min(planned_at) AS at FROM (SELECT delivery.* FROM delivery {_OF_BEAT} AND {_LOST}"
            f" AND delivery.cause IS NOT '{Cause.SAID_ALREADY}' AND said_again=0 ORDER BY delivery_id) AS lost"
            " GROUP BY turn_id ORDER BY at",
            (since,),
        )
        return [LostAlert(*row) for row in found]

    @transaction
    def say_again(
        self,
        db: sqlite3.Connection,
        lost: Sequence[LostAlert],
        place: Place,
        blocks: Sequence[Planned],
        session_key: str,
    ) -> tuple[Delivery, ...]:
        """Plan lost texts again at a place, and mark them as said again; return the deliveries.

        session_key: the session of that place, whose next turn is told of the texts of other sessions; or empty.
        """
        said_again = f"UPDATE delivery SET said_again=1 WHERE turn_id=? AND {_LOST} AND step IS NOT NULL"
        db.executemany(said_again, [(one.turn_id,) for one in lost])
        now, conv_id = self._now(), rows.conversation(db, place)
        others = [one for one in lost if one.session_key != session_key]
        if session_key and others:
            words, bears = "\n\n".join(one.text for one in others), [edits.said_from(db, one.turn_id) for one in others]
            key, made_from = blocks[0].source.key, merged(chain.from_iterable(bears))
            edits.note_written(db, place, conv_id, session_key, key, words, now, made_from)
        return rows.plan(db, PlanIn(conv_id), blocks, None, now)


def _lengthened(db: sqlite3.Connection, one: Firing, now: int) -> bool:
    """Add a skipped due time to the one before if that was skipped for the same reason; return whether it was."""
    lengthened = db.execute(
        "UPDATE firing SET until=?1, at=?2 WHERE job_id=?3 AND reason=?4 AND turn_id IS NULL AND until < ?1"
        " AND due_at=(SELECT max(due_at) FROM firing WHERE job_id=?3)",
        (one.until or one.due_at, now, one.job_id, one.reason),
    )
    return lengthened.rowcount == 1


def _jobs(found: sqlite3.Cursor) -> list[Job]:
    """Make jobs of rows; a damaged one is skipped."""
    jobs = []
    for values in found:
        row = dict(zip(_JOB.split(", "), values, strict=True))
        row |= {"own": bool(row["own"]), "paused": bool(row["paused"])}
        row["origin"] = codec.ORIGIN.load(row["origin"], None)
        row["origins"] = codec.origins(row["origins"])
        if schedule := codec.SCHEDULE.load(row["schedule"], None):
            jobs.append(Job(**row | {"schedule": schedule}))
    return jobs


def _firing(values: Sequence[Any]) -> Firing:
    *kept, usage = values
    row = dict(zip(_FIRING, kept, strict=True))
    row |= {"turn_id": row["turn_id"] or "", "tasks": tuple(json.loads(row["tasks"]))}
    return Firing(**row, usage=codec.USAGE.load(usage, Usage()))
