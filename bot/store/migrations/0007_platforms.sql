-- Groups, files, and answers to what a platform wants answered under its own handle.

-- delivery: what is sent along, and how.
ALTER TABLE delivery ADD COLUMN file TEXT;         -- JSON; NULL: none
ALTER TABLE delivery ADD COLUMN silent INTEGER NOT NULL DEFAULT 0 CHECK (silent IN (0,1));   -- 1: without a sound
ALTER TABLE delivery ADD COLUMN respond TEXT;      -- handle of the event that it answers; NULL: an ordinary message
CREATE INDEX delivery_said ON delivery (conv_id, platform_id) WHERE state='sent' AND action='send';   -- where it takes part

CREATE TABLE overheard (                    -- what was said in a group and not to the bot: a ring for each conversation
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  conv_id     INTEGER NOT NULL REFERENCES conversation,
  message_id  TEXT NOT NULL DEFAULT '',
  payload     TEXT NOT NULL,                -- InboundMessage as JSON, shortened
  UNIQUE (conv_id, message_id)
) STRICT;

-- inbox: rapid messages that are taken together, and edits that came when their message had been answered.
ALTER TABLE inbox ADD COLUMN gathers INTEGER NOT NULL DEFAULT 0 CHECK (gathers IN (0,1));   -- 1: waits for more
CREATE INDEX inbox_unnoted ON inbox (session_key, seq) WHERE reason='to be noted';
