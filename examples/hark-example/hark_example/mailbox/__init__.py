"""A channel that is a folder: files in `in` are messages, files in `out` are answers."""
