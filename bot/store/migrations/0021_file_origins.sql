-- What a content of a file of the workspace was made from. A content without a row is not known.
CREATE TABLE file_origin (
  path    TEXT NOT NULL COLLATE NOCASE,     -- below the workspace; some file systems ignore case
  digest  TEXT NOT NULL,                    -- of the content
  origins TEXT NOT NULL,                    -- JSON; '[]': only words of owners and the service
  at      INTEGER NOT NULL,
  PRIMARY KEY (path, digest)
) STRICT;

-- A command that may be writing, or has written so much that its files have no rows: each file below its room whose last
-- change lies within this time bears its origins, unless the content has a row.
CREATE TABLE file_writer (
  writer_id INTEGER PRIMARY KEY,
  room      TEXT NOT NULL,                  -- below the workspace; empty for the workspace itself
  since     INTEGER NOT NULL,               -- in nanoseconds, by the clock of the kernel
  until     INTEGER,                        -- NULL: it may be writing
  origins   TEXT NOT NULL
) STRICT;

ALTER TABLE job ADD COLUMN origins TEXT NOT NULL DEFAULT '';  -- JSON; empty: an owner's own words
