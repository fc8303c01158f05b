-- What the tool memory_write was given: it waits for a person, or stands in a file of its room.
CREATE TABLE memory (
  memory_id   INTEGER PRIMARY KEY AUTOINCREMENT,  -- people name it, so no number is given twice
  state       TEXT NOT NULL CHECK (state IN ('pending','keeping','kept','taking')),  -- keeping, taking: the file is behind
  room        TEXT NOT NULL,                      -- below the workspace; empty for the workspace itself
  path        TEXT NOT NULL,                      -- of its file in the room
  entry       TEXT NOT NULL,                      -- the lines that stand, or will stand, in the file
  origins     TEXT NOT NULL,                      -- JSON
  session_key TEXT NOT NULL,
  turn_id     TEXT NOT NULL,
  by_itself   INTEGER NOT NULL CHECK (by_itself IN (0,1)),  -- 1: a beat or a job wrote it
  written_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX memory_of_file ON memory (room, path);
CREATE INDEX memory_open ON memory (memory_id) WHERE state<>'kept';
