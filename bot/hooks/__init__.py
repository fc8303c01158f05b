"""Hooks of the service: its points, and how hooks are found in a folder, commands and addresses."""
