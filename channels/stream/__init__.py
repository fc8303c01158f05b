"""Cutting a stream of text into the blocks of a reply."""
