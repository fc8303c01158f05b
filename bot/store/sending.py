"""Whether what turns say may be sent: `send_policy` and `/send`, as parts of the statements that begin a send.

The rules of the configuration that deny are rows, written at the start and at each reload, so that these statements can
read them.
"""

import sqlite3
from collections.abc import Sequence

# A rule that denies: channel, kind of chat, and the beginning of a session's key; None: any.
Rule = tuple[str | None, str | None, str | None]

# Condition that a rule (`rule`) is about a conversation (`place`) and a session (`session_key`).
MATCHES = (
    "coalesce(rule.channel, place.channel) = place.channel"
    " AND (coalesce(rule.chat_type, place.kind) = place.kind OR rule.chat_type='thread' AND place.thread<>'')"
    " AND substr(session_key, 1, length(coalesce(rule.key, ''))) = coalesce(rule.key, '')"
)
# Why what a turn says is not sent to a conversation: `off` or `rule`; NULL where it is. It is denied as well if a rule
# is about the conversation in which the turn answers. Begins in front of the SQL of the turn's id; needs `there`, the
# row of the conversation.
_DENIED = (
    "(SELECT CASE settings ->> '$.send' WHEN 'on' THEN NULL WHEN 'off' THEN 'off' ELSE (SELECT 'rule' FROM send_rule"
    f" AS rule JOIN conversation AS place ON place.conv_id IN (reply_conv, there.conv_id) WHERE {MATCHES} LIMIT 1) END"
    " FROM turn LEFT JOIN session USING (session_key) WHERE turn_id="
)
# The same for a delivery; and whether a turn with the id ?2 may not say anything now, where the sending is to begin.
DENIED = f"{_DENIED}delivery.turn_id)"
DENIES_NOW = f"?3 AND {_DENIED}?2) IS NOT NULL"


def put_rules(db: sqlite3.Connection, rules: Sequence[Rule]) -> None:
    """Store the rules that deny, in place of those that there were, also outside of a transaction."""
    if db.execute("SELECT channel, chat_type, key FROM send_rule ORDER BY rowid").fetchall() == list(rules):
        return
    db.execute("SAVEPOINT rules")
    db.execute("DELETE FROM send_rule")
    db.executemany("INSERT INTO send_rule (channel, chat_type, key) VALUES (?,?,?)", rules)
    db.execute("RELEASE rules")
