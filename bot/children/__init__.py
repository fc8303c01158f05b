"""Sub-agents: what the model leaves to runs of their own, and what sessions see of each other."""
