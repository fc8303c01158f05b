-- Parts of requests that models refuse, so that they are left out without asking again (agent/models/refusals.py).

CREATE TABLE refused_part (
  model       TEXT NOT NULL,                -- provider/model
  part        TEXT NOT NULL,                -- its kind, and which one by a digest of its content
  reason      TEXT NOT NULL,                -- the provider's words
  refused_at  INTEGER NOT NULL,
  PRIMARY KEY (model, part)
) STRICT, WITHOUT ROWID;
