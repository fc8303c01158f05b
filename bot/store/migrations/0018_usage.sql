-- What each model call has used. Rows outlive what asked for them, so nothing is referenced.

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
