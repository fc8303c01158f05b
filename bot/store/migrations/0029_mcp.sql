-- What MCP servers show, pinned as an owner has looked at it, and the process of each.

CREATE TABLE mcp_server (
  server      TEXT PRIMARY KEY,             -- its name in the configuration
  shown_at    INTEGER,                      -- when it was first seen; NULL: never
  pid         INTEGER, pid_started TEXT     -- find and end the leftover process after a crash
) STRICT, WITHOUT ROWID;

CREATE TABLE mcp_tool (
  server      TEXT NOT NULL, position INTEGER NOT NULL,
  name        TEXT NOT NULL,
  accepted    TEXT,                         -- JSON, as an owner has looked at it; NULL: it is new
  shown       TEXT,                         -- JSON, as the server shows it; NULL: it does not any more
  PRIMARY KEY (server, name)
) STRICT, WITHOUT ROWID;
