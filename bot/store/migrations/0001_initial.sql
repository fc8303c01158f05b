-- Times are milliseconds since the epoch. Ids are made by the service, order (seq, delivery_id) by the database.
-- SQLite uses an index with a WHERE only for a query that says the same words: `state='a'` does not find the index of
-- `state IN ('a','b')`, so queries name both.

CREATE TABLE conversation (                 -- a place where messages are exchanged
  conv_id   INTEGER PRIMARY KEY,
  channel   TEXT NOT NULL, account TEXT NOT NULL, chat TEXT NOT NULL, thread TEXT NOT NULL DEFAULT '',
  kind      TEXT NOT NULL CHECK (kind IN ('direct','group','channel','thread','console','api')),
  moved_to  INTEGER REFERENCES conversation,
  UNIQUE (channel, account, chat, thread)
) STRICT;

CREATE TABLE transcript (                   -- what the model is shown; a new one at /new and /reset
  transcript_id TEXT PRIMARY KEY, session_key TEXT NOT NULL, created_at INTEGER NOT NULL,
  prompt        TEXT,                       -- the system prompt, fixed for the transcript
  fingerprint   TEXT,                       -- of the configuration the prompt was made from
  context_start INTEGER NOT NULL DEFAULT 1  -- first entry that still goes to the model
) STRICT;
CREATE INDEX transcript_session ON transcript (session_key);

CREATE TABLE session (
  session_key TEXT PRIMARY KEY, transcript_id TEXT NOT NULL REFERENCES transcript,
  settings TEXT NOT NULL DEFAULT '{}',
  last_conv INTEGER REFERENCES conversation, used_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE turn (
  turn_id     TEXT PRIMARY KEY, session_key TEXT NOT NULL, transcript_id TEXT NOT NULL REFERENCES transcript,
  kind        TEXT NOT NULL CHECK (kind IN ('reply','beat','job','child','api')),
  state       TEXT NOT NULL CHECK (state IN ('queued','running','parked','done','failed','stopped')),
  epoch       INTEGER NOT NULL DEFAULT 0,   -- fence: raised at each claim; every write of a run names it
  crashes     INTEGER NOT NULL DEFAULT 0,   -- claims that ended without a word
  parked_on   TEXT,
  reply_conv  INTEGER NOT NULL REFERENCES conversation,
  step        INTEGER NOT NULL DEFAULT 0,   -- answers of the model so far, cut ones too
  outcome     TEXT, error_kind TEXT, error_message TEXT,
  model       TEXT, usage TEXT,
  created_at  INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX turn_one_per_session ON turn (session_key) WHERE state IN ('running','parked');
CREATE INDEX turn_open ON turn (session_key, created_at) WHERE state IN ('queued','running','parked');

CREATE TABLE inbox (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,   -- order of acceptance = order within a session
  channel     TEXT NOT NULL, account TEXT NOT NULL, event_key TEXT NOT NULL,
  conv_id     INTEGER REFERENCES conversation,
  session_key TEXT,                         -- NULL while state is 'unread' or 'held', and for strangers
  kind        TEXT NOT NULL CHECK (kind IN
                ('message','edit','delete','command','button','event','wake','job','child','api')),
  message_id  TEXT NOT NULL DEFAULT '',
  sender      TEXT, sent_at INTEGER, accepted_at INTEGER NOT NULL,
  payload     TEXT NOT NULL,                -- InboundMessage as JSON; the raw event if 'unread'
  digest      TEXT,                         -- of an HTTP request's body, for Idempotency-Key
  state       TEXT NOT NULL CHECK (state IN
                ('unread','held','waiting','steering','taken','done','withdrawn','dropped')),
  reason      TEXT,                         -- which stated rule dropped or held it
  turn_id     TEXT REFERENCES turn,
  UNIQUE (channel, account, event_key)
) STRICT;
CREATE INDEX inbox_waiting ON inbox (session_key, seq) WHERE state='waiting';
CREATE INDEX inbox_message ON inbox (conv_id, message_id);
CREATE INDEX inbox_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX inbox_accepted ON inbox (accepted_at) WHERE state IN ('unread','done','withdrawn','dropped');

CREATE TABLE entry (                        -- the transcript's lines; append only
  transcript_id TEXT NOT NULL REFERENCES transcript, seq INTEGER NOT NULL,
  turn_id       TEXT, step INTEGER NOT NULL DEFAULT 0,
  kind          TEXT NOT NULL CHECK (kind IN ('user','assistant','assistant_cut','tool_result','summary','note')),
  body          TEXT NOT NULL, tokens INTEGER NOT NULL,
  PRIMARY KEY (transcript_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE tool_call (
  turn_id     TEXT NOT NULL REFERENCES turn, call_id TEXT NOT NULL,
  step        INTEGER NOT NULL, ordinal INTEGER NOT NULL,
  name        TEXT NOT NULL, args TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('asked','running','done','failed','denied','cut')),
  pid         INTEGER, pid_started TEXT,    -- find and end the leftover process group after a crash
  PRIMARY KEY (turn_id, call_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE delivery (
  delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,   -- order of planning = order within a conversation
  source      TEXT NOT NULL UNIQUE,         -- 'turn:<id>:s3:b2' | 'cmd:<inbox seq>' | 'turn:<id>:error'
  conv_id     INTEGER NOT NULL REFERENCES conversation,
  turn_id     TEXT REFERENCES turn, step INTEGER,   -- step: only for pieces of the model's answer
  action      TEXT NOT NULL CHECK (action IN ('send','preview','edit','delete','react','file')),
  body        TEXT NOT NULL,                -- rendered arguments, so that a resend is the same bytes
  said        TEXT NOT NULL DEFAULT '',     -- the model's own text this block came from
  nonce       INTEGER NOT NULL,             -- 63 random bits
  state       TEXT NOT NULL CHECK (state IN ('planned','sending','sent','unknown','failed','expired')),
  attempts    INTEGER NOT NULL DEFAULT 0,   -- sends whose outcome is or may be known only to the platform
  not_before  INTEGER NOT NULL DEFAULT 0,
  platform_id TEXT, planned_at INTEGER NOT NULL, begun_at INTEGER, settled_at INTEGER, error TEXT
) STRICT;
CREATE INDEX delivery_open ON delivery (conv_id, delivery_id) WHERE state IN ('planned','sending','unknown');
CREATE INDEX delivery_failed ON delivery (delivery_id) WHERE state='failed';
CREATE INDEX delivery_turn ON delivery (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX delivery_settled ON delivery (settled_at) WHERE state IN ('sent','failed','expired');

CREATE TABLE event (                        -- the kept agent events, for readers that come back
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id    TEXT NOT NULL UNIQUE,
  turn_id     TEXT NOT NULL, session_key TEXT NOT NULL, at INTEGER NOT NULL,
  body        TEXT NOT NULL
) STRICT;

CREATE TABLE kv (scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (scope, key))
  STRICT, WITHOUT ROWID;
