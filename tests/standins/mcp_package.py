"""An MCP server that is built with the official package: `python mcp_package.py`."""

import os
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("package")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("as it was told")


@server.resource("note://moss")
def moss() -> str:
    """About moss."""
    return "Moss grows."


@server.prompt()
def greet(who: str) -> str:
    """Greet somebody."""
    return f"Hello {who}"


if __name__ == "__main__":
    if "PID_FILE" in os.environ:
        Path(os.environ["PID_FILE"]).write_text(str(os.getpid()))
    server.run("stdio")
