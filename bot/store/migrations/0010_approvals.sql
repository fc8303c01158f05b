-- What people are asked: calls that they allow or deny, and questions; and what they have allowed for always.

CREATE TABLE approval_new (
  approval_id TEXT PRIMARY KEY,             -- random, so that its beginning is enough to name it
  turn_id     TEXT NOT NULL, call_id TEXT NOT NULL,
  ask         TEXT NOT NULL,                -- JSON: all that is asked, see agent/tools/base.py
  digest      TEXT NOT NULL,                -- of that, which a decision is bound to
  question    INTEGER NOT NULL CHECK (question IN (0,1)),
  approvers   TEXT NOT NULL,                -- JSON: who may decide
  asked_at    INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('open','once','always','denied','answered','expired')),
  decided_by  TEXT, decided_at INTEGER,
  reason      TEXT,                         -- given with the decision; the answer; while open, what the model is told without one
  told        INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0,1)),   -- 1: its messages show what has become of it
  FOREIGN KEY (turn_id, call_id) REFERENCES tool_call
) STRICT, WITHOUT ROWID;
INSERT INTO approval_new
  SELECT approval_id, turn_id, call_id, json_object('digest', digest, 'subject', ''), digest, 0, approvers, asked_at, expires_at,
  state, decided_by, decided_at, reason, 1 FROM approval;
DROP TABLE approval;
ALTER TABLE approval_new RENAME TO approval;
CREATE UNIQUE INDEX approval_open ON approval (turn_id, call_id) WHERE state='open';
CREATE INDEX approval_expires ON approval (expires_at) WHERE state='open';
CREATE INDEX approval_question ON approval (approval_id) WHERE state='open' AND question=1;
CREATE INDEX approval_untold ON approval (approval_id) WHERE state<>'open' AND told=0;
DROP TABLE question;                        -- nothing was ever kept in it

CREATE TABLE granted (                      -- calls that are allowed from then on
  what        TEXT PRIMARY KEY,             -- for the program
  words       TEXT NOT NULL,                -- for people
  granted_by  TEXT NOT NULL, granted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
