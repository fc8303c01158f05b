-- Exchanges that were taken back. Their lines are hidden, and count again when the row is deleted.
CREATE TABLE undone (
  transcript_id TEXT NOT NULL REFERENCES transcript ON DELETE CASCADE,
  turn_id       TEXT NOT NULL,
  command       INTEGER NOT NULL,           -- what took it back, by its place in the inbox
  line          INTEGER NOT NULL,           -- the newest line of the transcript then
  PRIMARY KEY (transcript_id, turn_id)
) STRICT, WITHOUT ROWID;
