-- What the service has put into a transcript is known by a mark, and not by its words. Only turns that are under way
-- are read for it; before, their lines were known by these words.
UPDATE entry SET body = json_set(body, '$.mark', CASE
    WHEN kind = 'user' AND body ->> '$.parts[0].text' GLOB '(files of the messages above; *' THEN 'files'
    WHEN kind = 'user' THEN NULL
    WHEN body ->> '$.parts[0].text' GLOB 'Your reply reached the limit of output *' THEN 'limit'
    WHEN body ->> '$.parts[0].text' GLOB 'You have reached the limit of steps *' THEN 'steps'
    WHEN body ->> '$.parts[0].text' GLOB 'You have repeated calls without *' THEN 'circles'
    -- The answer before a note about a limit names its model; one that broke off does not.
    WHEN body ->> '$.parts[0].text' GLOB 'Your reply was cut off. *' THEN iif((
        SELECT before.body ->> '$.model' FROM entry AS before
        WHERE before.transcript_id = entry.transcript_id AND before.seq = entry.seq - 1
            AND before.kind = 'assistant_cut' AND json_valid(before.body)) <> '', 'limit', 'cut')
    END)
WHERE kind IN ('user', 'note') AND json_valid(body)
    AND turn_id IN (SELECT turn_id FROM turn WHERE ended_at IS NULL);

UPDATE entry SET body = json_set(body, '$.parts[0].mark', CASE
    WHEN body ->> '$.parts[0].text' GLOB 'Not executed: this call has been made again and again *' THEN 'repeated'
    WHEN body ->> '$.parts[0].text' GLOB 'Interrupted: *' THEN 'cut'
    END)
WHERE kind = 'tool_result' AND json_valid(body)
    AND turn_id IN (SELECT turn_id FROM turn WHERE ended_at IS NULL);
