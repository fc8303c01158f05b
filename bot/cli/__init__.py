"""The `hark` command: `app` reads the command line, each command has a module that does the work."""
