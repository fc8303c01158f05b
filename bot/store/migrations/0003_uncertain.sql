-- A send of unknown outcome stays open as 'unknown' until its channel has settled it; what nobody will ever know ends
-- as 'uncertain'. A CHECK cannot be altered, so the table is made anew.

CREATE TABLE delivery_new (
  delivery_id INTEGER PRIMARY KEY AUTOINCREMENT,   -- order of planning = order within a conversation
  source      TEXT NOT NULL UNIQUE,         -- 'turn:<id>:s3:b2' | 'cmd:<inbox seq>' | 'turn:<id>:error' | 'refused:…'
  conv_id     INTEGER NOT NULL REFERENCES conversation,
  turn_id     TEXT REFERENCES turn, step INTEGER,   -- step: only for pieces of the model's answer
  action      TEXT NOT NULL CHECK (action IN ('send','preview','edit','delete','react','file')),
  body        TEXT NOT NULL,                -- rendered arguments, so that a resend is the same bytes
  said        TEXT NOT NULL DEFAULT '',     -- the model's own text this block came from
  nonce       INTEGER NOT NULL,             -- 63 random bits
  state       TEXT NOT NULL CHECK (state IN
                ('planned','sending','sent','unknown','uncertain','failed','expired')),
  attempts    INTEGER NOT NULL DEFAULT 0,   -- sends that have or may have happened
  not_before  INTEGER NOT NULL DEFAULT 0,
  platform_id TEXT, planned_at INTEGER NOT NULL, begun_at INTEGER, settled_at INTEGER, error TEXT
) STRICT;
INSERT INTO delivery_new SELECT delivery_id, source, conv_id, turn_id, step, action, body, said, nonce, state, attempts,
  not_before, platform_id, planned_at, begun_at, settled_at, error FROM delivery;
-- Ids of deliveries that were pruned are not given again.
DELETE FROM sqlite_sequence WHERE name='delivery_new';
INSERT INTO sqlite_sequence (name, seq) SELECT 'delivery_new', seq FROM sqlite_sequence WHERE name='delivery';
DROP TABLE delivery;
ALTER TABLE delivery_new RENAME TO delivery;
CREATE INDEX delivery_open ON delivery (conv_id, delivery_id) WHERE state IN ('planned','sending','unknown');
CREATE INDEX delivery_lost ON delivery (delivery_id) WHERE state IN ('failed','uncertain');
CREATE INDEX delivery_turn ON delivery (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX delivery_settled ON delivery (settled_at) WHERE state IN ('sent','uncertain','failed','expired');
