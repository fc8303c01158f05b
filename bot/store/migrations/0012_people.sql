-- People that owners let in, take back and shut out: by whom, and what owners have been told of.

ALTER TABLE person ADD COLUMN set_by TEXT NOT NULL DEFAULT '';   -- who has let them in or shut them out; empty: not recorded
ALTER TABLE person ADD COLUMN told_at INTEGER;                   -- when an owner was told that they wait; NULL: not yet
