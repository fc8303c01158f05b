"""Tools of MCP servers. Only `connection`, `talk`, `pipes` and `login` import the package, once a server is needed."""
