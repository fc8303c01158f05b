-- The book of messages balances: each is answered, its sender was told why not, or it is pending. Rows say which, and
-- these columns and tables say which rows there must be.

ALTER TABLE inbox ADD COLUMN told TEXT;             -- JSON: deliveries planned with its end; NULL: not recorded
ALTER TABLE turn ADD COLUMN messages TEXT;          -- JSON: its messages when it ended; NULL: not recorded
ALTER TABLE turn ADD COLUMN told TEXT;              -- JSON: its deliveries when it ended; NULL: not recorded
ALTER TABLE turn ADD COLUMN silent INTEGER CHECK (silent IN (0,1));   -- 1: its last answer says nothing

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

-- What is missing already was deleted before anybody kept count.
INSERT INTO gone SELECT 'inbox', seq + 1, following - 1 FROM (
    SELECT seq, lead(seq, 1, (SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name='inbox'))
      OVER (ORDER BY seq) AS following FROM (SELECT 0 AS seq UNION ALL SELECT seq FROM inbox)
  ) WHERE following > seq + 1;
INSERT INTO gone SELECT 'delivery', number + 1, following - 1 FROM (
    SELECT number, lead(number, 1, (SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name='delivery'))
      OVER (ORDER BY number) AS following FROM (SELECT 0 AS number UNION ALL SELECT delivery_id FROM delivery)
  ) WHERE following > number + 1;
