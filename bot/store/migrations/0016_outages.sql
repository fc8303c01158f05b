-- Keys of providers that failed, and rest. key: a digest of the key; model: empty where it rests for all models.
CREATE TABLE resting_key (
  provider TEXT NOT NULL, model TEXT NOT NULL, key TEXT NOT NULL,
  kind     TEXT NOT NULL,                   -- of the last failure
  failures INTEGER NOT NULL,                -- since it worked last
  until    INTEGER NOT NULL,
  asked    INTEGER NOT NULL,                -- until when the provider wants no call; 0: it did not say
  PRIMARY KEY (provider, model, key)
) STRICT, WITHOUT ROWID;

-- A turn may be parked until a model works again.
ALTER TABLE turn ADD COLUMN misses TEXT;            -- the model that it waits for, while it is parked for it
ALTER TABLE session ADD COLUMN outage_told_at INTEGER;   -- when its people were told last that no model answers
