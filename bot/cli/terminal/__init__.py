"""The terminal: a client of the service like any other, over the Unix socket in the state directory."""
