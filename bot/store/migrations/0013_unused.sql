-- Columns that were made as places for what might come, and that nothing reads.

ALTER TABLE conversation DROP COLUMN head;
ALTER TABLE conversation DROP COLUMN gap;

ALTER TABLE transcript DROP COLUMN tools;
ALTER TABLE transcript DROP COLUMN summary;

ALTER TABLE entry DROP COLUMN origin;

DROP INDEX turn_parent;
ALTER TABLE turn DROP COLUMN parent;
ALTER TABLE turn DROP COLUMN lease_until;
ALTER TABLE turn DROP COLUMN reply_to;
ALTER TABLE turn DROP COLUMN mode;
