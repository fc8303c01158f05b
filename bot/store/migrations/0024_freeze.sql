-- What an owner has frozen; every transaction that starts a model call, a tool, a send, a beat or a job looks here.
CREATE TABLE freeze (
  what  TEXT PRIMARY KEY CHECK (what IN ('all','tools','network','beats')),
  since INTEGER NOT NULL,
  who   TEXT NOT NULL,                -- for people
  place TEXT NOT NULL                 -- where they said it, for people
) STRICT, WITHOUT ROWID;
ALTER TABLE turn ADD COLUMN next_calls TEXT;  -- what a turn that a freeze has stopped goes on with: calls that reach out of this machine (network), or others (tools); NULL: not known

CREATE TABLE send_rule (  -- rules of send_policy that deny, as the configuration has them; NULL: any
  channel   TEXT,
  chat_type TEXT,
  key       TEXT          -- the beginning of a session's key
) STRICT;
