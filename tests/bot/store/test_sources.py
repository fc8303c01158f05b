"""The ledger of an earlier version: what each delivery is about stood in a text, and is known from its columns."""

import sqlite3
from contextlib import closing
from pathlib import Path

from bot.store import database
from bot.store.database import migrations
from channels.message import ChatKind, Place
from channels.outgoing import Refused
from channels.sources import (
    acknowledgement,
    answer,
    answer_file,
    missed,
    of_turn,
    quiet,
    refused,
    reminder,
    request,
    sentence,
    side_message,
    tool_message,
)
from tests.bot.store.opened import opened
from tests.bot.store.test_migrate import contents

SOURCES = """
INSERT INTO conversation (conv_id, channel, account, chat, kind) VALUES (1, 'slack', 'T:1', 'C', 'group');
INSERT INTO transcript (transcript_id, session_key, created_at) VALUES ('t', 'key', 1);
INSERT INTO turn (turn_id, session_key, transcript_id, kind, state, reply_conv, created_at) VALUES
  ('a1', 'key', 't', 'reply', 'done', 1, 1);
INSERT INTO approval (approval_id, turn_id, call_id, ask, digest, question, approvers, asked_at, expires_at, state)
  VALUES ('0123456789abcdef0123456789abcdef', 'a1', 'c', '{}', 'd', 0, '[]', 1, 2, 'open');
INSERT INTO tool_call (turn_id, call_id, step, ordinal, name, args, state) VALUES
  ('a1', 'c', 1, 0, 'exec', '{}', 'waiting');
"""
REQUEST_ID = "0123456789abcdef0123456789abcdef"
# What stands in the ledger of a version before, and what it becomes: key, number, kind, what it is about, answer.
WERE = {
    "turn:a1:s3:b0": (answer("a1", 3, 0), 0),
    "turn:a1:s3:b0.1": (answer("a1", 3, 0), 1),
    "turn:a1:s3:b0.12": (answer("a1", 3, 0), 12),
    "turn:a1:s12:f1": (answer_file("a1", 12, 1), 0),
    "turn:a1:s3:t": (side_message("a1", 3, "t"), 0),
    "turn:a1:s3:r0": (side_message("a1", 3, "r0"), 0),
    "turn:a1:ok": (quiet("a1"), 0),
    "turn:a1:error": (of_turn("a1", "error"), 0),
    "turn:a1:file3.1": (of_turn("a1", "file3.1"), 0),
    "tool:a1:c": (tool_message("a1", "c"), 0),
    "tool:a1:c.1": (tool_message("a1", "c"), 1),
    "tool:a1:c.x": (tool_message("a1", "c.x"), 0),
    f"ask:{REQUEST_ID}": (request(REQUEST_ID), 0),
    f"ask:{REQUEST_ID}.1": (request(REQUEST_ID), 1),
    f"ask:{REQUEST_ID}:2": (request(REQUEST_ID).also(2), 0),
    f"ask:{REQUEST_ID}:0.77": (reminder(REQUEST_ID, 77), 0),
    f"told:ask:{REQUEST_ID}": (sentence("told", f"ask:{REQUEST_ID}"), 0),
    f"again:{REQUEST_ID}": (sentence("asked-again", REQUEST_ID), 0),
    "again:a1": (sentence("said-again", "a1"), 0),
    "ack:slack:T:1:C:17.0001": (
        acknowledgement(Place(channel="slack", account="T:1", chat="C", kind=ChatKind.GROUP), "C:17.0001"),
        0,
    ),
    "unack:slack:T:1:C:17.0001": (sentence("unack:slack:T:1:C:17.0001"), 0),
    "refused:abc:5": (refused("abc", 5), 0),
    "missed:7": (missed(7), 0),
    "cmd:4": (sentence("cmd", 4), 0),
    "cmd:4.1": (sentence("cmd", 4), 1),
}
# What was written as the error of one that was given up; what became of it: error, cause, whether it was said again.
GIVEN_UP = (
    (None, None, None, 0),
    ("chat not found", "chat not found", None, 0),
    ("age", None, "age", 0),
    ("age; said again", None, "age", 1),
    ("said again", None, None, 1),
    ("chat not found; said again", "chat not found", None, 1),
    ("said already: tool:a1:c", None, "said already", 0),
    ("nothing to edit", None, "nothing to edit", 0),
    ("stop", None, "stop", 0),
)
PLANNED = (
    "INSERT INTO delivery (source, conv_id, turn_id, action, body, nonce, state, planned_at, target, error)"
    " VALUES (?,1,?,?,'x',1,?,1,?,?)"
)


async def test_what_every_delivery_is_about_is_known_after_the_migration(tmp_path: Path) -> None:
    before = next(n for n, script in enumerate(migrations()) if "source_kind" in script)
    with closing(sqlite3.connect(tmp_path / "hark.db", isolation_level=None)) as db:
        database.migrate(db, before)
        db.executescript(SOURCES)
        for text in WERE:
            of_turn_a1 = "a1" if text.startswith(("turn:", "tool:")) else None
            edits = text.removeprefix("told:") if text.startswith("told:") else None
            db.execute(PLANNED, (text, of_turn_a1, "edit" if edits else "send", "planned", edits, None))
        for number, (error, *_) in enumerate(GIVEN_UP):
            db.execute(PLANNED, (f"old:{number}", None, "send", "expired", None, error))
        db.execute(
            "INSERT INTO inbox (channel, account, event_key, kind, accepted_at, payload, state, reason)"
            " VALUES ('slack', 'T:1', 'e', 'message', 1, '{}', 'waiting', 'again:x')"
        )
    async with opened(tmp_path) as store:
        (offer,) = {conv_id for conv_id, _ in await store.deliveries.open_conversations()}
        found = []
        while (one := await store.deliveries.next(offer)) is not None:
            found.append((one.source, one.piece))
            await store.deliveries.settle(one, Refused("no"), None)
        assert found == list(WERE.values())
    rows = contents(tmp_path)["delivery"]
    shows = {row["source"]: row["delivery_id"] for row in rows if row["piece"] == 0}
    assert [row["edits"] for row in rows if row["edits"]] == [shows[f"ask:{REQUEST_ID}"]]
    assert [(row["target"], row["action"]) for row in rows if row["edits"]] == [(None, "edit")]
    old = [row for row in rows if row["source"].startswith("old:")]
    assert [(row["error"], row["cause"], row["said_again"]) for row in old] == [
        (became, cause, again) for _, became, cause, again in GIVEN_UP
    ]
    assert [(row["reason"], row["asks_again"]) for row in contents(tmp_path)["inbox"]] == [(None, "x")]
