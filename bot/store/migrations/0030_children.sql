-- Sub-agents: each has a session of its own below the one that has started it.

CREATE TABLE child (
  session_key TEXT PRIMARY KEY,
  parent      TEXT NOT NULL,                -- the session that is told of its end
  label       TEXT NOT NULL,
  by_turn     TEXT NOT NULL, call_id TEXT NOT NULL,   -- what has started it
  started_at  INTEGER NOT NULL,
  UNIQUE (by_turn, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX child_of ON child (parent, started_at);
