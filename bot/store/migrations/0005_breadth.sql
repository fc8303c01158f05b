-- Places for what comes: groups and catch-up, reply modes, beats and jobs, parked turns, compaction, several workers.
-- What is new here is not read yet; its defaults say what has been so without it.

-- conversation: what is known of its history on the platform.
ALTER TABLE conversation ADD COLUMN cursor TEXT;   -- newest platform id up to which nothing is missing
ALTER TABLE conversation ADD COLUMN head TEXT;     -- newest platform id seen live
ALTER TABLE conversation ADD COLUMN gap INTEGER NOT NULL DEFAULT 0 CHECK (gap IN (0,1));   -- 1: between both, some may be

-- transcript: fixed for its life, or moved by compaction.
ALTER TABLE transcript ADD COLUMN tools TEXT;      -- JSON: names of the tools that the model is offered; NULL: all there are
ALTER TABLE transcript ADD COLUMN summary INTEGER; -- line that is shown first, before context_start, wherever it stands

-- inbox: debounce and delays. Rows that wait are ready from this moment on.
ALTER TABLE inbox ADD COLUMN ready_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX inbox_later ON inbox (ready_at) WHERE state='waiting' AND ready_at > 0;
CREATE INDEX inbox_held ON inbox (channel, account, sender) WHERE state='held';   -- until its sender is let in

-- entry: what a line is worth to the model, and whose words it has.
ALTER TABLE entry ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0 CHECK (hidden IN (0,1));   -- 1: kept, not shown to the model
ALTER TABLE entry ADD COLUMN origin TEXT           -- whose words reach the model with it; NULL: not recorded
  CHECK (origin IN ('owner','person','web','file','skill','mcp','background'));

-- delivery: what an action is about, and how it is shown.
ALTER TABLE delivery ADD COLUMN target TEXT;       -- platform id of the message that is edited, deleted or reacted to
ALTER TABLE delivery ADD COLUMN reply_to TEXT;     -- platform id of the message that it is shown to answer
ALTER TABLE delivery ADD COLUMN buttons TEXT;      -- JSON; NULL: none

-- turn: one may answer nowhere, have a parent, and be leased by a worker. A NOT NULL cannot be altered.
CREATE TABLE turn_new (
  turn_id     TEXT PRIMARY KEY, session_key TEXT NOT NULL, transcript_id TEXT NOT NULL REFERENCES transcript,
  kind        TEXT NOT NULL CHECK (kind IN ('reply','beat','job','child','api')),
  state       TEXT NOT NULL CHECK (state IN ('queued','running','parked','done','failed','stopped')),
  epoch       INTEGER NOT NULL DEFAULT 0,   -- fence: raised at each claim; every write of a run names it
  crashes     INTEGER NOT NULL DEFAULT 0,   -- claims that ended without a word
  parked_on   TEXT,                         -- approval or question that it waits for
  parent      TEXT,                         -- turn that started it; not a reference, for that may be forgotten first
  worker      TEXT, lease_until INTEGER,    -- who runs it, and until when unless the lease is renewed; NULL: this process
  reply_conv  INTEGER REFERENCES conversation,   -- NULL: it is told nowhere
  reply_to    TEXT,                         -- platform id of the message that it answers
  mode        TEXT NOT NULL DEFAULT 'block' CHECK (mode IN ('block','preview','off')),   -- how its answer is shown
  step        INTEGER NOT NULL DEFAULT 0,   -- answers of the model so far, cut ones too
  outcome     TEXT, error_kind TEXT, error_message TEXT,
  model       TEXT, usage TEXT,
  created_at  INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
  ran         INTEGER NOT NULL DEFAULT 0,   -- milliseconds of the attempts that have ended
  resumed_at  INTEGER                       -- when the present attempt began, NULL between attempts
) STRICT, WITHOUT ROWID;
INSERT INTO turn_new (turn_id, session_key, transcript_id, kind, state, epoch, crashes, parked_on, reply_conv, step,
    outcome, error_kind, error_message, model, usage, created_at, started_at, ended_at, ran, resumed_at)
  SELECT turn_id, session_key, transcript_id, kind, state, epoch, crashes, parked_on, reply_conv, step,
    outcome, error_kind, error_message, model, usage, created_at, started_at, ended_at, ran, resumed_at FROM turn;
DROP TABLE turn;
ALTER TABLE turn_new RENAME TO turn;
CREATE UNIQUE INDEX turn_one_per_session ON turn (session_key) WHERE state IN ('running','parked');
CREATE INDEX turn_open ON turn (session_key, created_at) WHERE state IN ('queued','running','parked');
CREATE INDEX turn_failed ON turn (ended_at) WHERE state='failed';
CREATE INDEX turn_parent ON turn (parent) WHERE parent IS NOT NULL;

-- tool_call: one may wait for a person.
CREATE TABLE tool_call_new (
  turn_id     TEXT NOT NULL REFERENCES turn, call_id TEXT NOT NULL,
  step        INTEGER NOT NULL, ordinal INTEGER NOT NULL,
  name        TEXT NOT NULL, args TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('asked','waiting','running','done','failed','denied','cut')),
  used_at     INTEGER,                      -- when a decision about it was used, which it is once: set as it starts
  pid         INTEGER, pid_started TEXT,    -- find and end the leftover process group after a crash
  PRIMARY KEY (turn_id, call_id)
) STRICT, WITHOUT ROWID;
INSERT INTO tool_call_new (turn_id, call_id, step, ordinal, name, args, state, pid, pid_started)
  SELECT turn_id, call_id, step, ordinal, name, args, state, pid, pid_started FROM tool_call;
DROP TABLE tool_call;
ALTER TABLE tool_call_new RENAME TO tool_call;
CREATE INDEX tool_call_process ON tool_call (pid) WHERE pid IS NOT NULL;

CREATE TABLE approval (                     -- whether a call may run, asked of people
  approval_id TEXT PRIMARY KEY,
  turn_id     TEXT NOT NULL, call_id TEXT NOT NULL,
  digest      TEXT NOT NULL,                -- of command, directory, session and asker: what exactly was shown
  approvers   TEXT NOT NULL,                -- JSON: who may decide
  asked_at    INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('open','once','always','denied','expired')),
  decided_by  TEXT, decided_at INTEGER, reason TEXT,
  FOREIGN KEY (turn_id, call_id) REFERENCES tool_call
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX approval_open ON approval (turn_id, call_id) WHERE state='open';
CREATE INDEX approval_expires ON approval (expires_at) WHERE state='open';

CREATE TABLE question (                     -- what a call wants to know of people
  question_id TEXT PRIMARY KEY,
  turn_id     TEXT NOT NULL, call_id TEXT NOT NULL,
  words       TEXT NOT NULL, options TEXT NOT NULL DEFAULT '[]',   -- JSON: answers to choose from
  people      TEXT NOT NULL,                -- JSON: who may answer
  otherwise   TEXT NOT NULL DEFAULT '',     -- what the model is told when nobody does
  asked_at    INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('open','answered','expired')),
  answer      TEXT, answered_by TEXT, answered_at INTEGER,
  FOREIGN KEY (turn_id, call_id) REFERENCES tool_call
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX question_open ON question (turn_id, call_id) WHERE state='open';
CREATE INDEX question_expires ON question (expires_at) WHERE state='open';

CREATE TABLE job (                          -- what is scheduled; each time it is due makes an inbox row with its own key
  job_id      TEXT PRIMARY KEY,
  session_key TEXT NOT NULL, conv_id INTEGER REFERENCES conversation,   -- where it runs, and where it is told
  spec        TEXT NOT NULL,                -- JSON: when, and what to do
  next_at     INTEGER,                      -- NULL: never again
  paused      INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0,1)),
  failures    INTEGER NOT NULL DEFAULT 0,   -- in a row
  last_turn   TEXT, created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX job_due ON job (next_at) WHERE paused=0 AND next_at IS NOT NULL;

CREATE TABLE person (                       -- who may speak, and who has asked to
  channel     TEXT NOT NULL, account TEXT NOT NULL, sender TEXT NOT NULL,
  standing    TEXT NOT NULL CHECK (standing IN ('pending','allowed','owner','blocked')),
  name        TEXT NOT NULL DEFAULT '',     -- as the platform shows it, for people to read; never compared
  code_hash   TEXT, expires_at INTEGER,     -- of the one-time code of who is pending
  since       INTEGER NOT NULL,
  PRIMARY KEY (channel, account, sender)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX person_code ON person (code_hash) WHERE code_hash IS NOT NULL;
