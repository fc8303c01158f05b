-- Summaries stand for the older part of a transcript; old results of tools are sent shortened.

ALTER TABLE entry ADD COLUMN covers INTEGER;                              -- of a summary: the first line that it does not stand for
ALTER TABLE transcript ADD COLUMN summary INTEGER;                        -- the line that is shown before all others, although it was written later
ALTER TABLE transcript ADD COLUMN pruned_below INTEGER NOT NULL DEFAULT 1;  -- results of lines before this one are sent shortened
ALTER TABLE transcript ADD COLUMN flushed INTEGER NOT NULL DEFAULT 0 CHECK (flushed IN (0,1));  -- the model was asked to save notes since the newest summary
