"""Hark: bot."""
