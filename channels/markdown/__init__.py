"""Markdown, parsed once per block and rendered for platforms that take text with entities, or plain."""
