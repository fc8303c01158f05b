"""Runs: which turn gets a place, what its run is made of, and what it writes down."""
