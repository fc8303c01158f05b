"""Hark: heartbeat."""
