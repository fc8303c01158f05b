"""Hark: agent."""
