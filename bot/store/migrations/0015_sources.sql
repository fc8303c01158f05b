-- What a delivery says is in columns, and so is why it was given up: nothing is read out of a text any more. A UNIQUE
-- cannot be altered, so the table is made anew.

CREATE TABLE delivery_new (
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

INSERT INTO delivery_new SELECT delivery_id,
    CASE WHEN source NOT GLOB 'again:*' THEN coalesce(begun_by, source)
      WHEN EXISTS (SELECT 1 FROM approval WHERE approval_id=substr(source, 7)) THEN 'asked-' || source
      ELSE 'said-' || coalesce(begun_by, source) END,
    iif(begun_by IS NULL, 0, CAST(substr(source, length(begun_by) + 2) AS INTEGER)),
    CASE WHEN source GLOB 'turn:*:s[0-9]*:[bf][0-9]*' THEN 'answer'
      WHEN source GLOB 'turn:*:s[0-9]*:[rt]*' THEN 'side message'
      WHEN source GLOB 'turn:*:ok' THEN 'quiet'
      WHEN source GLOB 'tool:*' THEN 'tool'
      WHEN source GLOB 'ask:*:0.*' THEN 'reminder'
      WHEN source GLOB 'ask:*' THEN 'request'
      WHEN source GLOB 'ack:*' THEN 'acknowledgement'
      WHEN source GLOB 'refused:*' THEN 'refused'
      WHEN source GLOB 'missed:*' THEN 'missed'
      ELSE 'sentence' END,
    CASE WHEN source GLOB 'ask:*' THEN substr(source, 5, 32)
      WHEN source GLOB 'ack:*' THEN substr(source, length('ack:' || channel || ':' || account || ':') + 1) END,
    iif(source GLOB 'turn:*:s[0-9]*:[bf][0-9]*' AND turn_id IS NOT NULL,
      CAST(substr(source, length('turn:' || turn_id || ':s') + 1) AS INTEGER), NULL),
    conv_id, turn_id, step, action, body, said, nonce,
    iif(target GLOB 'ask:*', NULL, target),
    iif(target GLOB 'ask:*', (SELECT shown.delivery_id FROM delivery AS shown WHERE shown.source=one.target), NULL),
    reply_to, buttons, file, silent, respond, unless, state, attempts, not_before, platform_id, planned_at, begun_at,
    settled_at,
    CASE WHEN error GLOB 'said already: *' OR error GLOB 'age; *' OR error IN
        ('said again','age','not said','nothing to edit','stop','reset','abort','access') THEN NULL
      WHEN error GLOB '*; said again' THEN substr(error, 1, length(error) - length('; said again'))
      ELSE error END,
    CASE WHEN error GLOB 'said already: *' THEN 'said already'
      WHEN error GLOB 'age; *' THEN 'age'
      WHEN error IN ('age','not said','nothing to edit','stop','reset','abort','access') THEN error END,
    coalesce(error GLOB '*said again', 0)
  FROM (
    SELECT delivery.*, channel, account, (   -- '<source>.<n>' was the n-th further message of what '<source>' began
      SELECT source FROM delivery AS first WHERE first.source = rtrim(rtrim(delivery.source, '0123456789'), '.')
        AND first.source || '.' = rtrim(delivery.source, '0123456789') AND first.conv_id = delivery.conv_id
    ) AS begun_by
    FROM delivery JOIN conversation USING (conv_id)
  ) AS one;

-- Ids of deliveries that were pruned are not given again.
DELETE FROM sqlite_sequence WHERE name='delivery_new';
INSERT INTO sqlite_sequence (name, seq) SELECT 'delivery_new', seq FROM sqlite_sequence WHERE name='delivery';
DROP TABLE delivery;
ALTER TABLE delivery_new RENAME TO delivery;
CREATE INDEX delivery_open ON delivery (conv_id, delivery_id) WHERE state IN ('planned','sending','unknown');
CREATE INDEX delivery_turn ON delivery (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX delivery_subject ON delivery (subject) WHERE subject IS NOT NULL;
CREATE INDEX delivery_settled ON delivery (settled_at) WHERE state IN ('sent','uncertain','failed','expired');
CREATE INDEX delivery_said ON delivery (conv_id, platform_id) WHERE state='sent' AND action IN ('send','preview','file');
CREATE INDEX delivery_lost ON delivery (delivery_id)
  WHERE (state IN ('failed','uncertain') OR state='expired' AND cause='age');

-- A message may be the wish to have a request asked once more; which one, was written behind its reason.
ALTER TABLE inbox ADD COLUMN asks_again TEXT;      -- the request; the turn begins with the same call
UPDATE inbox SET asks_again=substr(reason, 7), reason=NULL WHERE reason GLOB 'again:*';
