"""Measures Hark beside the raw SDK call on the same scripted model server: `make bench`, docs/performance.md."""
