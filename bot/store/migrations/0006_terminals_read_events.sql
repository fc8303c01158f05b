-- Terminals read events. What was shown there needs none any more; what still waited for a terminal becomes one, of a
-- kind that is a sentence of the service, so that the next terminal shows it once.

DELETE FROM event WHERE session_key = 'agent:main:console:direct:local' AND turn_id NOT IN
  (SELECT turn_id FROM turn WHERE state IN ('queued','running','parked'));

INSERT OR IGNORE INTO event (event_id, turn_id, session_key, at, body)
  SELECT coalesce(turn_id, source) || '/said/' || source, coalesce(turn_id, source), 'agent:main:console:direct:local',
    planned_at, json_object(
      'run', json_object('run_id', coalesce(turn_id, source), 'turn_id', coalesce(turn_id, source),
        'session_key', 'agent:main:console:direct:local', 'attempt', 1, 'parent_run', NULL),
      'at', planned_at, 'id', coalesce(turn_id, source) || '/said/' || source,
      'kind', 'said', 'detail', body, 'type', 'notice')
  FROM delivery JOIN conversation USING (conv_id) WHERE conversation.kind = 'console' AND delivery.state = 'planned'
    -- a cut answer comes whole, with its message_end
    AND (step IS NULL OR turn_id NOT IN (SELECT turn_id FROM turn WHERE state IN ('queued','running','parked')))
  ORDER BY delivery_id;

UPDATE delivery SET state='sent', settled_at=planned_at WHERE state IN ('planned','sending','unknown')
  AND conv_id IN (SELECT conv_id FROM conversation WHERE kind = 'console');
