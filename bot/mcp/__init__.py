"""The MCP servers of the configuration: their tools for runs, what owners have looked at, and their processes."""
