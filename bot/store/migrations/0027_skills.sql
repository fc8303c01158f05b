-- Skills as an owner has looked at them last; one whose files have another digest is not used.
CREATE TABLE skill (
  name   TEXT PRIMARY KEY,                  -- of its folder
  digest TEXT NOT NULL,                     -- of all its files
  at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
