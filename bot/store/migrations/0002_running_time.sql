-- The clock of a turn, which stands still between attempts; and two ways in: to the failed turns by time, and to the
-- answers of a turn that were cut.

ALTER TABLE turn ADD COLUMN ran INTEGER NOT NULL DEFAULT 0;   -- milliseconds of the attempts that have ended
ALTER TABLE turn ADD COLUMN resumed_at INTEGER;               -- when the present attempt began, NULL between attempts

CREATE INDEX turn_failed ON turn (ended_at) WHERE state='failed';
CREATE INDEX entry_cut ON entry (turn_id, step) WHERE kind='assistant_cut';
