-- A turn that reaches a budget is parked until more is allowed, a cheaper model is chosen, or another day begins.
ALTER TABLE turn ADD COLUMN over TEXT;              -- the scope of the budget that it waits for, while it is parked for it
ALTER TABLE turn ADD COLUMN over_of TEXT;           -- whom the budget belongs to in that scope
ALTER TABLE turn ADD COLUMN over_until INTEGER;     -- when another day begins whose budget is enough; NULL: none is
ALTER TABLE turn ADD COLUMN over_model TEXT;        -- a configured model that fits into what is left; NULL: there is none

-- What owners have allowed besides: each row is the whole limit once more.
CREATE TABLE budget_raise (
  seq   INTEGER PRIMARY KEY,                -- the place in the inbox of the command that allowed it
  scope TEXT NOT NULL,
  of    TEXT NOT NULL,                      -- whom the budget belongs to in that scope
  since INTEGER NOT NULL                    -- when the day began that it is for; 0: of a budget for one turn
) STRICT;
