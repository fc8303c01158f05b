-- What was given up because it grew too old is lost as well, and is listed with the rest.

DROP INDEX delivery_lost;
CREATE INDEX delivery_lost ON delivery (delivery_id)
  WHERE (state IN ('failed','uncertain') OR state='expired' AND error='age');
