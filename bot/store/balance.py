"""The book of messages: says of each message of people, by rows alone, what became of it.

A message is *answered* if a command was carried out, or its turn is done and what it said was sent, or it was rightly
silent. It is *told* if a stated rule kept it from an answer, its turn was stopped, or its turn failed with a sentence.
It is *pending* while it waits or its turn or a delivery is open. Any other message is unexplained, and so is a row that
is missing (`bot/store/gone.py`). Edits, deletions, and what was overheard are not asked of the bot.
"""

import json
import sqlite3
from collections.abc import Sequence

from bot.persistence.balance import EXPLAINED, Page, Unexplained
from bot.persistence.causes import Cause
from bot.store.gone import Counted, missing, note_gone
from bot.store.indexes import LOST_DELIVERY, OPEN_DELIVERY, OPEN_TURN
from bot.store.rows import CARRIED_OUT, MESSAGE
from bot.store.writer import Subject, query, transaction
from channels.sources import of_turn, sentence

# How many numbers of the inbox one page covers, so that no reader of the store waits long.
PAGE = 5_000
UNKNOWN = "unknown"
# Condition for messages of people, which ask something of the bot.
OF_PEOPLE = "inbox.kind IN ('message','command','button','api')"
_ACCOUNT = "channel || iif(account='', '', ':' || account)"

# The number of deliveries of a message (64 for each), and which kinds of them there are.
_OPEN, _LOST, _SENT, _CAUSELESS, _UNASKED, _UNSENT = 1, 2, 4, 8, 16, 32
_FLAGS = (
    f"count(*) * 64 + {_OPEN} * coalesce(max({OPEN_DELIVERY}), 0)"
    f" + {_LOST} * coalesce(max({LOST_DELIVERY} AND {MESSAGE}), 0)"
    f" + {_SENT} * coalesce(max(state='sent' OR cause IS '{Cause.SAID_ALREADY}'), 0)"
    f" + {_CAUSELESS} * coalesce(max(state IN ('failed','expired') AND error IS NULL AND cause IS NULL), 0)"
    f" + {_UNASKED} * coalesce(max(source_kind='request' AND subject IS NOT NULL AND NOT EXISTS"
    " (SELECT 1 FROM approval WHERE approval_id=subject)), 0)"
    f" + {_UNSENT} * coalesce(max(state='expired' AND cause IN ('{Cause.UNSENT}','{Cause.UNDONE}','{Cause.HOOK}')), 0)"
)
_OF_TURN = f"SELECT {_FLAGS} FROM delivery WHERE delivery.turn_id=inbox.turn_id"
_OF_MESSAGE = f"SELECT {_FLAGS} FROM json_each(inbox.told) JOIN delivery ON delivery_id=value"
_SHORT = "a delivery of it is missing"
# The sources, as expressions of SQL, of what a failed turn says and of the answer to a command.
_APOLOGY = "'" + of_turn("' || inbox.turn_id || '", "error").key + "'"
_REPLY = "'" + sentence("cmd", "' || value || '").key + "'"
# What became of each message. ?1: whether each listed delivery must be there; else those that are not were deleted by a
# rule. Where a turn or a command ended before its deliveries were listed, nothing is expected of them.
_BECAME = f"""CASE
    WHEN turn_id IS NOT NULL AND turn_state IS NULL THEN 'its turn is missing'
    WHEN ?1 AND own / 64 <> own_listed THEN '{_SHORT}'
    WHEN state='withdrawn' THEN 'told'
    WHEN state='dropped' THEN iif(reason IS NULL, 'it was dropped without a cause', 'told')
    WHEN state='held' THEN iif(reason IS NULL, 'it is held without a cause', 'pending')
    WHEN state='waiting' THEN iif(ended, 'it waits for a turn that has ended', 'pending')
    WHEN {CARRIED_OUT} AND own & {_OPEN} THEN 'pending'
    WHEN {CARRIED_OUT} AND own & {_CAUSELESS} THEN 'its answer was given up without a cause'
    WHEN {CARRIED_OUT} THEN iif(own & {_LOST}, 'told', 'answered')
    WHEN turn_id IS NULL THEN 'no turn has taken it'
    WHEN NOT ended AND state='done' THEN 'it is done, but its turn goes on'
    WHEN NOT ended AND waits AND NOT asks THEN 'the request that it waits for is missing'
    WHEN NOT ended THEN 'pending'
    WHEN state<>'done' THEN 'its turn has ended without it'
    WHEN ?1 AND said / 64 <> listed THEN '{_SHORT}'
    WHEN said & {_UNASKED} THEN 'a request of its turn is missing'
    WHEN said & {_OPEN} THEN 'pending'
    WHEN said & {_CAUSELESS} THEN 'a delivery of it was given up without a cause'
    WHEN turn_state='stopped' THEN 'told'
    WHEN turn_state='failed' THEN iif(listed IS NULL OR said / 64 < listed OR error_kind IS 'unreadable' OR apology,
        'told', 'its turn has failed, and nobody was told')
    WHEN said & {_LOST} THEN 'told'
    WHEN said & {_SENT} OR silent OR listed IS NULL OR said / 64 < listed THEN 'answered'
    WHEN said & {_UNSENT} THEN 'told'
    ELSE 'its turn ended without an answer' END"""
_ROWS = f"""WITH asked AS MATERIALIZED (
    SELECT seq, {_ACCOUNT} AS account, inbox.kind, inbox.state, reason, inbox.turn_id,
      turn.state AS turn_state, NOT turn.{OPEN_TURN} AS ended, error_kind, silent,
      iif(inbox.told IS NULL, 0, ({_OF_MESSAGE})) AS own, coalesce(json_array_length(inbox.told), 0) AS own_listed,
      iif(turn.{OPEN_TURN}, 0, ({_OF_TURN})) AS said, json_array_length(turn.told) AS listed,
      turn.state='parked' AND misses IS NULL AND over IS NULL AS waits,
      EXISTS (SELECT 1 FROM approval WHERE approval_id=parked_on) AS asks,
      turn.state='failed' AND EXISTS (SELECT 1 FROM delivery WHERE source={_APOLOGY}) AS apology
    FROM inbox LEFT JOIN turn USING (turn_id) WHERE {OF_PEOPLE} AND"""
_JUDGED = f") SELECT account, {_BECAME} AS became, count(*), group_concat(seq) FROM asked GROUP BY account, became"
# The deliveries that a message (?1) or its turn must have, and that are neither there nor noted as gone.
_LACKING = (
    "SELECT value FROM (SELECT value FROM inbox, json_each(inbox.told) WHERE seq=?1 UNION ALL SELECT value FROM inbox"
    " JOIN turn USING (turn_id), json_each(turn.told) WHERE seq=?1)"
    " WHERE NOT EXISTS (SELECT 1 FROM delivery WHERE delivery_id=value)"
    " AND NOT EXISTS (SELECT 1 FROM gone WHERE of='delivery' AND value BETWEEN first AND last)"
)
# Missing numbers (?1, JSON) that a row still names, with the account that they belong to.
_MESSAGES_NAMED = (
    f"SELECT value, {_ACCOUNT} FROM turn, json_each(turn.messages) JOIN conversation ON conv_id=reply_conv"
    " WHERE value IN (SELECT value FROM json_each(?1)) UNION"
    f" SELECT value, {_ACCOUNT} FROM json_each(?1) JOIN delivery ON source={_REPLY}"
    " JOIN conversation USING (conv_id)"
)
_DELIVERIES_NAMED = (
    f"SELECT value, {_ACCOUNT}, EXISTS (SELECT 1 FROM inbox WHERE inbox.turn_id=turn.turn_id AND {OF_PEOPLE})"
    " FROM turn, json_each(turn.told) JOIN conversation ON conv_id=reply_conv"
    " WHERE value IN (SELECT value FROM json_each(?1)) UNION"
    f" SELECT value, {_ACCOUNT}, 1 FROM inbox, json_each(inbox.told) WHERE value IN (SELECT value FROM json_each(?1))"
)
# The accounts of the rows on both sides of a number.
_BESIDE: dict[Counted, str] = {
    "inbox": f"SELECT DISTINCT {_ACCOUNT} FROM inbox WHERE seq IN ((SELECT max(seq) FROM inbox WHERE seq < ?1),"
    " (SELECT min(seq) FROM inbox WHERE seq > ?1))",
    "delivery": f"SELECT DISTINCT {_ACCOUNT} FROM delivery JOIN conversation USING (conv_id) WHERE delivery_id IN"
    " ((SELECT max(delivery_id) FROM delivery WHERE delivery_id < ?1),"
    " (SELECT min(delivery_id) FROM delivery WHERE delivery_id > ?1))",
}


class Balances(Subject):
    """The book, page by page, and what owners have accepted of what it does not explain."""

    @query
    def page(self, db: sqlite3.Connection, after: int, since: int) -> Page:
        """See the function `page`."""
        return page(db, after, since)

    @query
    def rest(self, db: sqlite3.Connection, since: int) -> Page:
        """See the function `rest`."""
        db.execute("BEGIN")  # numbers and rows are counted at one moment
        try:
            return rest(db, since)
        finally:
            db.execute("COMMIT")

    @transaction
    def write_off(self, db: sqlite3.Connection, one: Unexplained, by: str) -> None:
        """Persist that an owner accepts what is not explained. by: who, as "channel:id"."""
        table, number = _row_of(one.message)
        key = "seq" if table == "inbox" else "delivery_id"
        is_missing = db.execute(f"SELECT 1 FROM {table} WHERE {key}=?", (number,)).fetchone() is None
        made = db.execute(
            "INSERT INTO written_off (message, account, why, missing, accepted_by, accepted_at) VALUES (?,?,?,?,?,?)"
            " ON CONFLICT DO NOTHING",
            (one.message, one.account, one.why, is_missing, by, self._now()),
        )
        if made.rowcount and is_missing:
            note_gone(db, table, (number,))


def page(db: sqlite3.Connection, after: int, since: int) -> Page:
    """Return what became of the next messages behind a number. since: of those accepted since then, in milliseconds."""
    found = judge(db, "seq > ?2 AND seq <= ?3 AND accepted_at >= ?4", after, after + PAGE, since)
    (top,) = db.execute("SELECT coalesce(max(seq), 0) FROM inbox").fetchone()
    found.upto = after + PAGE if after + PAGE < top else None
    return found


def judge(db: sqlite3.Connection, which: str, *values: object) -> Page:
    """Return what became of the messages of a condition with the parameters ?2 and following."""
    page = Page()
    doubtful: list[int] = []
    for account, became, count, numbers in db.execute(f"{_ROWS} {which} {_JUDGED}", (True, *values)).fetchall():
        if became in EXPLAINED:
            page.counts[account, became] += count
        elif became == _SHORT:
            doubtful += map(int, numbers.split(","))
        else:
            page.unexplained += [Unexplained(account, number, became) for number in numbers.split(",")]
    for seq in doubtful:
        lacks = db.execute(_LACKING, (seq,)).fetchone() is not None
        ((account, became, _, number),) = db.execute(f"{_ROWS} seq=?2 {_JUDGED}", (False, seq)).fetchall()
        if became in EXPLAINED and not lacks:
            page.counts[account, became] += 1
        else:
            page.unexplained.append(Unexplained(account, number, _SHORT if lacks else became))
    _accept(page, _written_off(db) if page.unexplained else ())
    return page


def carry(db: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Count messages that are about to be deleted, and note them as gone; those that are not explained stay named."""
    page = judge(db, "seq IN (SELECT value FROM json_each(?2))", json.dumps(numbers))
    kept = {int(one.message) for one in page.unexplained}
    note_gone(db, "inbox", (number for number in numbers if number not in kept))
    for seq in [int(message) for message in _written_off(db) if not message.startswith("d")]:
        if seq in numbers:  # nothing else will ever name what they lack
            note_gone(db, "delivery", [number for (number,) in db.execute(_LACKING, (seq,)).fetchall()])
    for (account, became), count in page.counts.items():
        channel, _, bot = account.partition(":")
        answered = count if became == "answered" else 0
        db.execute(
            "INSERT INTO carried (channel, account, answered, told) VALUES (?,?,?,?) ON CONFLICT (channel, account)"
            " DO UPDATE SET answered=answered + excluded.answered, told=told + excluded.told",
            (channel, bot, answered, count - answered),
        )


def rest(db: sqlite3.Connection, since: int) -> Page:
    """Return the last page: what is missing, and, if the whole book is read, the messages whose rows are gone."""
    page = Page()
    if not since:
        for account, answered, told in db.execute(f"SELECT {_ACCOUNT}, answered, told FROM carried").fetchall():
            page.counts.update({(account, "answered"): answered, (account, "told"): told})
        accepted = db.execute("SELECT account, count(*) FROM written_off WHERE missing GROUP BY account").fetchall()
        page.counts.update({(account, "told"): count for account, count in accepted})
    seqs = [seq for seq in missing(db, "inbox") if not since or _accepted_behind(db, seq) >= since]
    if seqs:
        of = dict(db.execute(_MESSAGES_NAMED, (json.dumps(seqs),)).fetchall())
        page.unexplained += [
            Unexplained(of.get(seq) or _beside(db, "inbox", seq), str(seq), "its row is missing") for seq in seqs
        ]
    if not since and (lost := missing(db, "delivery")):
        found = db.execute(_DELIVERIES_NAMED, (json.dumps(lost),)).fetchall()
        at, named = {number: account for number, account, _ in found}, {number for number, _, of in found if of}
        page.unexplained += [
            Unexplained(at.get(number) or _beside(db, "delivery", number), f"d{number}", "this delivery is missing")
            for number in lost
            if number not in named  # else the message is
        ]
    _accept(page, _written_off(db) if page.unexplained else ())
    return page


def _beside(db: sqlite3.Connection, table: Counted, number: int) -> str:
    """Return the account of the rows on both sides of a missing one, if it is the same."""
    found = db.execute(_BESIDE[table], (number,)).fetchall()
    return str(found[0][0]) if len(found) == 1 else UNKNOWN


def _accept(page: Page, accepted: Sequence[str]) -> None:
    """Count what owners have accepted as told."""
    for one in [one for one in page.unexplained if one.message in accepted]:
        page.unexplained.remove(one)
        page.counts[one.account, "told"] += 1


def _written_off(db: sqlite3.Connection) -> Sequence[str]:
    return [message for (message,) in db.execute("SELECT message FROM written_off").fetchall()]


def _accepted_behind(db: sqlite3.Connection, seq: int) -> int:
    """Return when the first message behind a missing one was accepted, in milliseconds; very late if there is none."""
    found = db.execute("SELECT accepted_at FROM inbox WHERE seq > ? ORDER BY seq LIMIT 1", (seq,)).fetchone()
    return int(found[0]) if found else 1 << 62


def _row_of(message: str) -> tuple[Counted, int]:
    """Return the table and the number of the row that a report names."""
    return ("delivery", int(message[1:])) if message.startswith("d") else ("inbox", int(message))
