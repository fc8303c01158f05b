CREATE TABLE conversation (                 -- a place where messages are exchanged
  conv_id   INTEGER PRIMARY KEY,
  channel   TEXT NOT NULL, account TEXT NOT NULL, chat TEXT NOT NULL, thread TEXT NOT NULL DEFAULT '',
  kind      TEXT NOT NULL CHECK (kind IN ('direct','group','channel','thread','console','api')),
  moved_to  INTEGER REFERENCES conversation, cursor TEXT,
  UNIQUE (channel, account, chat, thread)
) STRICT;
CREATE TABLE transcript (                   -- what the model is shown; a new one at /new and /reset
  transcript_id TEXT PRIMARY KEY, session_key TEXT NOT NULL, created_at INTEGER NOT NULL,
  prompt        TEXT,                       -- the system prompt, fixed for the transcript
  fingerprint   TEXT,                       -- of the configuration the prompt was made from
  context_start INTEGER NOT NULL DEFAULT 1  -- first entry that still goes to the model
, first_meeting INTEGER NOT NULL DEFAULT 0 CHECK (first_meeting IN (0,1)), summary INTEGER, pruned_below INTEGER NOT NULL DEFAULT 1, flushed INTEGER NOT NULL DEFAULT 0 CHECK (flushed IN (0,1))) STRICT;
CREATE INDEX transcript_session ON transcript (session_key);
CREATE TABLE session (
  session_key TEXT PRIMARY KEY, transcript_id TEXT NOT NULL REFERENCES transcript,
  settings TEXT NOT NULL DEFAULT '{}',
  last_conv INTEGER REFERENCES conversation, used_at INTEGER NOT NULL
, outage_told_at INTEGER) STRICT, WITHOUT ROWID;
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
  turn_id     TEXT REFERENCES turn, ready_at INTEGER NOT NULL DEFAULT 0, gathers INTEGER NOT NULL DEFAULT 0 CHECK (gathers IN (0,1)), asks_again TEXT, queued TEXT CHECK (queued IN ('collect','followup','next')), told TEXT,
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
  body          TEXT NOT NULL, tokens INTEGER NOT NULL, hidden INTEGER NOT NULL DEFAULT 0 CHECK (hidden IN (0,1)), covers INTEGER,
  PRIMARY KEY (transcript_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE event (                        -- the kept agent events, for readers that come back
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id    TEXT NOT NULL UNIQUE,
  turn_id     TEXT NOT NULL, session_key TEXT NOT NULL, at INTEGER NOT NULL,
  body        TEXT NOT NULL
) STRICT;
CREATE TABLE kv (scope TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (scope, key))
  STRICT, WITHOUT ROWID;
CREATE INDEX entry_cut ON entry (turn_id, step) WHERE kind='assistant_cut';
CREATE INDEX inbox_later ON inbox (ready_at) WHERE state='waiting' AND ready_at > 0;
CREATE INDEX inbox_held ON inbox (channel, account, sender) WHERE state='held';
CREATE TABLE "turn" (
  turn_id     TEXT PRIMARY KEY, session_key TEXT NOT NULL, transcript_id TEXT NOT NULL REFERENCES transcript,
  kind        TEXT NOT NULL CHECK (kind IN ('reply','beat','job','child','api')),
  state       TEXT NOT NULL CHECK (state IN ('queued','running','parked','done','failed','stopped')),
  epoch       INTEGER NOT NULL DEFAULT 0,   -- fence: raised at each claim; every write of a run names it
  crashes     INTEGER NOT NULL DEFAULT 0,   -- claims that ended without a word
  parked_on   TEXT,                         -- approval or question that it waits for
  worker      TEXT, reply_conv  INTEGER REFERENCES conversation,   -- NULL: it is told nowhere
  step        INTEGER NOT NULL DEFAULT 0,   -- answers of the model so far, cut ones too
  outcome     TEXT, error_kind TEXT, error_message TEXT,
  model       TEXT, usage TEXT,
  created_at  INTEGER NOT NULL, started_at INTEGER, ended_at INTEGER,
  ran         INTEGER NOT NULL DEFAULT 0,   -- milliseconds of the attempts that have ended
  resumed_at  INTEGER                       -- when the present attempt began, NULL between attempts
, misses TEXT, over TEXT, over_of TEXT, over_until INTEGER, over_model TEXT, next_calls TEXT, messages TEXT, told TEXT, silent INTEGER CHECK (silent IN (0,1))) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX turn_one_per_session ON turn (session_key) WHERE state IN ('running','parked');
CREATE INDEX turn_open ON turn (session_key, created_at) WHERE state IN ('queued','running','parked');
CREATE INDEX turn_failed ON turn (ended_at) WHERE state='failed';
CREATE TABLE "tool_call" (
  turn_id     TEXT NOT NULL REFERENCES turn, call_id TEXT NOT NULL,
  step        INTEGER NOT NULL, ordinal INTEGER NOT NULL,
  name        TEXT NOT NULL, args TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('asked','waiting','running','done','failed','denied','cut')),
  used_at     INTEGER,                      -- when a decision about it was used, which it is once: set as it starts
  pid         INTEGER, pid_started TEXT,    -- find and end the leftover process group after a crash
  PRIMARY KEY (turn_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_call_process ON tool_call (pid) WHERE pid IS NOT NULL;
CREATE TABLE person (                       -- who may speak, and who has asked to
  channel     TEXT NOT NULL, account TEXT NOT NULL, sender TEXT NOT NULL,
  standing    TEXT NOT NULL CHECK (standing IN ('pending','allowed','owner','blocked')),
  name        TEXT NOT NULL DEFAULT '',     -- as the platform shows it, for people to read; never compared
  code_hash   TEXT, expires_at INTEGER,     -- of the one-time code of who is pending
  since       INTEGER NOT NULL, set_by TEXT NOT NULL DEFAULT '', told_at INTEGER,
  PRIMARY KEY (channel, account, sender)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX person_code ON person (code_hash) WHERE code_hash IS NOT NULL;
CREATE TABLE overheard (                    -- what was said in a group and not to the bot: a ring for each conversation
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  conv_id     INTEGER NOT NULL REFERENCES conversation,
  message_id  TEXT NOT NULL DEFAULT '',
  payload     TEXT NOT NULL,                -- InboundMessage as JSON, shortened
  UNIQUE (conv_id, message_id)
) STRICT;
CREATE INDEX inbox_unnoted ON inbox (session_key, seq) WHERE reason='to be noted';
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
, origins TEXT NOT NULL DEFAULT '') STRICT;
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
CREATE TABLE "approval" (
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
  told        INTEGER NOT NULL DEFAULT 0 CHECK (told IN (0,1)), picked TEXT, until INTEGER,   -- 1: its messages show what has become of it
  FOREIGN KEY (turn_id, call_id) REFERENCES tool_call
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX approval_open ON approval (turn_id, call_id) WHERE state='open';
CREATE INDEX approval_expires ON approval (expires_at) WHERE state='open';
CREATE INDEX approval_question ON approval (approval_id) WHERE state='open' AND question=1;
CREATE INDEX approval_untold ON approval (approval_id) WHERE state<>'open' AND told=0;
CREATE TABLE "delivery" (
  delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,   -- order of planning = order within a conversation
  source      TEXT NOT NULL,                -- key of what it says, see channels/sources.py
  piece       INTEGER NOT NULL DEFAULT 0,   -- of what is too long for one message
  source_kind TEXT NOT NULL CHECK (source_kind IN ('answer','side message','quiet','tool','request','reminder',
                'acknowledgement','refused','missed','sentence')),
  subject     TEXT,                         -- id of what it is about; NULL: the ledger is not asked for that
  answer      INTEGER,                      -- step of the model's answer that it belongs to, also while it is a preview
  conv_id     INTEGER NOT NULL REFERENCES conversation,
  turn_id     TEXT REFERENCES turn, step INTEGER,   -- step: the same, once the words are final
  action      TEXT NOT NULL CHECK (action IN ('send','preview','edit','delete','react','file')),
  body        TEXT NOT NULL,                -- rendered arguments, so that a resend is the same bytes
  said        TEXT NOT NULL DEFAULT '',     -- the model's own text this block came from
  nonce       INTEGER NOT NULL,             -- 63 random bits
  target      TEXT,                         -- platform id of the message that is edited, deleted or reacted to
  edits       INTEGER,                      -- delivery that showed that message, of which the id is not known yet
  reply_to    TEXT,                         -- platform id of the message that it is shown to answer
  buttons     TEXT,                         -- JSON; NULL: none
  file        TEXT,                         -- JSON; NULL: none
  silent      INTEGER NOT NULL DEFAULT 0 CHECK (silent IN (0,1)),   -- 1: without a sound
  respond     TEXT,                         -- handle of the event that it answers; NULL: an ordinary message
  unless      TEXT,                         -- source of a message that says the same: sent, this one is not
  state       TEXT NOT NULL CHECK (state IN
                ('planned','sending','sent','unknown','uncertain','failed','expired')),
  attempts    INTEGER NOT NULL DEFAULT 0,   -- sends that have or may have happened
  not_before  INTEGER NOT NULL DEFAULT 0,
  platform_id TEXT, planned_at INTEGER NOT NULL, begun_at INTEGER, settled_at INTEGER,
  error       TEXT,                         -- what the platform or the connection said last, for people
  cause       TEXT,                         -- why it was given up; NULL: it was not
  said_again  INTEGER NOT NULL DEFAULT 0 CHECK (said_again IN (0,1)),   -- 1: lost, and planned once more since
  UNIQUE (source, piece)
) STRICT;
CREATE INDEX delivery_open ON delivery (conv_id, delivery_id) WHERE state IN ('planned','sending','unknown');
CREATE INDEX delivery_turn ON delivery (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX delivery_subject ON delivery (subject) WHERE subject IS NOT NULL;
CREATE INDEX delivery_settled ON delivery (settled_at) WHERE state IN ('sent','uncertain','failed','expired');
CREATE INDEX delivery_said ON delivery (conv_id, platform_id) WHERE state='sent' AND action IN ('send','preview','file');
CREATE INDEX delivery_lost ON delivery (delivery_id)
  WHERE (state IN ('failed','uncertain') OR state='expired' AND cause='age');
CREATE TABLE resting_key (
  provider TEXT NOT NULL, model TEXT NOT NULL, key TEXT NOT NULL,
  kind     TEXT NOT NULL,                   -- of the last failure
  failures INTEGER NOT NULL,                -- since it worked last
  until    INTEGER NOT NULL,
  asked    INTEGER NOT NULL,                -- until when the provider wants no call; 0: it did not say
  PRIMARY KEY (provider, model, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
  usage_id    INTEGER PRIMARY KEY,
  at          INTEGER NOT NULL,             -- when the call was over
  turn_id     TEXT NOT NULL, session_key TEXT NOT NULL,
  sender      TEXT NOT NULL,                -- who wrote first, as channel:id; empty: nobody did
  job_id      TEXT NOT NULL,                -- empty: no job did
  model       TEXT NOT NULL,                -- provider/model
  input       INTEGER NOT NULL,             -- tokens, those read from and written to a cache too
  cache_read  INTEGER NOT NULL, cache_write INTEGER NOT NULL, output INTEGER NOT NULL,
  money       REAL                          -- US dollars; NULL: no price was known
) STRICT;
CREATE INDEX usage_at ON usage (at);
CREATE INDEX usage_turn ON usage (turn_id);
CREATE TABLE budget_raise (
  seq   INTEGER PRIMARY KEY,                -- the place in the inbox of the command that allowed it
  scope TEXT NOT NULL,
  of    TEXT NOT NULL,                      -- whom the budget belongs to in that scope
  since INTEGER NOT NULL                    -- when the day began that it is for; 0: of a budget for one turn
) STRICT;
CREATE TABLE file_origin (
  path    TEXT NOT NULL COLLATE NOCASE,     -- below the workspace; some file systems ignore case
  digest  TEXT NOT NULL,                    -- of the content
  origins TEXT NOT NULL,                    -- JSON; '[]': only words of owners and the service
  at      INTEGER NOT NULL,
  PRIMARY KEY (path, digest)
) STRICT;
CREATE TABLE file_writer (
  writer_id INTEGER PRIMARY KEY,
  room      TEXT NOT NULL,                  -- below the workspace; empty for the workspace itself
  since     INTEGER NOT NULL,               -- in nanoseconds, by the clock of the kernel
  until     INTEGER,                        -- NULL: it may be writing
  origins   TEXT NOT NULL
) STRICT;
CREATE TABLE "granted" (                  -- calls that are allowed from then on
  what        TEXT NOT NULL,                -- for the program
  session_key TEXT NOT NULL DEFAULT '',     -- the session in which they are; empty: in all
  words       TEXT NOT NULL,                -- for people
  granted_by  TEXT NOT NULL, granted_at INTEGER NOT NULL,
  until       INTEGER,                      -- when that ends; NULL: it does not
  PRIMARY KEY (what, session_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX approval_turn ON approval (turn_id);
CREATE TABLE undone (
  transcript_id TEXT NOT NULL REFERENCES transcript ON DELETE CASCADE,
  turn_id       TEXT NOT NULL,
  command       INTEGER NOT NULL,           -- what took it back, by its place in the inbox
  line          INTEGER NOT NULL,           -- the newest line of the transcript then
  PRIMARY KEY (transcript_id, turn_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE freeze (
  what  TEXT PRIMARY KEY CHECK (what IN ('all','tools','network','beats')),
  since INTEGER NOT NULL,
  who   TEXT NOT NULL,                -- for people
  place TEXT NOT NULL                 -- where they said it, for people
) STRICT, WITHOUT ROWID;
CREATE TABLE send_rule (  -- rules of send_policy that deny, as the configuration has them; NULL: any
  channel   TEXT,
  chat_type TEXT,
  key       TEXT          -- the beginning of a session's key
) STRICT;
CREATE INDEX inbox_next ON inbox (session_key) WHERE state='waiting' AND queued='next';
CREATE TABLE gone (                         -- numbers that were given, and whose rows a rule has deleted since
  of          TEXT NOT NULL CHECK (of IN ('inbox','delivery')),
  first       INTEGER NOT NULL, last INTEGER NOT NULL,
  PRIMARY KEY (of, first)
) STRICT, WITHOUT ROWID;
CREATE TABLE carried (                      -- the number of messages of people among them, by what had become of them
  channel     TEXT NOT NULL, account TEXT NOT NULL,
  answered    INTEGER NOT NULL, told INTEGER NOT NULL,
  PRIMARY KEY (channel, account)
) STRICT, WITHOUT ROWID;
CREATE TABLE written_off (                  -- what was not explained, and an owner has accepted
  message     TEXT PRIMARY KEY,             -- as it was reported
  account     TEXT NOT NULL, why TEXT NOT NULL,
  missing     INTEGER NOT NULL CHECK (missing IN (0,1)),   -- 1: its row is not there
  accepted_by TEXT NOT NULL, accepted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE skill (
  name   TEXT PRIMARY KEY,                  -- of its folder
  digest TEXT NOT NULL,                     -- of all its files
  at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE memory (
  memory_id   INTEGER PRIMARY KEY AUTOINCREMENT,  -- people name it, so no number is given twice
  state       TEXT NOT NULL CHECK (state IN ('pending','keeping','kept','taking')),  -- keeping, taking: the file is behind
  room        TEXT NOT NULL,                      -- below the workspace; empty for the workspace itself
  path        TEXT NOT NULL,                      -- of its file in the room
  entry       TEXT NOT NULL,                      -- the lines that stand, or will stand, in the file
  origins     TEXT NOT NULL,                      -- JSON
  session_key TEXT NOT NULL,
  turn_id     TEXT NOT NULL,
  by_itself   INTEGER NOT NULL CHECK (by_itself IN (0,1)),  -- 1: a beat or a job wrote it
  written_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX memory_of_file ON memory (room, path);
CREATE INDEX memory_open ON memory (memory_id) WHERE state<>'kept';
CREATE TABLE mcp_server (
  server      TEXT PRIMARY KEY,             -- its name in the configuration
  shown_at    INTEGER,                      -- when it was first seen; NULL: never
  pid         INTEGER, pid_started TEXT     -- find and end the leftover process after a crash
) STRICT, WITHOUT ROWID;
CREATE TABLE mcp_tool (
  server      TEXT NOT NULL, position INTEGER NOT NULL,
  name        TEXT NOT NULL,
  accepted    TEXT,                         -- JSON, as an owner has looked at it; NULL: it is new
  shown       TEXT,                         -- JSON, as the server shows it; NULL: it does not any more
  PRIMARY KEY (server, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE child (
  session_key TEXT PRIMARY KEY,
  parent      TEXT NOT NULL,                -- the session that is told of its end
  label       TEXT NOT NULL,
  by_turn     TEXT NOT NULL, call_id TEXT NOT NULL,   -- what has started it
  started_at  INTEGER NOT NULL,
  UNIQUE (by_turn, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX child_of ON child (parent, started_at);
CREATE TABLE refused_part (
  model       TEXT NOT NULL,                -- provider/model
  part        TEXT NOT NULL,                -- its kind, and which one by a digest of its content
  reason      TEXT NOT NULL,                -- the provider's words
  refused_at  INTEGER NOT NULL,
  PRIMARY KEY (model, part)
) STRICT, WITHOUT ROWID;
PRAGMA user_version=31;
