-- A system prompt is stored in its sections, so that people can be shown what takes how much of it. A prompt of before
-- becomes one section; what is sent stays the same bytes.
UPDATE transcript SET prompt=json_object('sections', json_array(json_object('name', 'instructions',
    'text', iif(substr(prompt, -1)=char(10), substr(prompt, 1, length(prompt) - 1), prompt))))
  WHERE prompt IS NOT NULL;

-- 1: the prompt has the script of the first meeting. When a turn of people completes with it, kv has ('prompt', 'met').
ALTER TABLE transcript ADD COLUMN first_meeting INTEGER NOT NULL DEFAULT 0 CHECK (first_meeting IN (0,1));
