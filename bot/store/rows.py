"""Statements that several transactions share. Each function runs inside a unit of the writer."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.events import SAID, MessageStart, Notice, PersistedEvent, RunRef, dump
from agent.message import Entry, EntryKind, Message, ToolCall, estimate
from bot.persistence.causes import Cause
from bot.persistence.deliveries import OwnerNotice, PlanIn
from bot.persistence.errors import StaleRun
from bot.persistence.events import PersistedAt
from bot.persistence.turns import Said
from bot.store import codec, delivery_rows, frozen, sending, tool_messages
from bot.store.gone import give_back
from bot.store.indexes import OPEN_DELIVERY
from channels.message import BACKGROUND, CLAIMED, ChatKind, Place
from channels.outgoing import Delivery, Planned
from channels.session_key import console_key
from channels.sources import Source, SourceKind, piece_key

_FINAL = (
    "UPDATE SET body=excluded.body, said=excluded.said, step=excluded.step, reply_to=excluded.reply_to,"
    " unless=excluded.unless, planned_at=excluded.planned_at, not_before=0, settled_at=NULL,"
    # a preview whose call has begun is edited later; one that was never sent becomes an ordinary message
    " action=iif(delivery.state IN ('sent','sending','unknown'), 'preview', excluded.action),"
    " target=iif(delivery.state='sent', delivery.platform_id, NULL), conv_id=excluded.conv_id,"
    " state=iif(delivery.state IN ('sending','unknown'), delivery.state, 'planned')"
    # a preview that goes on after a cut is changed by frames: an edit of the ledger could overwrite the last one
    " WHERE delivery.action='preview' AND delivery.step IS NULL AND excluded.step IS NOT NULL"
)
# Assignments that end the running time of a turn's attempt at the time given; without an attempt they change nothing.
STOP_CLOCK = "ran = ran + max(0, coalesce(? - resumed_at, 0)), resumed_at = NULL"
# Begins the scope in `kv` of how often hosts were followed in a task; the id of its transcript stands behind it.
FOLLOWED = "follow:"
# The kind of a turn by the kind of the messages that it answers.
TURN_OF = {"message": "reply", "api": "api", "wake": "beat", "job": "job", "child": "child"}
# Condition for messages that no person wrote, and for their turns; the turn of a wake is called a beat.
IN_BACKGROUND = f"kind IN {('beat', *sorted(kind.value for kind in BACKGROUND))}"
# Whom the answer to a message serves, as `People.share_of` takes the name; heartbeat turns are for owners.
ASKER = (
    "iif(inbox.kind='wake' OR inbox.channel='console', 'http:owner', inbox.channel || ':' || coalesce(inbox.sender,''))"
)
# Condition for messages that a claim takes, because a model answers them.
FOR_A_RUN = f"kind IN {tuple(sorted(kind.value for kind in CLAIMED))}"
# Condition for commands and buttons, which are answered without a model.
CARRIED_OUT = "kind IN ('command','button')"
# Condition for turns of which a call runs.
CALL_RUNS = "EXISTS (SELECT 1 FROM tool_call WHERE tool_call.turn_id=turn.turn_id AND tool_call.state='running')"
# Condition for deliveries that people have seen, may have seen or will see.
STANDS = "state NOT IN ('failed','expired')"
# Condition for deliveries that are messages, and no changes of messages.
MESSAGE = "action IN ('send','preview','file')"
# Condition for deliveries that show an answer which is still being written.
PREVIEW = "action='preview' AND step IS NULL"
# Condition for deliveries that a tool call has sent.
OF_TOOL = f"source_kind='{SourceKind.TOOL}'"
# The scope of `kv` that holds, for each conversation, the time of the first message that did not arrive there.
MISSED = "missed:"
# Condition for messages that no model has seen.
UNSEEN = "state IN ('held','waiting','steering')"
# Counts the commands before a message that are not carried out yet. No turn takes messages from both sides of one,
# because the command may end the turn.
COMMANDS_BEFORE = (
    "SELECT count(*) FROM inbox AS command WHERE command.session_key=inbox.session_key AND command.state='waiting'"
    f" AND command.{CARRIED_OUT} AND command.seq < inbox.seq"
)


def conversation(db: sqlite3.Connection, place: Place) -> int:
    """Return the id of the conversation at a place, made if it is missing; of a moved chat, that of the new place."""
    key = (place.channel, place.account, place.chat, place.thread)
    found = db.execute(
        "SELECT conv_id, moved_to FROM conversation WHERE channel=? AND account=? AND chat=? AND thread=?", key
    ).fetchone()
    if found:
        return int(found[1] or found[0])
    made = db.execute(
        "INSERT INTO conversation (channel, account, chat, thread, kind) VALUES (?,?,?,?,?)", (*key, place.kind.value)
    )
    return int(made.lastrowid or 0)


def place_of(db: sqlite3.Connection, conv_id: int) -> Place:
    """Return the place of a conversation."""
    found = db.execute("SELECT channel, account, chat, thread, kind FROM conversation WHERE conv_id=?", (conv_id,))
    return to_place(*found.fetchone())


def to_place(channel: str, account: str, chat: str, thread: str, kind: str) -> Place:
    """Make a place of these columns of a conversation."""
    return Place(channel=channel, account=account, chat=chat, thread=thread, kind=ChatKind(kind))


def transcript_of(
    db: sqlite3.Connection, session_key: str, conv_id: int | None, now: int, new_id: str
) -> tuple[str, int]:
    """Return the session's current transcript, and when people used the session last, in milliseconds.

    A missing session is made with the transcript `new_id`. conv_id: where a person writes in it; None: no person does.
    """
    find = "SELECT transcript_id, used_at, last_conv FROM session WHERE session_key=?"
    if found := db.execute(find, (session_key,)).fetchone():
        if conv_id not in (None, found[2]):
            db.execute("UPDATE session SET last_conv=? WHERE session_key=?", (conv_id, session_key))
        return str(found[0]), int(found[1])
    db.execute(
        "INSERT INTO transcript (transcript_id, session_key, created_at) VALUES (?,?,?)", (new_id, session_key, now)
    )
    db.execute(
        "INSERT INTO session (session_key, transcript_id, last_conv, used_at) VALUES (?,?,?,?)",
        (session_key, new_id, conv_id, now),
    )
    return new_id, now


def new_transcript(db: sqlite3.Connection, session_key: str, transcript_id: str, now: int) -> str:
    """Let a session go on with another transcript of its own, made empty if it is missing; return its id.

    The old transcript stays readable.
    """
    db.execute(
        "INSERT INTO transcript (transcript_id, session_key, created_at) VALUES (?,?,?) ON CONFLICT DO NOTHING",
        (transcript_id, session_key, now),
    )
    db.execute("UPDATE session SET transcript_id=?, used_at=? WHERE session_key=?", (transcript_id, now, session_key))
    return transcript_id


def new_turn(
    db: sqlite3.Connection, turn_id: str, session_key: str, transcript_id: str, kind: str, conv_id: int, at: int
) -> None:
    """Queue a turn that answers in a conversation. at: when its message was accepted, in milliseconds."""
    db.execute(
        "INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, reply_conv, created_at)"
        " VALUES (?,?,?,?,'queued',?,?)",
        (turn_id, session_key, transcript_id, kind, conv_id, at),
    )


def check_epoch(db: sqlite3.Connection, run: RunRef, *, of_call: bool = False) -> tuple[str, int]:
    """Return transcript id and step of the turn that a run holds; raise StaleRun if it does not hold it any more.

    of_call: a call writes, which is finished also if its turn has given way (`bot/store/yielding`).
    """
    held = f"(state='running' OR state='queued' AND {CALL_RUNS})" if of_call else "state='running'"
    found = db.execute(
        f"SELECT transcript_id, step FROM turn WHERE turn_id=? AND epoch=? AND {held}",
        (run.turn_id, run.attempt),
    ).fetchone()
    if found is None:
        raise StaleRun(f"turn {run.turn_id} is not run {run.attempt}'s any more")
    return found[0], found[1]


def append_entry(
    db: sqlite3.Connection,
    transcript_id: str,
    kind: EntryKind,
    message: Message,
    turn_id: str | None,
    step: int,
    covers: int = 0,
) -> Entry:
    """Append a line to a transcript and return it. covers: see `Entry`."""
    tokens = estimate(message)
    (seq,) = db.execute(
        "INSERT INTO entry (transcript_id, seq, turn_id, step, kind, body, tokens, covers)"
        " VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM entry WHERE transcript_id=?1), ?2,?3,?4,?5,?6,?7)"
        " RETURNING seq",
        (transcript_id, turn_id, step, kind, codec.MESSAGE.dump(message), tokens, covers or None),
    ).fetchone()
    return Entry(seq=seq, kind=kind, message=message, tokens=tokens, turn_id=turn_id, step=step, covers=covers)


def ask(db: sqlite3.Connection, turn_id: str, step: int, calls: Sequence[ToolCall]) -> None:
    """Store the tool calls of an answer in the state `asked`."""
    db.executemany(
        "INSERT INTO tool_call (turn_id, call_id, step, ordinal, name, args, state) VALUES (?,?,?,?,?,?,'asked')",
        [(turn_id, call.call_id, step, n, call.name, call.arguments) for n, call in enumerate(calls)],
    )


def plan(
    db: sqlite3.Connection, where: PlanIn, blocks: Sequence[Planned], turn_id: str | None, now: int
) -> tuple[Delivery, ...]:
    """Put blocks into the ledger and return the deliveries that are new or changed.

    A block whose source and piece are in the ledger is skipped, unless it is the final text of a preview (`step`),
    which replaces the text in the row. Only the first block can begin at once, and only if no older delivery of the
    conversation is open, which keeps the order, and nothing keeps it back. Blocks for a chat that has moved go to its
    new place. Raises ValueError if a turn would speak outside its own conversation without a tool call: private text.
    """
    if not blocks:
        return ()
    conv_id, must_wait, answers_in, *columns = db.execute(
        f"SELECT there.conv_id, EXISTS (SELECT 1 FROM delivery WHERE conv_id=there.conv_id AND {OPEN_DELIVERY})"
        f" OR {frozen.SAYS_NOTHING} OR {sending.DENIES_NOW},"
        " (SELECT coalesce(moved_to, conv_id) FROM turn JOIN conversation ON conv_id=reply_conv WHERE turn_id=?2),"
        " there.channel, there.account, there.chat, there.thread, there.kind"
        " FROM conversation AS named JOIN conversation AS there"
        " ON there.conv_id=coalesce(named.moved_to, named.conv_id) WHERE named.conv_id=?1",
        (where.conv_id, turn_id, where.sending),
    ).fetchone()
    elsewhere = turn_id is not None and answers_in != conv_id
    if elsewhere and not all(block.source.kind is SourceKind.TOOL for block in blocks):
        raise ValueError(f"turn {turn_id} answers in conversation {answers_in}, not in {conv_id}")
    place = to_place(*columns)
    begin = "sent" if place.kind in (ChatKind.API, ChatKind.CONSOLE) else "planned"
    if where.sending and begin == "planned" and conv_id == where.conv_id and not (must_wait or blocks[0].unless):
        begin = "sending"
    made = []
    for block in blocks:
        source = block.source
        begun, settled = now if begin == "sending" else None, now if begin == "sent" else None
        again = begin == "sent" and block.unless and tool_messages.fate(db, block.unless).state == "sent"
        inserted = db.execute(
            "INSERT INTO delivery (source, piece, source_kind, subject, answer, conv_id, turn_id, body, nonce, said,"
            " step, action, target, edits, reply_to, buttons, file, silent, respond, unless, state, attempts,"
            " planned_at, begun_at, settled_at, cause)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
            f" ON CONFLICT (source, piece) DO {_FINAL} RETURNING {delivery_rows.COLUMNS}",
            (
                *(source.key, block.piece, source.kind, source.subject or None, source.step),
                *(conv_id, turn_id, block.body, block.nonce, block.said, block.step, block.action.value),
                *(block.target or None, block.edits or None, block.reply_to or None),
                codec.BUTTONS.dump(block.buttons) if block.buttons else None,
                codec.FILE.dump(block.file) if block.file else None,
                *(block.silent, block.respond or None, block.unless or None),
                *("expired" if again else begin, int(begin == "sending"), now, begun, settled),
                Cause.SAID_ALREADY if again else None,
            ),
        ).fetchone()
        if inserted:
            made.append(delivery_rows.read(inserted, place))
            if place.kind is ChatKind.CONSOLE:
                _tell(db, turn_id, block, now)
        if not inserted or made[-1].nonce != block.nonce:  # it is in the ledger
            give_back(db, "delivery")
        if begin == "sending":
            begin = "planned"
    return tuple(made)


def _tell(db: sqlite3.Connection, turn_id: str | None, block: Planned, now: int) -> None:
    """Persist a block for the terminal as an event of the console session, unless it is an answer of that session.

    A terminal reads the events of its session only, so sentences of the service and of other sessions need one.
    """
    found = db.execute("SELECT session_key, epoch FROM turn WHERE turn_id=?", (turn_id,)).fetchone()
    session_key, epoch = found or (console_key(), 1)
    if block.step is not None and session_key == console_key():
        return  # the answer has an event of its own
    run = run_ref(turn_id or piece_key(block.source.key, block.piece), console_key(), epoch)
    name = said_id(run.turn_id, block.source.key, block.piece)
    persist_events(db, [Notice(run=run, at=now, id=name, kind=SAID, detail=block.body)])


def said_id(turn_id: str, source: str, piece: int) -> str:
    """Return the id of the event about a sentence of the service. source: the key of the delivery's source."""
    return f"{turn_id}/said/{piece_key(source, piece)}"


def said_by(db: sqlite3.Connection, turn_id: str) -> tuple[Said, ...]:
    """Return what a turn has said in its own conversation, each answer as a whole, in the order of planning."""
    found = db.execute(
        "SELECT min(source), source_kind, group_concat(said, ''), step,"
        " max(iif(piece, NULL, file)) FROM (SELECT * FROM delivery"  # that of another piece is long code
        f" WHERE turn_id=? AND {STANDS} AND NOT ({PREVIEW})"
        " AND conv_id=(SELECT reply_conv FROM turn WHERE turn_id=delivery.turn_id) ORDER BY delivery_id)"
        " GROUP BY coalesce(step, source) ORDER BY min(delivery_id)",
        (turn_id,),
    ).fetchall()
    return tuple(
        Said(
            source=Source(SourceKind(kind), key),
            text=text,
            step=step,
            file=sent.path if (sent := codec.FILE.load(file, None)) else "",
        )
        for key, kind, text, step, file in found
    )


def expire(db: sqlite3.Connection, which: str, values: Sequence[object], cause: Cause, now: int) -> list[int]:
    """Expire the deliveries of a condition and return their ids. One that may have arrived becomes `uncertain`."""
    found = db.execute(
        "UPDATE delivery SET state=CASE attempts WHEN 0 THEN 'expired' ELSE 'uncertain' END, cause=?, settled_at=?"
        f" WHERE {which} RETURNING delivery_id",
        (cause, now, *values),
    ).fetchall()
    return [delivery_id for (delivery_id,) in found]


def tell_owner(
    db: sqlite3.Connection, notice: OwnerNotice, now: int, besides: int | None = None
) -> tuple[Delivery, ...]:
    """Plan a notice in the direct conversation of the owner who wrote last. besides: a conversation not to be used."""
    wrote = [
        found
        for owner in notice.owners
        if (
            found := db.execute(
                "SELECT seq, coalesce(moved_to, conv_id) FROM inbox JOIN conversation USING (conv_id)"
                " WHERE conversation.kind='direct' AND inbox.channel=? AND inbox.sender=?"
                " AND coalesce(moved_to, conv_id) IS NOT ? AND reason IS NOT ? ORDER BY seq DESC LIMIT 1",
                (*owner, besides, Cause.OUTSIDE),
            ).fetchone()
        )
    ]
    otherwise = conversation(db, notice.otherwise)
    conv_id = int(max(wrote)[1]) if wrote else otherwise
    if notice.both and conv_id != otherwise:
        copies = [replace(one, source=one.source.also("copy")) for one in notice.blocks(notice.otherwise)]
        plan(db, PlanIn(otherwise), copies, None, now)
    return plan(db, PlanIn(conv_id), notice.blocks(place_of(db, conv_id)), None, now)


def set_value(db: sqlite3.Connection, scope: str, key: str, value: str) -> None:
    """Write a value of the table `kv`."""
    db.execute(
        "INSERT INTO kv (scope, key, value) VALUES (?,?,?) ON CONFLICT (scope, key) DO UPDATE SET value=excluded.value",
        (scope, key, value),
    )


def persist_events(db: sqlite3.Connection, events: Iterable[PersistedEvent]) -> int:
    """Persist agent events and return how many were new. One with a known id, made again after a crash, is skipped."""
    return db.executemany(
        "INSERT OR IGNORE INTO event (event_id, turn_id, session_key, at, body) VALUES (?,?,?,?,?)",
        [(e.id, e.run.turn_id, e.run.session_key, e.at, dump(e)) for e in events],
    ).rowcount


def begin_answer(db: sqlite3.Connection, run: RunRef, step: int, now: int) -> bool:
    """Persist the event that the model is asked for an answer. Each further try of the step has an event of its own.

    If a freeze holds the turn, it is queued instead, the run is over, and False is returned.
    """
    tries = 1
    while True:
        start = MessageStart(run=run, at=now, step=step, tries=tries)
        begun = db.execute(
            "INSERT OR IGNORE INTO event (event_id, turn_id, session_key, at, body) SELECT ?1,?2,?3,?4,?5"
            f" WHERE NOT {frozen.ASKS_NOTHING}",
            (start.id, run.turn_id, run.session_key, now, dump(start)),
        )
        if begun.rowcount:
            return True
        queued = f"UPDATE turn SET state='queued', {STOP_CLOCK} WHERE turn_id=?2 AND {frozen.ASKS_NOTHING}"
        if db.execute(queued, (now, run.turn_id)).rowcount:
            return False
        tries += 1


def newest_event(db: sqlite3.Connection) -> int:
    """Return the position of the newest persisted event; 0 if there is none."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])


def persisted_after(db: sqlite3.Connection, seq: int) -> list[PersistedAt]:
    """Return the notifications about the events after a position, in order."""
    found = db.execute(
        "SELECT seq, session_key, turn_id, event_id = turn_id || '/end' FROM event WHERE seq > ? ORDER BY seq", (seq,)
    ).fetchall()
    return [PersistedAt(seq, session_key, run_id, bool(ended)) for seq, session_key, run_id, ended in found]


def run_ref(turn_id: str, session_key: str, epoch: int) -> RunRef:
    """Make the reference that events carry of a run: it has the id of its turn, and its attempt is the epoch."""
    return RunRef(run_id=turn_id, turn_id=turn_id, session_key=session_key, attempt=max(epoch, 1))
