"""Tools: typed parameters, one async call, text back. See `base`."""
