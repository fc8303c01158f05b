-- What a message is to its session while it waits: one of the run that was active when it came, which is answered together with the others of its place or by itself; or the one that is answered before all others. NULL: no run was active.
ALTER TABLE inbox ADD COLUMN queued TEXT CHECK (queued IN ('collect','followup','next'));

CREATE INDEX inbox_next ON inbox (session_key) WHERE state='waiting' AND queued='next';
