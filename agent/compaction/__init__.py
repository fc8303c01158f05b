"""Keeps the requests of long conversations within the model's context window."""
