"""The terminal as a channel."""
