-- A call keeps its pid until its process is known to have ended, whatever became of its turn.
CREATE INDEX tool_call_process ON tool_call (pid) WHERE pid IS NOT NULL;
