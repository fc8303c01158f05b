"""Skills: folders with a `SKILL.md` that tells the model how to do certain things, in the format of Agent Skills."""
