"""The HTTP interface: for programs on a TCP port, for this machine's terminals on a Unix socket."""
