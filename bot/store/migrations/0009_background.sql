-- What runs by itself: jobs, of which the heartbeat is one, and a row for each of their due times.

DROP TABLE job;                             -- nothing was ever kept in it
CREATE TABLE job (
  job_id      TEXT PRIMARY KEY,             -- short enough to type; 'heartbeat' is the one that the configuration makes
  name        TEXT NOT NULL,
  schedule    TEXT NOT NULL,                -- JSON, see heartbeat/schedule.py
  prompt      TEXT NOT NULL,
  origin      TEXT,                         -- JSON: who asked for it and where, which is where it answers
  session_key TEXT NOT NULL,                -- of the conversation there
  own         INTEGER NOT NULL CHECK (own IN (0,1)),     -- 1: it runs in a session of its own
  next_at     INTEGER,                      -- when it is due next; NULL: never again
  paused      INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0,1)),
  failures    INTEGER NOT NULL DEFAULT 0,   -- of its newest runs, without one that did not fail
  retry_at    INTEGER NOT NULL DEFAULT 0    -- due times before this are passed over, because it has failed
) STRICT;
CREATE INDEX job_due ON job (next_at) WHERE next_at IS NOT NULL AND paused=0;

CREATE TABLE firing (                       -- a due time, or a stretch of those that nobody was there for
  job_id      TEXT NOT NULL,                -- no reference: what was done outlives what asked for it
  due_at      INTEGER NOT NULL, until INTEGER NOT NULL,   -- the first and the last moment that it stands for
  at          INTEGER NOT NULL,             -- when it was decided
  cause       TEXT NOT NULL CHECK (cause IN ('due','late','wake','now')),
  reason      TEXT NOT NULL DEFAULT '',     -- why it was skipped; of what ran, why it failed
  turn_id     TEXT,                         -- NULL: it was skipped
  session_key TEXT NOT NULL DEFAULT '',     -- which is told what the run says, if that runs in another one
  tasks       TEXT NOT NULL DEFAULT '[]',   -- JSON: names of what is done by it
  outcome     TEXT NOT NULL DEFAULT ''      -- of its turn, once that has ended
    CHECK (outcome IN ('','said','quiet','failed','stopped')),
  PRIMARY KEY (job_id, due_at)
) STRICT;
CREATE INDEX firing_turn ON firing (turn_id) WHERE turn_id IS NOT NULL;
