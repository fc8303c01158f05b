"""Markdown, parsed and walked once per block: formatted text, which each platform writes in its own way."""
