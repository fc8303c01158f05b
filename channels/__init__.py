"""Hark: channels."""
