"""Tools of MCP servers. Only `talk`, `pipes` and `login` import the package `mcp`, and only once a server is needed."""
