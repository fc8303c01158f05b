-- A turn that goes on asks for what was decided about its calls.
CREATE INDEX approval_turn ON approval (turn_id);
