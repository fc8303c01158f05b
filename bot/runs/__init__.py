"""Runs of turns: which turn runs next, what its run is made of, and what the run persists."""
