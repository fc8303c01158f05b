-- Answers that are shown while they are written, and words that a tool has said already.

ALTER TABLE delivery ADD COLUMN unless TEXT;       -- source of a message that says the same: sent, this one is not
DROP INDEX delivery_said;                          -- where it takes part
CREATE INDEX delivery_said ON delivery (conv_id, platform_id) WHERE state='sent' AND action IN ('send','preview','file');
