"""Keeps count of the rows of messages and deliveries, so that one that is missing is noticed.

Their numbers are given without a gap. A number whose row is deleted by a rule is noted as gone; a number without a row
that is not noted is a row that somebody or something has taken away. Each function runs inside a unit of the writer.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal

from channels.outgoing import Delivery

# The tables whose rows are counted.
Counted = Literal["inbox", "delivery"]
# Assignments that write down, with the end of a turn, which messages and deliveries it has.
LISTED = (
    "messages=(SELECT json_group_array(seq) FROM inbox WHERE inbox.turn_id=turn.turn_id),"
    " told=(SELECT json_group_array(delivery_id) FROM delivery WHERE delivery.turn_id=turn.turn_id)"
)


def note_gone(db: sqlite3.Connection, table: Counted, numbers: Iterable[int]) -> None:
    """Note the numbers of rows that a rule deletes in this transaction."""
    ordered = enumerate(sorted(numbers))
    for _, found in groupby(ordered, lambda item: item[1] - item[0]):
        run = [number for _, number in found]
        first, last = run[0], run[-1]
        before = db.execute("DELETE FROM gone WHERE of=? AND last=? RETURNING first", (table, first - 1)).fetchone()
        after = db.execute("DELETE FROM gone WHERE of=? AND first=? RETURNING last", (table, last + 1)).fetchone()
        db.execute(
            "INSERT INTO gone (of, first, last) VALUES (?,?,?)",
            (table, before[0] if before else first, after[0] if after else last),
        )


def give_back(db: sqlite3.Connection, table: Counted) -> None:
    """Take back the newest number of a table: an insertion that was refused as a duplicate has used it up."""
    db.execute("UPDATE sqlite_sequence SET seq=seq-1 WHERE name=?", (table,))


def list_told(db: sqlite3.Connection, seq: int, deliveries: Sequence[Delivery]) -> None:
    """List with a message the deliveries that were planned with its end: the answer to a command, or why it is none."""
    ids = json.dumps([one.delivery_id for one in deliveries])
    db.execute("UPDATE inbox SET told=? WHERE seq=?", (ids, seq))


def missing(db: sqlite3.Connection, table: Counted) -> list[int]:
    """Return the numbers whose rows are missing, in order. Only the rows are counted when none is."""
    key = "seq" if table == "inbox" else "delivery_id"
    top, rows, gone = db.execute(
        f"SELECT (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name=?1), (SELECT count(*) FROM {table}),"
        " (SELECT coalesce(sum(last - first + 1), 0) FROM gone WHERE of=?1)",
        (table,),
    ).fetchone()
    if rows + gone == top:
        return []
    gaps = db.execute(
        "SELECT last + 1, following FROM (SELECT last, lead(first, 1, ?1) OVER (ORDER BY first) AS following FROM"
        f" (SELECT 0 AS first, 0 AS last UNION ALL SELECT {key}, {key} FROM {table}"
        " UNION ALL SELECT first, last FROM gone WHERE of=?2)) WHERE following > last + 1",
        (top + 1, table),
    ).fetchall()
    return [number for first, end in gaps for number in range(first, end)]
