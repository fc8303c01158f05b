"""Discord."""
