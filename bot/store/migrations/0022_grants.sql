-- Several calls are one request, of which some may be allowed; and what is allowed may have an end and hold in one session alone.
ALTER TABLE approval ADD COLUMN picked TEXT;        -- JSON: the numbers of the calls that alone were allowed; NULL: all were decided alike
ALTER TABLE approval ADD COLUMN until INTEGER;      -- when what was allowed with it ends; NULL: it does not

CREATE TABLE granted_new (                  -- calls that are allowed from then on
  what        TEXT NOT NULL,                -- for the program
  session_key TEXT NOT NULL DEFAULT '',     -- the session in which they are; empty: in all
  words       TEXT NOT NULL,                -- for people
  granted_by  TEXT NOT NULL, granted_at INTEGER NOT NULL,
  until       INTEGER,                      -- when that ends; NULL: it does not
  PRIMARY KEY (what, session_key)
) STRICT, WITHOUT ROWID;
INSERT INTO granted_new (what, words, granted_by, granted_at) SELECT what, words, granted_by, granted_at FROM granted;
DROP TABLE granted;
ALTER TABLE granted_new RENAME TO granted;

CREATE INDEX approval_turn ON approval (turn_id);
